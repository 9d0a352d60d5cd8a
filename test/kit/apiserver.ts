import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClientOptions } from '../../operator/kube/requests/api-requests.ts';
import { createCA, issue, newServiceAccountKey } from '../../operator/pki/certificates.ts';
import { type ApiserverAccess, type ApiserverKeys, accessTo, certificateOf } from './apiserver-access.ts';
import { ELSEWHERE } from './connect-proxy.ts';
import { testTools } from './tools.ts';

export interface ApiserverOptions {
  /** More flags for kube-apiserver, for example `--feature-gates=WatchList=false`. */
  flags?: string[];
  onRequest?: KubeClientOptions['onRequest'];
  /** What etcd holds before the API server starts: its keys, and the objects as JSON. */
  stored?: (server: Pick<TestApiserver, 'url' | 'ca' | 'readerToken'>) => Readonly<Record<string, string>>;
}

export interface TestApiserver extends ApiserverAccess {
  /** For other processes. */
  keys: ApiserverKeys;
  /** Of its etcd, which asks nobody who they are. */
  etcdUrl: string;
  /** Of its files, and of those of a test: goes with stop(). */
  directory: string;
  /** kill -9 of kube-apiserver; etcd stays. */
  kill(): Promise<void>;
  /** SIGTERM to both at once, as a kubelet does when a cluster is deleted. Resolves when kube-apiserver has ended, to its exit code. */
  terminate(): Promise<number | null>;
  /** Starts kube-apiserver again on the same port, after kill(). */
  start(): Promise<void>;
  /** Makes etcd forget all history up to now, as the API server does every five minutes with history of that age. */
  compact(): Promise<void>;
  /** Everything that etcd holds, by key; objects are JSON with the flag `--storage-media-type=application/json`. */
  dump(): Promise<Record<string, string>>;
  /** Has etcd hold what it held at a dump() with that flag. Leases, by which processes say that they live, stay as they are. */
  restore(dumped: Readonly<Record<string, string>>): Promise<void>;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 110_000;

/**
 * An etcd and a kube-apiserver of our own on free loopback ports, with RBAC; nothing of them is left after stop(). They cost seconds of a
 * core: a test file that needs no more than namespaces takes those of `sharedApiserver()`, which says who may.
 */
export async function startApiserver(options: ApiserverOptions = {}): Promise<TestApiserver> {
  const { etcd: etcdBinary, 'kube-apiserver': apiserverBinary } = await testTools('etcd', 'kube-apiserver');
  const directory = await mkdtemp(join(tmpdir(), 'coppice-apiserver-'));

  const run = (name: string, binary: string, args: string[]): ChildProcess => {
    const log = createWriteStream(join(directory, `${name}.log`), { flags: 'a' });
    // A test run that ends without stop(), by a signal too, must not leave servers behind: the kernel ends them with this process.
    const command = ['--pdeathsig=KILL', binary, ...args];
    const child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', 'pipe'], cwd: directory });
    child.stdout.pipe(log, { end: false });
    child.stderr.pipe(log, { end: false });
    return child;
  };
  const end = async (child: ChildProcess | undefined, signal: NodeJS.Signals) => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    await exited;
  };

  let apiserver: ChildProcess | undefined;
  let etcd: ChildProcess | undefined;
  let access: ReturnType<typeof accessTo> | undefined;
  const stop = async () => {
    await access?.close();
    await end(apiserver, 'SIGKILL');
    await end(etcd, 'SIGKILL');
    await rm(directory, { recursive: true, force: true, maxRetries: 3 });
  };

  try {
    const [etcdPort, peerPort, port] = await freePorts(3);
    const url = `https://127.0.0.1:${port}`;
    const etcdUrl = `http://127.0.0.1:${etcdPort}`;
    const peerUrl = `http://127.0.0.1:${peerPort}`;
    etcd = run('etcd', etcdBinary, [
      '--name=test',
      `--data-dir=${join(directory, 'etcd')}`,
      '--unsafe-no-fsync',
      '--log-level=warn',
      `--listen-client-urls=${etcdUrl}`,
      `--advertise-client-urls=${etcdUrl}`,
      `--listen-peer-urls=${peerUrl}`,
      `--initial-advertise-peer-urls=${peerUrl}`,
      `--initial-cluster=test=${peerUrl}`,
    ]);

    const ca = await createCA({ commonName: 'coppice-test', days: 2 });
    const [serving, admin, account] = await Promise.all([
      issue(ca, {
        commonName: 'apiserver',
        ipAddresses: ['127.0.0.1'],
        dnsNames: [ELSEWHERE],
        usages: ['server'],
        days: 1,
      }),
      issue(ca, certificateOf('admin', ['system:masters'])),
      newServiceAccountKey(),
    ]);
    const readerToken = `reader-${Math.random().toString(36).slice(2)}`;
    await mkdir(join(directory, 'pki'));
    const file = async (name: string, text: string) => {
      const path = join(directory, 'pki', name);
      await writeFile(path, text, { mode: 0o600 });
      return path;
    };
    const args = [
      `--etcd-servers=${etcdUrl}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--tls-cert-file=${await file('server.crt', serving.cert)}`,
      `--tls-private-key-file=${await file('server.key', serving.key)}`,
      `--client-ca-file=${await file('ca.crt', ca.cert)}`,
      `--token-auth-file=${await file('tokens.csv', `${readerToken},reader,reader-uid\n`)}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${await file('sa.pub', account.public)}`,
      `--service-account-signing-key-file=${await file('sa.key', account.private)}`,
      '--service-cluster-ip-range=10.222.0.0/24',
      '--endpoint-reconciler-type=none',
      ...(options.flags ?? []),
    ];

    const start = async () => {
      const child = run('kube-apiserver', apiserverBinary, args);
      apiserver = child;
      const deadline = Date.now() + READY_TIMEOUT_MS;
      while (!(await client.ready({ timeoutMs: 1000 }))) {
        if (child.exitCode !== null || Date.now() > deadline) {
          const log = await readFile(join(directory, 'kube-apiserver.log'), 'utf8').catch(() => '');
          throw new Error(`kube-apiserver did not become ready:\n${log.slice(-4000)}`);
        }
        await delay(50);
      }
    };
    const askEtcd = async <T>(path: string, body: object): Promise<T> => {
      const response = await fetch(`${etcdUrl}/v3/kv/${path}`, { method: 'POST', body: JSON.stringify(body) });
      if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
      return (await response.json()) as T;
    };
    const dump = async (): Promise<Record<string, string>> => {
      const all = { key: encoded('/registry/'), range_end: encoded('/registry0') };
      const { kvs } = await askEtcd<{ kvs: { key: string; value: string }[] }>('range', all);
      return Object.fromEntries(kvs.map(({ key, value }) => [decoded(key), decoded(value)]));
    };
    if (options.stored) {
      await untilServing(etcdUrl);
      for (const [key, value] of Object.entries(options.stored({ url, ca: ca.cert, readerToken })))
        await askEtcd('put', { key: encoded(key), value: encoded(value) });
    }
    const keys = { url, ca, admin, readerToken };
    access = accessTo(keys, options.onRequest);
    const { client } = access;
    await start();

    return {
      ...access,
      keys,
      etcdUrl,
      directory,
      kill: () => end(apiserver, 'SIGKILL'),
      async terminate() {
        etcd?.kill('SIGTERM');
        await end(apiserver, 'SIGTERM');
        return apiserver?.exitCode ?? null;
      },
      start,
      async compact() {
        const { header } = await askEtcd<{ header: { revision: string } }>('range', { key: encoded('x') });
        await askEtcd('compaction', { revision: header.revision, physical: true });
      },
      dump,
      async restore(dumped) {
        const now = await dump();
        const changed = (key: string) => !key.startsWith('/registry/leases/') && now[key] !== dumped[key];
        for (const key of Object.keys(now).filter((key) => changed(key) && !(key in dumped)))
          await askEtcd('deleterange', { key: encoded(key) });
        for (const key of Object.keys(dumped).filter(changed))
          await askEtcd('put', { key: encoded(key), value: encoded(dumped[key]!) });
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const encoded = (text: string): string => Buffer.from(text).toString('base64');
const decoded = (text: string): string => Buffer.from(text, 'base64').toString();

async function untilServing(etcdUrl: string): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (
    !(await fetch(`${etcdUrl}/health`).then(
      (response) => response.ok,
      () => false,
    ))
  ) {
    if (Date.now() > deadline) throw new Error('etcd did not become ready');
    await delay(50);
  }
}

export async function freePorts(count: number): Promise<number[]> {
  // All are held open until all are known, or the system would hand out one twice.
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  const ports: number[] = [];
  for (const server of servers) {
    if (!server.listening) await once(server, 'listening');
    ports.push((server.address() as { port: number }).port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';

const atEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const undo of atEnd.splice(0).reverse()) await undo();
});

/** Notes what it is told; writes its kubeconfig when it is to fetch a certificate and gets one. */
const KUBELET = `#!/bin/bash
echo "$*" >>"$ROOT/told"
for word; do case $word in --kubeconfig=*) path=\${word#--kubeconfig=} ;; esac; done
echo 'what a kubelet says as it ends' >&2
case " $* " in *' --rotate-certificates=false '*) [ -z "$ISSUED" ] || echo kubeconfig >"$path"; exit 1 ;; esac
`;

const SCRIPT = await readFile(new URL('../../../providers/local/machine.sh', import.meta.url), 'utf8');

/** Functions of the entry script. */
const functionsOf = (...names: string[]): string[] =>
  names.map((name) => {
    const found = new RegExp(`^${name}\\(\\) \\{(?:.*\\}$|[^]*?^\\})`, 'm').exec(SCRIPT)?.[0];
    if (!found) throw new Error(`there is no ${name} in machine.sh`);
    return found;
  });

/** Runs the entry script's way to a kubelet below a folder of its own, with containerd's socket there. */
async function startKubelet({ issued, joined = false }: { issued: boolean; joined?: boolean }) {
  const root = await mkdtemp(join(tmpdir(), 'machine-'));
  atEnd.push(() => rm(root, { recursive: true, force: true }));
  for (const folder of ['bin', 'run/machine', 'run/containerd', 'var/lib/kubelet'])
    await mkdir(join(root, folder), { recursive: true });
  await writeFile(join(root, 'bin/kubelet'), KUBELET);
  await chmod(join(root, 'bin/kubelet'), 0o755);
  if (joined) await writeFile(join(root, 'var/lib/kubelet/kubeconfig'), 'kubeconfig');
  const socket = createServer().listen(join(root, 'run/containerd/containerd.sock'));
  await once(socket, 'listening');
  atEnd.push(() => socket.close());

  const functions = functionsOf('nap', 'fetch_certificate', 'run_kubelet').map((found) =>
    found.replaceAll(/(?<=[\s=/:])\/(?=(?:run|var\/lib)\/)/g, `${root}/`),
  );
  const program = `exec {never}<> <(:); CONFIG=/config NODE_NAME=one NODE_IP=10.2.0.7 NODE_LABELS=a=b ZONE=\n${functions.join('\n')}\nrun_kubelet`;
  const env = { PATH: `${root}/bin:${process.env.PATH}`, ROOT: root, ISSUED: issued ? 'yes' : '' };
  const child = spawn('bash', ['-uc', program], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const [code] = await once(child, 'close');
  const told = await readFile(join(root, 'told'), 'utf8');
  return { code: code as number, told: told.trim().split('\n'), said };
}

const FETCHES = '--rotate-certificates=false';

// A kubelet without one is refused (401) at growing intervals: a node registered up to five seconds after it could.
it('a kubelet joins only with the certificate that an earlier kubelet fetched', async () => {
  const { code, told, said } = await startKubelet({ issued: true });
  expect(code).toBe(0);
  expect(told).toHaveLength(2);
  expect(told[0]).toContain(FETCHES);
  expect(told[0]).toContain('--bootstrap-kubeconfig=/config/bootstrap.kubeconfig');
  expect(told[0]).not.toContain('containerd.sock');
  expect(told[1]).not.toContain(FETCHES);
  expect(told[1]).toContain('--node-ip=10.2.0.7');
  expect(said.match(/as it ends/g), 'of the first nobody hears').toHaveLength(1);
});

it('a machine without certificate logs the reason and does not join', async () => {
  const { code, told, said } = await startKubelet({ issued: false });
  expect(code).toBe(1);
  expect(told).toHaveLength(1);
  expect(said).toContain('what a kubelet says as it ends');
});

it('a machine that has joined requests no certificate again', async () => {
  const { told } = await startKubelet({ issued: false, joined: true });
  expect(told).toHaveLength(1);
  expect(told[0]).not.toContain(FETCHES);
});

// Its Services would stay as they are from the day on which the certificate is over.
it('a kube-proxy with a renewed certificate is restarted, and no other', async () => {
  const root = await mkdtemp(join(tmpdir(), 'machine-'));
  atEnd.push(() => rm(root, { recursive: true, force: true }));
  await mkdir(join(root, 'bin'));
  const proxy = join(root, 'bin/kube-proxy');
  await writeFile(proxy, '#!/bin/bash\ntouch "$ROOT/started"\nexec {never}<> <(:)\nread -rt 30 -u "$never"\n');
  await chmod(proxy, 0o755);
  const kubeconfig = join(root, 'kube-proxy.kubeconfig');
  await writeFile(kubeconfig, 'of today');
  const functions = functionsOf('follow_certificate', 'run_kubeproxy').join('\n');
  const program = `nap() { until [ -e $ROOT/started ]; do sleep 0.02; done; sleep 0.02; echo looked; }; CONFIG=${root} NODE_NAME=one\n${functions}\nrun_kubeproxy`;
  const child = spawn('bash', ['-uc', program], {
    env: { PATH: `${root}/bin:${process.env.PATH}`, ROOT: root },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  atEnd.push(() => child.kill('SIGKILL'));
  let said = '';
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    said += chunk.toString();
    const looks = said.split('looked').length - 1;
    if (looks === 5) {
      expect(child.signalCode).toBeNull();
      await writeFile(kubeconfig, 'of tomorrow');
    }
  }
  expect(child.signalCode ?? (await once(child, 'exit'))[1]).toBe('SIGTERM');
});

import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { type KubeObject, NODES, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { issue } from '../../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../../operator/pki/kubeconfig.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { type AnsweredRequests, answerRequests } from '../../kit/kubeconfig-requests.ts';
import { COPPICE, runCommand } from '../../kit/run.ts';
import { type TaskCommand, taskCommands, WALKED, whereItRuns } from '../../kit/task-pages/commands.ts';
import { filesOfReader, garden, givenTo, KINDS_AND_ROLES, NODE, PLACEHOLDERS } from '../../kit/task-pages/given.ts';
import { testTools } from '../../kit/tools.ts';
import { Shell } from '../../kit/transcripts/shell.ts';
import { ROOT } from '../../kit/transcripts/walk.ts';

/** Lines of any container, as the operator and API servers write them. */
const LOG = '{"level":50,"msg":"a reconcile has failed"}\n{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n';

const where = whereItRuns();
const walked = taskCommands().filter((command) => where(command) === WALKED);
const PAGES = [...new Set(walked.map(({ page }) => page))];

let api: TestApiserver;
let requests: AnsweredRequests;
let kubelet: Server;
/** Of the person who reads: a clone, and a home. */
let folder: string;
let env: NodeJS.ProcessEnv;
let before: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-task-pages-'));
  const { kubectl } = await testTools('kubectl');
  // Objects are put back as JSON, and pods have no ServiceAccount, which a controller would make.
  const flags = ['--storage-media-type=application/json', '--disable-admission-plugins=ServiceAccount'];
  api = await startApiserver({ flags });
  await mkdir(join(folder, 'bin'));
  await symlink(COPPICE, join(folder, 'bin', 'coppice'));
  await makeClone();
  const { COPPICE_KUBECONFIG: _, ...own } = process.env;
  env = {
    ...own,
    PATH: [join(folder, 'bin'), dirname(kubectl), own.PATH].join(delimiter),
    HOME: folder,
    NO_COLOR: '1',
    COPPICE_HOME: join(folder, 'none'),
    KUBECONFIG: join(folder, 'config'),
    NS: 'shoot--default--demo',
  };
  await writeFile(env.KUBECONFIG!, api.kubeconfig);

  await Promise.all(KINDS_AND_ROLES.map((manifest) => api.client.apply(manifest)));
  // The API server serves a kind a moment after it was made.
  const established = ['wait', 'crd', '--all', '--for=condition=Established', '--timeout=60s'];
  await vi.waitFor(() => kubectlRun(established), { timeout: 60_000 });
  await put(garden(api.url));
  const [cluster, shoot] = await Promise.all([
    api.client.get(WORKERCLUSTERS, 'demo', 'default'),
    api.client.get<Shoot>(SHOOTS, 'demo', 'default'),
  ]);
  const metadata = { ...shoot.metadata, ownerReferences: [{ uid: cluster.metadata.uid! }] };
  requests = await answerRequests(api, cluster, { ...shoot, metadata } as Shoot);
  await startKubelet();
  before = await api.dump();
}, 180_000);
afterAll(async () => {
  kubelet?.close();
  await requests?.stop();
  await api?.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(() => api.restore(before));

it.each(PAGES)('%s: its commands work as they stand', async (page) => {
  await put(givenTo(page));
  const shell = await openShell(page);
  try {
    for (const command of walked.filter((one) => one.page === page)) await run(shell, command);
  } finally {
    // A command that did not end in time may go on.
    shell.kill();
  }
});

async function run(shell: Shell, { page, line, text, output }: TaskCommand): Promise<void> {
  const filled = Object.entries(PLACEHOLDERS).reduce(
    (command, [word, by]) => command.replace(new RegExp(`\\b${word}\\b`, 'g'), by),
    text,
  );
  const ran = await shell.run(filled, 120_000);
  expect(ran.code, `${page}:${line}: ${text}: ${ran.output}`).toBe(0);
  // A page may leave out the last columns of a table.
  const printed = ran.output.split('\n').map(oneSpace);
  for (const shown of output?.split('\n') ?? [])
    expect(printed, `${page}:${line}: ${text}`).toContainEqual(expect.stringMatching(startOf(oneSpace(shown))));
}

const oneSpace = (text: string): string => text.trim().replace(/\s+/g, ' ');
const startOf = (text: string): RegExp => new RegExp(`^${text.replace(/[.*+?^$()[\]{}|\\]/g, '\\$&')}`);

/** A shell in the clone, with a context of the garden and one of each cluster that the page names. */
async function openShell(page: string): Promise<Shell> {
  const text = walked.flatMap((one) => (one.page === page ? [one.text] : [])).join('\n');
  const clusters = [...text.matchAll(/--context (coppice\/default\/\S+)/g)].map(([, context]) => context!);
  const contexts = ['coppice/garden', ...new Set(clusters)];
  const [name, ...others] = contexts.map((one) => ({ name: one, server: api.url }));
  const file = { ...name!, others, ca: api.ca, ...api.keys.admin, user: 'admin' };
  await writeFile(env.KUBECONFIG!, writeKubeconfigText(file));
  const clone = join(folder, 'clone');
  for (const [name, text] of Object.entries(filesOfReader(api.kubeconfig))) await writeFile(join(clone, name), text);
  const shell = new Shell(clone, env);
  await shell.run('set -o pipefail');
  return shell;
}

/** A clone of Coppice, as far as task pages name files of it, and what it was cloned from. */
async function makeClone(): Promise<void> {
  const origin = join(folder, 'origin');
  for (const name of ['examples', 'profiles']) await cp(join(ROOT, name), join(origin, name), { recursive: true });
  const git = async (...args: string[]) => {
    const identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
    const { code, stderr } = await runCommand('git', [...identity, ...args]);
    expect(code, stderr).toBe(0);
  };
  await git('init', '--quiet', '--initial-branch=main', origin);
  await git('-C', origin, 'add', '--all');
  await git('-C', origin, 'commit', '--quiet', '--no-gpg-sign', '--message=all');
  await git('clone', '--quiet', origin, join(folder, 'clone'));
}

async function kubectlRun(args: string[], input = ''): Promise<void> {
  const { code, stdout, stderr } = await runCommand('kubectl', args, { env, input });
  expect(code, `kubectl ${args.join(' ')}: ${stderr}${stdout}`).toBe(0);
}

/** Makes objects, and gives them the status that they have. */
async function put(objects: readonly KubeObject[]): Promise<void> {
  if (objects.length === 0) return;
  const list = (items: readonly object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  // Without kubectl's own look at all schemas, which takes long on a busy machine: the API server has one too.
  const args = ['apply', '--server-side', '--validate=false', '--filename=-'];
  await kubectlRun(args, list(objects));
  const withStatus = objects.filter(({ status }) => status !== undefined);
  if (withStatus.length > 0) await kubectlRun([...args, '--subresource=status'], list(withStatus));
}

/** Stands in for the kubelet of the node that all pods seem to run on: it knows the log of each container. */
async function startKubelet(): Promise<void> {
  const { cert, key } = await issue(api.keys.ca, {
    commonName: NODE,
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    days: 1,
  });
  kubelet = createServer({ cert, key }, ({ url = '' }, response) => {
    response.statusCode = url.startsWith('/containerLogs/') ? 200 : 404;
    response.end(LOG);
  }).listen(0, '127.0.0.1');
  await once(kubelet, 'listening');
  const { port: Port } = kubelet.address() as AddressInfo;
  const status = {
    addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
    daemonEndpoints: { kubeletEndpoint: { Port } },
  };
  await api.client.create({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
  await api.client.mergePatch(NODES, NODE, undefined, { status }, { subresource: 'status' });
}

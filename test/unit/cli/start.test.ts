import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { load } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { Interruptions } from '../../../operator/cli/interruptions.ts';
import { projectFile } from '../../../operator/cli/invocation.ts';
import { main } from '../../../operator/cli/main.ts';
import { createTerminal } from '../../../operator/cli/terminal.ts';
import { ensureCertificates, readPair } from '../../../operator/garden/control-plane/certificates.ts';
import { codeDigest } from '../../../operator/garden/daemon/code-digest.ts';
import { seedPossible } from '../../../operator/garden/host/capabilities.ts';
import { identityOf, ownIdentity } from '../../../operator/garden/host/process-identity.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

vi.mock('../../../operator/garden/host/capabilities.ts', async (original) => ({
  ...(await original<object>()),
  seedPossible: vi.fn(async () => ({})),
}));

let server: Server;
let home: string;
/** The WorkerCluster of a garden that is up, and every change that was asked of it. */
let cluster: KubeObject | undefined;
let writes: string[];
/** What is told of it from now on. */
let watches: ServerResponse[];
/** Paths of bindings that were asked for, or written. */
let bindings: string[];
/** What they were. */
let bodies: string[];
/** The seed that hosts it. */
let seedName: string;
/** How many reads of the kubeconfig are still refused: the garden is just starting. */
let refusals: number;
/** The kubeconfig of the cluster, in base64. */
let stored: string | undefined;

const EXAMPLE = load(readFileSync(projectFile('examples', 'local.yaml'), 'utf8')) as KubeObject;

const ready = (dataPlaneNodes: number): KubeObject => ({
  apiVersion: 'multi-cluster.demo.io/v1',
  kind: 'WorkerCluster',
  metadata: { name: 'demo', namespace: 'default', uid: 'u', resourceVersion: '1', generation: 1 },
  spec: { cloudProvider: 'local', dataPlaneNodes },
  status: {
    observedGeneration: 1,
    nodes: { desired: dataPlaneNodes, current: dataPlaneNodes, ready: dataPlaneNodes },
    conditions: [{ type: 'Ready', status: 'True', reason: 'ClusterReady', lastTransitionTime: '' }],
  },
});

const BOOKMARK = {
  kind: 'WorkerCluster',
  apiVersion: 'multi-cluster.demo.io/v1',
  metadata: { resourceVersion: '1', annotations: { 'k8s.io/initial-events-end': 'true' } },
};

const LIST = { kind: 'List', metadata: { resourceVersion: '1' } };

beforeEach(async () => {
  cluster = undefined;
  writes = [];
  watches = [];
  refusals = 0;
  seedName = 'local';
  stored = undefined;
  bindings = [];
  bodies = [];
  server = createServer((request, response) => {
    const isOne = request.url?.split('?')[0]?.match(/\/workerclusters\/demo(\/scale)?$/);
    const answer = (status: number, body: object) => response.writeHead(status).end(JSON.stringify(body));
    response.setHeader('content-type', 'application/json');
    if (request.url?.includes('/clusterrolebindings/')) {
      bindings.push(request.url);
      answer(200, { kind: 'ClusterRoleBinding', metadata: {} });
      return;
    }
    if (request.method !== 'GET') {
      writes.push(`${request.method} ${request.url?.split('?')[0]}`);
      request.on('data', (text) => bodies.push(String(text)));
      if (request.url?.includes('/namespaces/nowhere/')) {
        const message = 'namespaces "nowhere" not found';
        answer(404, { kind: 'Status', code: 404, reason: 'NotFound', message, details: { kind: 'namespaces' } });
        return;
      }
      cluster = ready(2);
    }
    // What follows a cluster watches, and is told first what is there.
    if (request.url?.includes('watch=')) {
      const isOfDemo = !request.url.includes('fieldSelector') || request.url.includes('metadata.name%3Ddemo&');
      response
        .writeHead(200)
        .write(cluster && isOfDemo ? `${JSON.stringify({ type: 'ADDED', object: cluster })}\n` : '');
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object: BOOKMARK })}\n`);
      watches.push(response);
      return;
    }
    const secret = { metadata: { name: 'demo-kubeconfig' }, data: { value: stored } };
    const items = cluster ? [cluster] : [];
    if (isOne && cluster) answer(200, cluster);
    else if (request.url?.split('?')[0]?.endsWith('/workerclusters')) answer(200, { ...LIST, items });
    else if (request.url?.endsWith('/shoots/demo')) answer(200, { metadata: { name: 'demo' }, status: { seedName } });
    else if (request.url?.endsWith('/secrets/demo-kubeconfig')) answer(refusals-- > 0 ? 503 : 200, secret);
    else answer(404, { kind: 'Status', code: 404, reason: 'NotFound', message: 'there is none' });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  home = await mkdtemp(join(tmpdir(), 'coppice-start-'));
  const directory = new StateDirectory(home);
  await directory.make();
  const ranges = chooseRanges(directory.id, [])!;
  await directory.write({
    id: directory.id,
    createdAt: '2026-01-01T00:00:00Z',
    ports: { apiserver: port, etcd: 2, etcdPeer: 3 },
    ranges,
    seed: 'kubeconfig',
  });
  await ensureCertificates(directory, { ranges, apiserverPort: port, now: new Date() });
  server.setSecureContext((await readPair(directory, 'apiserver'))!);
  const status = {
    daemon: await ownIdentity(),
    code: codeDigest(),
    phase: 'ready',
    processes: [],
    progress: { sequence: 0, events: [] },
  };
  await writeFile(directory.statusFile, JSON.stringify(status));
  // Another Kubernetes hosts, so that it makes no difference who runs these tests.
  await writeFile(directory.seedKubeconfig, '');
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await rm(home, { recursive: true, force: true });
});

async function start(...more: string[]): Promise<string> {
  const { code, said } = await tryStart(...more);
  expect(code).toBe(0);
  return said;
}

const tryStart = (...more: string[]) => tryRun(['start', '--detach', ...more]);

async function tryRun(words: readonly string[]): Promise<{ code: number; said: string }> {
  said.length = 0;
  const write = (text: string) => void said.push(text);
  const terminal = createTerminal({ out: { write }, err: { write }, env: {} });
  const env = { COPPICE_HOME: home, HOME: home };
  const code = await main(words, terminal, env, new AbortController().signal);
  return { code, said: said.join('') };
}

/** What the last command has said so far. */
const said: string[] = [];
const APPLIED = 'PATCH /apis/multi-cluster.demo.io/v1/namespaces/default/workerclusters/demo';

describe('coppice start', () => {
  it('creates the first cluster when there is none', async () => {
    expect(await start()).toContain('WorkerCluster demo created.');
    expect(writes).toEqual([APPLIED]);
    // A garden that runs gives its administrators back what rights somebody has taken from them.
    expect(bindings).toContainEqual(expect.stringContaining('/clusterrolebindings/'));
  });

  it('keeps a cluster that was scaled since, and says so', async () => {
    cluster = ready(5);
    const said = await start();
    expect(writes).toEqual([]);
    expect(said).toMatch(/WorkerCluster demo exists and is not changed; ".*apply -f .*local\.yaml" changes it/);
  });

  it('prints next steps once, and no remark about a cluster that matches the example', async () => {
    expect(await start()).toContain('scale demo --nodes 3');
    cluster = { ...ready(2), spec: { ...EXAMPLE.spec, hibernation: {} } };
    const again = await start();
    expect(again).not.toContain('What to do next');
    expect(again).not.toContain('exists and is not changed');
    expect(again).toMatch(/demo +local .*True/);
  });

  it('names an existing kubectl, or says that the garden is getting one', async () => {
    const kubectl = join(home, 'tools', 'kubectl-1.36.3', 'kubectl');
    const said = await start();
    expect(said).toContain(`${kubectl} --context coppice/default/demo get nodes`);
    expect(said).toContain('There is no kubectl on PATH: the garden is getting one now, to the path above.');
    await mkdir(dirname(kubectl), { recursive: true });
    await writeFile(kubectl, 'kubectl', { mode: 0o755 });
    cluster = undefined;
    const again = await start();
    expect(again).toContain(`${kubectl} --context coppice/default/demo get nodes`);
    expect(again).not.toContain('no kubectl on PATH');
  });

  it('applies a file that the person names, whatever exists', async () => {
    cluster = ready(5);
    await start('-f', projectFile('examples', 'local.yaml'));
    expect(writes).toEqual([APPLIED]);
  });

  it('does not wait for a missing namespace as for missing CRDs', async () => {
    const file = join(home, 'elsewhere.yaml');
    const object = { ...ready(2), metadata: { name: 'demo', namespace: 'nowhere' }, status: undefined };
    await writeFile(file, JSON.stringify(object));
    const { code, said } = await tryStart('-f', file);
    expect([code, writes.length]).toEqual([3, 1]);
    const kubectl = `kubectl --kubeconfig ${new StateDirectory(home).kubeconfigFile('admin')}`;
    expect(said).toContain(`namespaces "nowhere" not found; make it with "${kubectl} create namespace nowhere"`);
  });
});

describe('after a stop', () => {
  it('counts the time without an answer of the API server towards --timeout of wait, and does not call the cluster Ready', async () => {
    const directory = new StateDirectory(home);
    await directory.write({ ...(await directory.read())!, seed: 'local' });
    const before = ready(2);
    cluster = { ...before, status: { ...before.status, shootRef: { name: 'demo' } } };
    refusals = 3;
    const { code, said } = await tryRun(['wait', 'demo', '--timeout', '5s']);
    expect(refusals).toBeLessThan(0);
    expect(said).not.toContain('is Ready');
    expect(said).toContain('is not Ready after 5s: its API server does not answer yet; "coppice describe demo" shows');
    expect(code).toBe(4);
  });

  it('tells how to wake a hibernated cluster, and when its nodes come', async () => {
    const said = (type: string, status: string) => ({ type, status, reason: 'Hibernated', lastTransitionTime: '' });
    const asleep = { ...ready(2), status: { observedGeneration: 1 } };
    const conditions = [said('Ready', 'False'), said('Hibernated', 'True')];
    cluster = { ...asleep, status: { ...asleep.status, conditions } };
    expect((await tryRun(['wait', 'demo', '--timeout', '1s'])).said).toContain('to wake it: coppice wake demo');
    expect((await tryRun(['scale', 'demo', '--nodes', '3'])).said).toBe(
      'WorkerCluster demo: nodes 2 to 3. It sleeps, and has them when it wakes.\n',
    );
  });

  it.each([
    ['hibernate demo', { hibernation: { enabled: true } }, 'goes to sleep; "coppice wait demo --for Hibernated"'],
    ['wake demo', { hibernation: { enabled: false } }, 'wakes; "coppice wait demo --for Ready"'],
    ['upgrade demo --to v1.37', { kubernetes: { version: '1.37' } }, 'to 1.37; "coppice wait demo" waits'],
  ])('"%s" changes that alone, and says how to wait for it', async (line, spec, told) => {
    cluster = ready(2);
    expect((await tryRun(line.split(' '))).said).toContain(told);
    expect(JSON.parse(bodies.at(-1)!)).toEqual({ spec });
  });

  it('tells how to inspect a failed cluster in any namespace', async () => {
    const message = 'there is no CloudProfile "nowhere"';
    const conditions = [{ type: 'SpecAccepted', status: 'False', reason: 'ConfigurationProblem', message }];
    cluster = { ...ready(2), status: { observedGeneration: 1, conditions } };
    expect((await tryRun(['wait', 'demo'])).said).toContain(
      `${message}. Correct the field that the message begins with, and apply or scale again. See "coppice describe demo"`,
    );
    expect((await tryRun(['wait', 'demo', '-n', 'team'])).said).toContain('See "coppice describe demo -n team"');
  });

  it.each(['wait', 'describe', 'wake'])(
    '"%s" says which cluster was meant by a name that is not there',
    async (verb) => {
      cluster = ready(2);
      const { code, said } = await tryRun([verb, 'dmeo']);
      expect([code, said]).toEqual([
        3,
        expect.stringContaining('there is no WorkerCluster "dmeo" in namespace default; did you mean "demo"?'),
      ]);
    },
  );

  it.each([
    ['on another seed', 'remote', {}],
    ['on machines of a cloud', 'local', { mode: 'SelfManaged', provider: 'aws' }],
  ])('believes the status of a cluster whose control plane runs %s', async (_, seed, where) => {
    const directory = new StateDirectory(home);
    await directory.write({ ...(await directory.read())!, seed: 'local' });
    const before = ready(2);
    cluster = { ...before, status: { ...before.status, ...where, shootRef: { name: 'demo' } } };
    seedName = seed;
    expect((await tryRun(['wait', 'demo', '--timeout', '5s'])).said).toContain('WorkerCluster demo: is Ready');
  });

  it.each([
    ['start', '--detach'],
    ['wait', 'demo'],
  ])(
    '"%s %s" does not call a cluster Ready whose API server is not there again, for all that its status says',
    async (...words) => {
      const member = await SmallApiServer.start('member');
      const directory = new StateDirectory(home);
      await directory.write({ ...(await directory.read())!, seed: 'local' });
      stored = Buffer.from(member.kubeconfig).toString('base64');
      const before = ready(2);
      cluster = { ...before, status: { ...before.status, shootRef: { name: 'demo' } } };
      try {
        const done = tryRun(words);
        await expect.poll(() => said.join('')).toContain('WorkerCluster demo: its API server does not answer yet');
        await expect.poll(() => member.requests.filter((one) => one.endsWith('/readyz')).length).toBeGreaterThan(2);
        expect(said.join('')).not.toContain('is Ready');
        member.put('/readyz', { metadata: { name: '' } });
        expect((await done).said).toContain('WorkerCluster demo: is Ready');
      } finally {
        await member.stop();
      }
    },
  );
});

const asleep = (): KubeObject => {
  const { status, ...one } = ready(2);
  const conditions = [
    { type: 'Ready', status: 'False', reason: 'Hibernated', message: 'the cluster sleeps' },
    { type: 'Hibernated', status: 'True', reason: 'NoControlPlane' },
  ];
  return { ...one, status: { ...status, conditions } };
};

it('does not wait for a cluster that hibernates as its spec asks', async () => {
  cluster = asleep();
  expect(await start()).toContain('WorkerCluster demo: sleeps, as its spec asks');
});

it('stops waiting for a cluster that hibernates meanwhile, and does not call it Ready', async () => {
  cluster = { ...ready(2), status: {} };
  const done = tryStart('--timeout', '5s');
  await expect.poll(() => said.join('')).toContain('WorkerCluster demo: waiting for the operator');
  for (const watch of watches) watch.write(`${JSON.stringify({ type: 'MODIFIED', object: asleep() })}\n`);
  expect((await done).code).toBe(0);
  expect(said.join('')).toContain('WorkerCluster demo: sleeps, as its spec asks');
  expect(said.join('')).not.toMatch(/is Ready|What to do next/);
});

describe('coppice start without root', () => {
  beforeEach(() => rm(new StateDirectory(home).seedKubeconfig));
  afterEach(() => void vi.resetAllMocks());

  const notRoot = 'nodes need root, and coppice runs as an ordinary user';
  const refusal = (what: string) =>
    new RegExp(`^error: this garden cannot ${what} WorkerCluster demo: ${notRoot}; run it as root .*\\n$`);

  it('says in one line that nothing can host clusters, before it makes or compiles anything', async () => {
    vi.mocked(seedPossible).mockResolvedValue({ why: notRoot });
    await rm(home, { recursive: true });
    const { code, said } = await tryStart();
    expect(code).toBe(1);
    expect(said).toMatch(refusal('host'));
    expect(said).toContain('start --seed-kubeconfig FILE');
    expect(existsSync(home)).toBe(false);
  });

  it('does not wait for a cluster that may need a seed', async () => {
    vi.mocked(seedPossible).mockResolvedValue({ why: notRoot });
    const file = join(home, 'aws.yaml');
    const example = await readFile(projectFile('examples', 'demo-worker-cluster.yaml'), 'utf8');
    await writeFile(file, example.replace('demo-worker-cluster', 'demo'));
    const said = await start('-f', file);
    expect(said).toContain('WorkerCluster demo cannot become Ready, because this garden has no seed');
  });

  it('creates a first cluster with simulated nodes where control planes can be hosted', async () => {
    vi.mocked(seedPossible).mockResolvedValue({ rootless: notRoot });
    expect(await start()).toContain('WorkerCluster demo created.');
    expect(bodies.join()).toContain('"cloudProvider":"simulated"');
  });

  it('refuses local machines there', async () => {
    vi.mocked(seedPossible).mockResolvedValue({ rootless: notRoot });
    const { code, said } = await tryStart('-f', projectFile('examples', 'local.yaml'));
    expect(code).toBe(1);
    expect(said).toMatch(refusal('create the nodes of'));
    expect(writes).toEqual([]);
  });
});

describe('coppice start in the foreground', () => {
  let daemon: ChildProcess;
  const said: string[] = [];
  const has = (text: string) => expect.poll(() => said.join(''), { timeout: 20_000 }).toContain(text);

  /** Starts, and resolves to the exit code; `ended` is when the garden's daemon has ended. */
  async function begin(more: Record<string, string> = {}) {
    said.length = 0;
    const ctrlC = new AbortController();
    const write = (text: string) => void said.push(text);
    const terminal = createTerminal({ out: { write }, err: { write }, env: {} });
    const env = { COPPICE_HOME: home, HOME: home, ...more };
    const code = main(['start'], terminal, env, ctrlC.signal);
    return { ctrlC, code, ended: once(daemon, 'exit') };
  }
  const lastLine = () => said.join('').trimEnd().split('\n').at(-1);
  const say = async (phase: string) => {
    const identity = await identityOf(daemon.pid!);
    const code = codeDigest();
    const status = { daemon: identity, code, phase, processes: [], progress: { sequence: 0, events: [] } };
    // As the daemon writes it: who reads it in the middle of a write would take the garden for deleted.
    const { statusFile } = new StateDirectory(home);
    await writeFile(`${statusFile}.new`, JSON.stringify(status));
    await rename(`${statusFile}.new`, statusFile);
  };

  beforeEach(async () => {
    // What is stopped must not be this process.
    daemon = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
    await once(daemon, 'spawn');
    await say('ready');
  });
  afterEach(() => void daemon.kill('SIGKILL'));

  it('stops the garden at Ctrl-C during creation, and prints what is kept and how to go on', async () => {
    cluster = { ...ready(2), status: {} };
    const { ctrlC, code, ended } = await begin({ npm_lifecycle_event: 'start' });
    await has('WorkerCluster demo: ');
    ctrlC.abort(new Error('Ctrl-C'));
    expect(await code).toBe(130);
    await ended;
    expect(lastLine()).toMatch(
      /^Stopped\. Its clusters are kept in .*\/garden; "npm start" starts them again, .* down" deletes them\.$/,
    );
    expect(existsSync(new StateDirectory(home).stateFile)).toBe(true);
  });

  it.each([
    ['in the background', async () => ({})],
    ['by another command that lives', async () => ({ process: await identityOf(process.ppid) })],
  ])('leaves a garden running at Ctrl-C that was started %s', async (_by, holder) => {
    const directory = new StateDirectory(home);
    await writeFile(directory.holderFile, JSON.stringify(await holder()));
    cluster = ready(2);
    const { ctrlC, code } = await begin();
    await has('Another command started this garden. Ctrl-C ends only this one');
    ctrlC.abort(new Error('Ctrl-C'));
    expect(await code).toBe(0);
    expect(lastLine()).toMatch(/^The garden keeps running; ".*coppice stop" stops it\.$/);
    expect(daemon.exitCode ?? daemon.signalCode).toBeNull();
  });

  it('keeps a garden running that another command has put in the background', async () => {
    cluster = ready(2);
    const { ctrlC, code } = await begin();
    await has('Ctrl-C to stop the garden');
    const { said: detached } = await tryStart();
    expect(detached).toContain('The garden keeps running in the background');
    ctrlC.abort(new Error('Ctrl-C'));
    expect(await code).toBe(0);
    expect(daemon.exitCode ?? daemon.signalCode).toBeNull();
  });

  it('adopts a garden whose foreground command was killed', async () => {
    const gone = { pid: daemon.pid!, started: 'earlier/1' };
    await writeFile(new StateDirectory(home).holderFile, JSON.stringify({ process: gone }));
    cluster = ready(2);
    const { ctrlC, code, ended } = await begin();
    await has('Press Ctrl-C to stop the garden');
    ctrlC.abort(new Error('Ctrl-C'));
    expect(await code).toBe(0);
    await ended;
  });

  it('succeeds at Ctrl-C when everything runs', async () => {
    cluster = ready(2);
    const { ctrlC, code, ended } = await begin();
    await has('Ctrl-C to stop the garden');
    ctrlC.abort(new Error('Ctrl-C'));
    expect(await code).toBe(0);
    await ended;
    expect(lastLine()).toMatch(/coppice start" starts them again/);
  });

  it('ends when another command has stopped the garden', async () => {
    cluster = ready(2);
    const { code } = await begin();
    await has('Ctrl-C to stop the garden');
    await say('stopped');
    daemon.kill('SIGKILL');
    expect(await code).toBe(0);
    expect(lastLine()).toContain('Somebody stopped the garden');
  });

  it('fails when the daemon was killed', async () => {
    cluster = ready(2);
    const { code } = await begin();
    await has('Ctrl-C to stop the garden');
    daemon.kill('SIGKILL');
    expect(await code).toBe(1);
    expect(lastLine()).toMatch(
      /^error: the garden's daemon has exited, .*; ".*coppice start" starts the daemon again, ".*coppice stop" stops/,
    );
  });
});

it('ignores the copy of a signal that npm forwards', () => {
  const interruptions = new Interruptions();
  expect([0, 10, 900, 910, 2_000].map((ms) => interruptions.count(ms))).toEqual([
    'end',
    undefined,
    'ask',
    undefined,
    'leave',
  ]);
});

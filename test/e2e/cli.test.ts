import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { SEEDS } from '../../operator/kube/resources.ts';
import {
  type CommandResult,
  changeCluster,
  coppice,
  deleteCluster,
  e2e,
  garden,
  kubectl,
  makeCluster,
  type Name,
  ok,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';
import { runCommand } from '../kit/run.ts';

const COPPICE = fileURLToPath(new URL('../../bin/coppice', import.meta.url));

/** One line that a person understands, and the exit code. */
function expectError({ code, stderr }: CommandResult, exitCode: number, message: RegExp): void {
  const errors = stderr
    .trim()
    .split('\n')
    .filter((line) => line.startsWith('error:'));
  expect(errors).toHaveLength(1);
  expect(errors[0]).toMatch(message);
  expect(stderr).not.toMatch(/^\s+at |node:internal|\.ts:\d+/m);
  expect(code).toBe(exitCode);
}

e2e('the command line for scripts:', () => {
  let cluster: Name;
  let folder: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coppice-cli-'));
    cluster = await makeCluster({ cloudProvider: 'simulated', dataPlaneNodes: 2 }, { namespace: uniqueName('team') });
    ok(await coppice(['wait', cluster.name, '-n', cluster.namespace, '--timeout', '4m'], { timeoutMs: 5 * 60_000 }));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  it('"get workerclusters -A -o json" prints a Kubernetes List as kubectl does', async () => {
    const { stdout, stderr, code } = await coppice(['get', 'workerclusters', '-A', '-o', 'json']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const list = JSON.parse(stdout) as { kind: string; apiVersion: string; items: WorkerCluster[] };
    expect(list).toMatchObject({ kind: 'List', apiVersion: 'v1' });
    const found = list.items.find(({ metadata }) => metadata.name === cluster.name);
    expect(found?.metadata.namespace).toBe(cluster.namespace);
    expect(found?.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    const args = ['get', 'workercluster', cluster.name, '-n', cluster.namespace, '-o', 'json'];
    const byKubectl = JSON.parse(ok(await kubectl(args))) as WorkerCluster;
    expect(found?.spec).toEqual(byKubectl.spec);
    expect(found?.metadata.uid).toBe(byKubectl.metadata.uid);
  });

  it('every kind has the condition Ready', async () => {
    const all = async () =>
      (JSON.parse(ok(await coppice(['get', 'all', '-A', '-o', 'json']))) as { items: WorkerCluster[] }).items;
    const kinds = new Set((await all()).map(({ kind }) => kind));
    expect([...kinds].sort()).toEqual(['CloudProfile', 'Hub', 'Membership', 'Seed', 'Shoot', 'WorkerCluster']);
    // A cluster is in the garden's inventory a moment after it is Ready.
    const notReady = async () => (await all()).filter(({ status }) => !isTrue(status?.conditions, 'Ready'));
    await expect.poll(notReady, { timeout: 20_000 }).toEqual([]);
  });

  it('"get" prints a table, a wide one, YAML, and names', async () => {
    const inNamespace = ['-n', cluster.namespace];
    expect(ok(await coppice(['get', ...inNamespace]))).toMatch(/^NAME +PROVIDER .*\n.* True +Ready /);
    const wide = ok(await coppice(['get', '-o', 'wide', ...inNamespace]));
    expect(wide.split('\n')[0]!.length).toBeGreaterThan(
      ok(await coppice(['get', ...inNamespace])).split('\n')[0]!.length,
    );
    expect(ok(await coppice(['get', '-o', 'yaml', ...inNamespace]))).toMatch(/^apiVersion: v1\nkind: List/m);
    expect(ok(await coppice(['get', '-o', 'name', ...inNamespace])).trim()).toBe(
      `workercluster.multi-cluster.demo.io/${cluster.name}`,
    );
    const nothing = await coppice(['get', '-n', 'kube-public']);
    expect(nothing).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'No workerclusters found in namespace kube-public.\n',
    });
  });

  it('"kubeconfig --garden" and "kubeconfig NAME" print working kubeconfigs, and nothing else', async () => {
    const ofGarden = await coppice(['kubeconfig', '--garden']);
    expect(ofGarden.stderr).toBe('');
    const gardenClient = KubeClient.fromKubeconfig(ok(ofGarden));
    expect((await gardenClient.list(SEEDS)).items).toHaveLength(1);
    await gardenClient.close();

    const file = join(folder, 'cluster.yaml');
    const ofCluster = await coppice(['kubeconfig', cluster.name, '-n', cluster.namespace]);
    expect(ofCluster.stderr).toBe('');
    await writeFile(file, ok(ofCluster));
    const nodes = ok(await kubectl(['get', 'nodes', '--no-headers'], { kubeconfig: file }));
    expect(nodes.trim().split('\n')).toHaveLength(2);
  });

  it(`"kubeconfig NAME --merge" adds a context to the user's file, and --remove deletes exactly that`, async () => {
    const file = join(folder, 'own.yaml');
    const own = `# mine
apiVersion: v1
kind: Config
current-context: work
clusters:
- name: work # at work
  cluster: {server: "https://work.example.org"}
contexts:
- name: work
  context: {cluster: work, user: me}
users:
- name: me
  user: {token: secret}
`;
    await writeFile(file, own, { mode: 0o600 });
    const env = { KUBECONFIG: file };
    const named = ['kubeconfig', cluster.name, '-n', cluster.namespace];
    const context = `coppice/${cluster.namespace}/${cluster.name}`;
    expect(ok(await coppice([...named, '--merge'], { env }))).toContain(`Added context "${context}"`);
    expect(ok(await coppice([...named, '--merge'], { env }))).toContain('already');
    const contexts = ok(await kubectl(['config', 'get-contexts', '-o', 'name'], { kubeconfig: file }));
    expect(contexts.trim().split('\n').sort()).toEqual([context, 'work']);
    expect(ok(await kubectl(['config', 'current-context'], { kubeconfig: file })).trim()).toBe('work');
    ok(await kubectl(['--context', context, 'get', 'namespaces'], { kubeconfig: file }));
    expect(ok(await coppice([...named, '--remove'], { env }))).toContain(`Removed context "${context}"`);
    expect(await readFile(file, 'utf8')).toBe(own);
    expectError(await coppice([...named, '--remove'], { env }), 3, /no context/);
  });

  it('"wait" returns the result as its exit code', async () => {
    const inNamespace = ['-n', cluster.namespace];
    expect((await coppice(['wait', cluster.name, '--for', 'Ready', ...inNamespace])).code).toBe(0);
    expectError(await coppice(['wait', 'nobody', ...inNamespace]), 3, /no WorkerCluster "nobody"/);
    expect((await coppice(['wait', 'nobody', '--for', 'Deleted', ...inNamespace])).code).toBe(0);
    const late = await coppice(['wait', cluster.name, '--for', 'Deleted', '--timeout', '1s', ...inNamespace]);
    expectError(late, 4, /is not gone after 1s/);
    expectError(await coppice(['wait', cluster.name, '--for', 'Never', ...inNamespace]), 2, /Never/);
    expectError(await coppice(['wait', cluster.name, '--timeout', 'soon', ...inNamespace]), 2, /soon/);
    // Right after a change it waits for that change, not for what was Ready before.
    await changeCluster(cluster, { dataPlaneNodes: 4 });
    ok(await coppice(['wait', cluster.name, ...inNamespace]));
    expect((await untilReady(cluster)).status?.nodes?.ready).toBe(4);
  });

  it('"scale" changes the number of nodes', async () => {
    ok(await coppice(['scale', cluster.name, '--nodes', '1', '-n', cluster.namespace]));
    expect((await untilReady(cluster)).status?.nodes).toMatchObject({ desired: 1, current: 1, ready: 1 });
    expectError(await coppice(['scale', cluster.name, '--nodes', '-3', '-n', cluster.namespace]), 2, /nodes/);
    expectError(
      await coppice(['scale', cluster.name, '--nodes', '99999', '-n', cluster.namespace]),
      1,
      /dataPlaneNodes.*5000/,
    );
  });

  it('"describe" prints the tree of parts', async () => {
    const tree = ok(await coppice(['describe', cluster.name, '-n', cluster.namespace]));
    expect(tree).toContain(`WorkerCluster/${cluster.name}`);
    for (const part of ['Shoot/', 'StatefulSet/etcd-main', 'Deployment/kube-apiserver', 'Pool/default']) {
      expect(tree).toMatch(new RegExp(`[├└]─${part}`));
    }
    const more = ok(await coppice(['describe', cluster.name, '-n', cluster.namespace, '--show-conditions']));
    expect(more.length).toBeGreaterThan(tree.length);
    expectError(await coppice(['describe', 'nobody', '-n', cluster.namespace]), 3, /"nobody"/);
  });

  it('"status" reports health, also by its exit code', async () => {
    const status = JSON.parse(ok(await coppice(['status', '-o', 'json'])));
    expect(status).toMatchObject({ healthy: true, phase: 'ready' });
    const elsewhere = await coppice(['status'], { env: { COPPICE_HOME: join(folder, 'nowhere') } });
    expect(elsewhere.code).toBe(1);
    expect(elsewhere.stdout).toMatch(/coppice up/);
  });

  it.each<[string, string[], number, RegExp]>([
    ['an unknown command', ['gett'], 2, /gett.*get/],
    ['an unknown option', ['get', '--wide'], 2, /--wide/],
    ['an unknown kind', ['get', 'workercluster', '-o', 'table'], 2, /table/],
    ['a missing name', ['wait'], 2, /NAME/],
    ['an unknown cluster', ['kubeconfig', 'nobody'], 3, /no WorkerCluster "nobody"/],
    ['a missing file', ['apply', '-f', '/nowhere.yaml'], 3, /no file \/nowhere\.yaml/],
    ['an unknown kubeconfig', ['get', '--kubeconfig', '/nowhere.yaml'], 3, /\/nowhere\.yaml/],
    ['a cluster to delete that is not there', ['delete', 'nobody'], 3, /nobody/],
  ])('%s is reported in one line, without a stack trace', async (_, args, exitCode, message) => {
    const result = await coppice(args);
    expect(result.stdout).toBe('');
    expectError(result, exitCode, message);
  });

  it('an unreachable API server is reported in one line', async () => {
    const file = join(folder, 'away.yaml');
    await writeFile(file, ok(await coppice(['kubeconfig', '--garden'])).replace(/127\.0\.0\.1:\d+/, '127.0.0.1:9'));
    expectError(await coppice(['get', '--kubeconfig', file]), 1, /127\.0\.0\.1:9/);
  });

  it('coppice works as a kubectl plugin', async () => {
    await symlink(COPPICE, join(folder, 'kubectl-coppice'));
    const { PATH = '' } = process.env;
    const { KUBECONFIG: _, ...rest } = process.env;
    const env = {
      ...rest,
      COPPICE_HOME: garden.home,
      COPPICE_TOOLS: inject('tools'),
      PATH: [folder, dirname(inject('kubectl')), PATH].join(delimiter),
    };
    const list = await runCommand(inject('kubectl'), ['coppice', 'get', '-A'], { env });
    expect(ok(list)).toContain(cluster.name);
    const help = await runCommand(inject('kubectl'), ['coppice', 'help'], { env });
    expect(ok(help)).toContain('kubectl coppice');
    expect((await runCommand(inject('kubectl'), ['coppice', 'wait', 'nobody'], { env })).code).not.toBe(0);
  });

  it('completion offers commands, kinds and names', async () => {
    const complete = async (...words: string[]) => ok(await coppice(['__complete', '--', ...words])).split('\n');
    expect(await complete('ge')).toContain('get');
    expect(await complete('get', '')).toContain('workerclusters');
    expect(await complete('wait', '-n', cluster.namespace, '')).toContain(cluster.name);
    expect(await complete('get', '-n', '')).toContain(cluster.namespace);
    for (const shell of ['bash', 'zsh', 'fish']) ok(await coppice(['completion', shell]));
    // As bash itself does it, in a shell that has taken the script in.
    const script = `source <(coppice completion bash); COMP_WORDS=(coppice wait -n ${cluster.namespace} ""); COMP_CWORD=4; _coppice; echo "\${COMPREPLY[@]}"`;
    const env = {
      ...process.env,
      COPPICE_HOME: garden.home,
      COPPICE_TOOLS: inject('tools'),
      PATH: [dirname(COPPICE), process.env.PATH].join(delimiter),
    };
    expect(ok(await runCommand('bash', ['-c', script], { env })).trim()).toBe(cluster.name);
  });

  it('"delete --wait" returns when the cluster is deleted', async () => {
    ok(
      await coppice(['delete', cluster.name, '-n', cluster.namespace, '--wait', '--timeout', '4m'], {
        timeoutMs: 300_000,
      }),
    );
    expectError(await coppice(['get', 'wc', cluster.name, '-n', cluster.namespace]), 3, /no WorkerCluster/);
    ok(await coppice(['delete', cluster.name, '-n', cluster.namespace, '--ignore-not-found']));
    await deleteCluster(cluster);
  });
});

import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { dump, loadAll } from 'js-yaml';
import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest';
import { isTrue } from '../../operator/api/conditions.ts';
import { ANNOTATIONS, API_VERSION } from '../../operator/api/group.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { operatorImageName } from '../../operator/garden/images/operator-image/build-operator-image.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { execInPod } from '../../operator/kube/pod-exec.ts';
import {
  CRDS,
  DEPLOYMENTS,
  type Deployment,
  type KubeObject,
  LEASES,
  type Lease,
  NAMESPACES,
  PODS,
  type Pod,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { type CloudBeside, sourcesOfCloud, valuesWithCloud } from '../kit/cloud/beside-operator.ts';
import {
  clusterClient,
  deleteCluster,
  e2e,
  follow,
  gardenClient,
  kubeconfigFile,
  kubectl,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';
import { type CommandResult, runCommand } from '../kit/run.ts';
import { commandOnPage } from '../kit/task-pages/on-page.ts';
import { testTools } from '../kit/tools.ts';
import { echo, untilPods } from '../kit/workload.ts';

const CHART = 'charts/coppice';
/** Of an earlier commit, with the CRDs of then: test/fixtures/README.md. */
const EARLIER_CHART = 'test/fixtures/chart-33f30aed.tgz';
const NAMESPACE = 'coppice-system';
const OPERATOR = 'coppice-operator';
const WORKER_CLUSTERS = 'workerclusters.multi-cluster.demo.io';
/** A field of pools that the earlier CRDs did not have yet. */
const LATER_FIELD = 'disruption';
const BUDGET = { [LATER_FIELD]: { budgets: [{ nodes: 1 }] } };
/** Of the chart's values, and one that nothing of the chart serves. */
const METRICS_PORT = 8080;
const OTHER_PORT = 9090;
const HELM_MS = 5 * 60_000;
const WITHIN = ['--timeout', '4m'];
const REPOSITORY = 'registry.example.com/platform/coppice-operator';
const IMAGE = `${REPOSITORY}:0.1.0`;
/** Of the container, in bytes, under either kind of cgroups. */
const PEAK_MEMORY = `
const read = (name) => { try { return require('node:fs').readFileSync('/sys/fs/cgroup/' + name, 'utf8') } catch {} };
console.log(read('memory.peak') ?? read('memory/memory.max_usage_in_bytes'))`;

e2e('the operator installed by the chart', () => {
  /** The cluster that is a garden of its own, and the seed of its clusters. */
  let platform: Name;
  let client: KubeClient;
  let kubeconfig: string;
  let folder: string;
  /** Runs a command of a page, with more options at its end. */
  let shell: (command: string, ...more: string[]) => Promise<CommandResult>;
  let helm: (...args: string[]) => Promise<CommandResult>;
  const inner: Name = { name: 'inner', namespace: 'default' };

  const fieldsOfPools = ({ spec }: KubeObject): string[] =>
    Object.keys(spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.pools.items.properties);
  const crd = () => client.get(CRDS, WORKER_CLUSTERS);
  const leader = async () => (await client.get<Lease>(LEASES, OPERATOR, NAMESPACE)).spec!.holderIdentity!;
  const operators = async () =>
    (
      await client.list<Pod>(PODS, { namespace: NAMESPACE, labelSelector: 'app.kubernetes.io/name=coppice' })
    ).items.filter(({ metadata }) => !metadata.deletionTimestamp);
  const untilThere = async <R>(
    { namespace, name }: Name,
    is: (found?: WorkerCluster) => R | undefined | false,
    what: string,
  ): Promise<R> => {
    const all = await follow<WorkerCluster>(client, WORKERCLUSTERS);
    const found = () => all.get(`${namespace}/${name}`);
    return all.waitFor(() => is(found()), {
      timeoutMs: PATIENCE_MS,
      what: () => `cluster ${name} ${what}: ${JSON.stringify(found()?.status, undefined, 1)}`,
    });
  };
  const untilInner = <R>(is: (found?: WorkerCluster) => R | undefined | false, what: string) =>
    untilThere(inner, is, what);
  /** What the fake cloud in a replica's pod says of itself, once it has begun. */
  const cloudBeside = async (pod: string): Promise<CloudBeside> => {
    const log = async () => {
      const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod}/log`;
      const said = await client.request<unknown>('GET', path, { query: { container: 'cloud' } });
      const text = typeof said === 'string' ? said : JSON.stringify(said);
      return text.split('\n').find((line) => line.startsWith('{'));
    };
    await expect.poll(log, { timeout: PATIENCE_MS }).toBeTruthy();
    return JSON.parse((await log())!) as CloudBeside;
  };
  const isReady = (nodes: number) => (found?: WorkerCluster) =>
    found?.status?.observedGeneration === found?.metadata.generation &&
    isTrue(found?.status?.conditions, 'Ready') &&
    found?.status?.nodes?.ready === nodes;

  /** Profile and Seed of the inner garden. Its clusters have ranges that are not those of the cluster they are hosted in. */
  async function setUpGarden(): Promise<void> {
    const profile = (loadAll(await readFile('profiles/simulated.yaml', 'utf8')) as KubeObject[])[0]!;
    Object.assign(profile.spec.defaults, { pods: '10.160.0.0/12', services: '10.128.0.0/16' });
    await client.apply(profile);
    const { status } = await gardenClient().get<Shoot>(SHOOTS, platform.name, platform.namespace);
    const { pods, services } = status!.networking!;
    await client.apply({
      apiVersion: API_VERSION,
      kind: 'Seed',
      metadata: { name: 'here' },
      spec: {
        provider: { type: 'local', region: 'local' },
        networks: { pods: first(pods), services: first(services) },
        exposure: { type: 'ClusterIP' },
      },
    });
  }
  const first = (ranges: string | string[] | undefined) => [ranges ?? []].flat()[0];

  beforeAll(async () => {
    platform = await makeCluster({ dataPlaneNodes: 2 });
    folder = await mkdtemp(join(tmpdir(), 'coppice-chart-'));
    const { helm: program } = await testTools('helm');
    const PATH = [dirname(program), dirname(inject('kubectl')), process.env.PATH].join(delimiter);
    // The garden's mirror, and so all its machines, take images from the folder of tools too.
    const made = { [IMAGE]: await operatorImageName(), 'operator.tar': join(folder, 'operator.tar') };
    const make = commandOnPage(
      'docs/tasks/install.md',
      'npm run image -- --name registry.example.com/platform/coppice-operator:0.1.0 --output operator.tar',
      made,
    );
    ok(
      await runCommand('bash', ['-c', make], {
        env: { ...process.env, PATH, COPPICE_TOOLS: inject('tools') },
        timeoutMs: HELM_MS,
      }),
    );
    await untilReady(platform);
    client = await clusterClient(platform);
    const file = await kubeconfigFile(platform);
    kubeconfig = await readFile(file, 'utf8');
    const env = { PATH, HOME: folder, KUBECONFIG: file };
    shell = (command, ...more) =>
      runCommand('bash', ['-c', `${command} "$@"`, 'bash', ...more], { env, timeoutMs: HELM_MS });
    helm = (...args) => runCommand(program, [...args, '--namespace', NAMESPACE], { env, timeoutMs: HELM_MS });
    await client.create({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: NAMESPACE, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    });
  });
  afterAll(async () => {
    if (platform) await deleteCluster(platform);
    if (folder) await rm(folder, { recursive: true, force: true });
  });

  it('is installed from an older chart, with two replicas of which one leads', async () => {
    await client.apply(await sourcesOfCloud(NAMESPACE));
    const values = join(folder, 'values.yaml');
    await writeFile(values, dump(valuesWithCloud(await operatorImageName())));
    // Without its Job, which in the image of today would bring today's CRDs.
    const instead = {
      'charts/coppice': EARLIER_CHART,
      [REPOSITORY]: (await operatorImageName()).replace(/:[^:]*$/, ''),
    };
    const install = commandOnPage(
      'docs/tasks/install.md',
      'helm install coppice charts/coppice --namespace coppice-system --wait --set image.repository=registry.example.com/platform/coppice-operator',
      instead,
    );
    ok(await shell(install, '--no-hooks', '--values', values, ...WITHIN));
    const pods = await operators();
    expect(pods).toHaveLength(2);
    expect(pods.map(({ metadata }) => metadata.name)).toContain(await leader());
    expect(fieldsOfPools(await crd())).not.toContain(LATER_FIELD);
  });

  it('creates a cluster whose control plane runs beside it', async () => {
    await setUpGarden();
    await client.apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: inner,
      spec: { cloudProvider: 'simulated', controlPlaneNodes: 1, dataPlaneNodes: 2, pools: [{ name: 'a' }] },
    });
    await untilInner(isReady(2), 'to be Ready');
    const planes = await client.list<Pod>(PODS, { namespace: 'shoot--default--inner' });
    expect(planes.items.map(({ metadata }) => metadata.name).join()).toContain('kube-apiserver');
  });

  it('continues when the leading replica is killed', async () => {
    const before = await leader();
    await client.delete(PODS, before, NAMESPACE, { gracePeriodSeconds: 0 });
    const leases = await follow<Lease>(client, LEASES, { namespace: NAMESPACE });
    await leases.waitFor(
      () => {
        const holder = leases.get(`${NAMESPACE}/${OPERATOR}`)?.spec?.holderIdentity;
        return Boolean(holder) && holder !== before;
      },
      { timeoutMs: PATIENCE_MS, what: 'another replica to lead' },
    );
    await client.mergePatch(WORKERCLUSTERS, inner.name, inner.namespace, { spec: { dataPlaneNodes: 3 } });
    await untilInner(isReady(3), 'to have three nodes');
  });

  it('is upgraded with changed CRDs, and clusters keep running', async () => {
    const { metadata } = (await untilInner((found) => found, 'to be there')) as WorkerCluster;
    // Values of the install stay, and those that the new chart adds have their defaults.
    const upgrade = commandOnPage(
      'docs/tasks/upgrade-coppice.md',
      'helm upgrade coppice charts/coppice --namespace coppice-system --reset-then-reuse-values --set image.tag=0.2.0',
      { '0.2.0': (await operatorImageName()).split(':').at(-1)! },
    );
    ok(await shell(upgrade, '--wait', ...WITHIN));
    const { template } = (await client.get<Deployment>(DEPLOYMENTS, OPERATOR, NAMESPACE)).spec;
    expect(template.spec.initContainers.map(({ name }: { name: string }) => name)).toContain('cloud');
    expect(fieldsOfPools(await crd())).toContain(LATER_FIELD);
    const spec = { pools: [{ name: 'a', ...BUDGET }] };
    await client.mergePatch(WORKERCLUSTERS, inner.name, inner.namespace, { spec });
    const found = await untilInner((one) => one?.spec.pools?.[0]?.disruption && isReady(3)(one) && one, 'to have it');
    expect(found.metadata.uid).toBe(metadata.uid);
    ok(await shell(commandOnPage('docs/tasks/install.md', 'helm test coppice --namespace coppice-system')));
  });

  it("creates and deletes a cloud cluster by Pulumi's engine with preinstalled plugins", async () => {
    const pod = await leader();
    const cloud = await cloudBeside(pod);
    const [profile] = loadAll(await readFile('profiles/aws.yaml', 'utf8')) as KubeObject[];
    Object.assign(profile!.spec, { providerConfig: { endpoints: cloud.endpoints } });
    await client.apply(profile!);
    const metadata = { name: 'aws', namespace: 'default' };
    await client.create({ apiVersion: 'v1', kind: 'Secret', metadata, stringData: cloud.credentials });
    await client.apply({
      apiVersion: API_VERSION,
      kind: 'CredentialsBinding',
      metadata,
      provider: { type: 'aws' },
      credentialsRef: { apiVersion: 'v1', kind: 'Secret', ...metadata },
    });
    const blue = { name: 'blue', namespace: 'default' };
    await client.apply({
      apiVersion: API_VERSION,
      kind: 'WorkerCluster',
      metadata: blue,
      spec: { cloudProvider: 'aws', dataPlaneNodes: 2, credentialsRef: { name: 'aws' } },
    });
    await untilThere(blue, (found) => isTrue(found?.status?.conditions, 'InfrastructureReady'), 'to be made');
    await client.delete(WORKERCLUSTERS, blue.name, blue.namespace);
    await untilThere(blue, (found) => !found, 'to be deleted');
    expect(await leader()).toBe(pod);

    // All of it ran in this pod: the operator, worker, engine and plugin.
    const [operator] = (await operators()).filter(({ metadata: { name } }) => name === pod);
    const { resources } = operator!.spec!.containers[0]!;
    const target = { namespace: NAMESPACE, pod, container: 'operator' };
    const peak = Number(await execInPod(kubeconfig, target, ['node', '-e', PEAK_MEMORY], PATIENCE_MS));
    console.log(
      `memory of the leader at its peak: ${Math.round(peak / 2 ** 20)} MiB, limit ${resources?.limits?.memory}`,
    );
    expect(peak).toBeLessThan(2 ** 31);
    const write = [
      'node',
      '-e',
      "try { require('node:fs').writeFileSync('/opt/coppice/x', '') } catch (e) { console.log(e.code) }",
    ];
    expect(await execInPod(kubeconfig, target, write, PATIENCE_MS)).toContain('EROFS');
  });

  it('serves metrics to clients named in metricsFrom, and nothing else to anybody', async () => {
    // In the garden's own seed, since nobody enforces policies in the cluster that the chart is installed in.
    const seed = gardenClient();
    const [operator, monitoring, tenant] = ['operator', 'monitoring', 'tenant'].map(uniqueName) as [
      string,
      string,
      string,
    ];
    for (const name of [operator, monitoring, tenant]) {
      await seed.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      onTestFinished(() => seed.delete(NAMESPACES, name).then(() => undefined));
    }
    const render = async (metricsFrom: object[]) => {
      const set = `networkPolicy.metricsFrom=${JSON.stringify(metricsFrom)}`;
      const objects = loadAll(ok(await helm('template', 'coppice', CHART, '--set-json', set))) as KubeObject[];
      return (kind: string) => objects.find((one) => one?.kind === kind)!;
    };
    const peer = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': monitoring } } };
    const rendered = await render([peer]);
    const applyPolicy = ({ metadata: { name }, ...policy }: KubeObject) =>
      seed.apply({ ...policy, metadata: { name, namespace: operator } } as KubeObject);

    // The pod of the chart, in which something listens at a port more.
    const { metadata, spec } = rendered('Deployment').spec.template;
    const [{ name, image, ports, securityContext }] = spec.containers;
    const serve = `for (const port of [${METRICS_PORT}, ${OTHER_PORT}]) require('http').createServer((_, answer) => answer.end()).listen(port)`;
    const container = { name, image, ports, securityContext, command: ['node', '-e', serve] };
    await seed.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'operator', namespace: operator, labels: { ...metadata.labels, app: 'operator' } },
      spec: { securityContext: spec.securityContext, containers: [container], terminationGracePeriodSeconds: 0 },
    });
    const places = { operator, monitoring, tenant };
    for (const [app, namespace] of Object.entries(places)) {
      const { spec: callers, ...deployment } = echo({ name: `from-${app}` });
      // helm test calls from the operator's namespace.
      if (app === 'operator') Object.assign(callers.template.metadata.labels, rendered('Pod').metadata.labels);
      await seed.apply({ ...deployment, metadata: { name: 'caller', namespace }, spec: callers });
    }
    const podOf = async (app: string) => (await untilPods(seed, app, ([pod]) => pod !== undefined, 'to be Ready'))[0]!;
    const address = (await podOf('operator')).status!.podIP;
    /** Whether a caller in that namespace gets an answer. */
    const reads = async (from: keyof typeof places, port: number) => {
      const { metadata: caller } = await podOf(`from-${from}`);
      const get = ['/usr/local/bin/echo', 'get', `http://${address}:${port}/metrics`];
      return (await kubectl(['exec', '-n', caller.namespace!, caller.name, '--', ...get])).code === 0;
    };
    // It is Ready before it listens.
    for (const port of [METRICS_PORT, OTHER_PORT])
      await expect.poll(() => reads('tenant', port), { timeout: 60_000 }).toBe(true);

    await applyPolicy(rendered('NetworkPolicy'));
    await expect.poll(() => reads('tenant', METRICS_PORT)).toBe(false);
    const seen = [];
    for (const from of ['operator', 'monitoring', 'tenant'] as const)
      for (const port of [METRICS_PORT, OTHER_PORT]) if (await reads(from, port)) seen.push([from, port]);
    expect(seen).toEqual([
      ['operator', METRICS_PORT],
      ['monitoring', METRICS_PORT],
    ]);
    // What values have without a word.
    await applyPolicy((await render([]))('NetworkPolicy'));
    await expect.poll(() => reads('monitoring', METRICS_PORT)).toBe(false);
    expect(await reads('operator', METRICS_PORT)).toBe(true);
  });

  it('is scraped by Prometheus once metricsFrom names it', async () => {
    await client.apply(serviceMonitors());
    const watch = commandOnPage(
      'docs/tasks/watch.md',
      'helm upgrade coppice charts/coppice --namespace coppice-system --reset-then-reuse-values --set monitoring.serviceMonitor.enabled=true --set-json \'networkPolicy.metricsFrom=[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"monitoring"}}}]\'',
    );
    ok(await shell(watch, '--wait', ...WITHIN));
    const path = `/apis/monitoring.coreos.com/v1/namespaces/${NAMESPACE}/servicemonitors/${OPERATOR}`;
    expect(await client.request('GET', path)).toMatchObject({ kind: 'ServiceMonitor' });
  });

  it('is rolled back, without removal of newer fields from CRDs', async () => {
    ok(await helm('rollback', 'coppice', '1', '--wait', '--timeout', '4m'));
    expect(fieldsOfPools(await crd())).toContain(LATER_FIELD);
    expect((await untilInner((found) => found, 'to be there')).spec.pools?.[0]).toMatchObject(BUDGET);
    // As a newer release would have left them. Revision 2 has the Job, which runs when that is gone back to.
    await client.mergePatch(CRDS, WORKER_CLUSTERS, undefined, {
      metadata: { annotations: { [ANNOTATIONS.release]: '99.0.0' } },
    });
    ok(await helm('rollback', 'coppice', '2', '--wait', '--timeout', '4m'));
    expect((await crd()).metadata.annotations?.[ANNOTATIONS.release]).toBe('99.0.0');
  });

  it('is uninstalled only after the last cluster is deleted', async () => {
    const uninstall = commandOnPage('docs/tasks/uninstall.md', 'helm uninstall coppice --namespace coppice-system');
    const refused = await shell(uninstall);
    expect(refused.code).not.toBe(0);
    expect(refused.stdout + refused.stderr).toContain('1 cluster is left: WorkerCluster default/inner. Delete');
    expect(await operators()).toHaveLength(2);

    await client.delete(WORKERCLUSTERS, inner.name, inner.namespace);
    await untilInner((found) => !found, 'to be gone');
    ok(await shell(uninstall, '--wait'));
    expect(await client.getOrUndefined(DEPLOYMENTS, OPERATOR, NAMESPACE)).toBeUndefined();
    // Helm leaves CRDs, and with them what people wrote.
    const ours = (await client.list(CRDS)).items.filter(({ spec }) => spec.group === 'multi-cluster.demo.io');
    expect(ours).toHaveLength((await readdir(`${CHART}/crds`)).length);
  });
});

/** The kind of Prometheus' operator, as far as the chart needs it. */
const serviceMonitors = (): KubeObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'servicemonitors.monitoring.coreos.com' },
  spec: {
    group: 'monitoring.coreos.com',
    scope: 'Namespaced',
    names: { kind: 'ServiceMonitor', plural: 'servicemonitors', singular: 'servicemonitor' },
    versions: [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

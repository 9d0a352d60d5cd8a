import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION, LABELS } from '../../operator/api/group.ts';
import { technicalID } from '../../operator/api/names.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { Informer } from '../../operator/kube/informer.ts';
import { DEPLOYMENTS, EVENTS, type KubeObject, NODES, SEEDS, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { startApiserver } from './apiserver.ts';
import { install, type KeptGarden, operate } from './kept-garden.ts';
import { memoryProfile } from './managed-garden.ts';
import { MemoryCloud } from './memory-cloud.ts';

const PATIENCE_MS = 60_000;
/** What belongs to a garden, or was made by its operator; the rest an API server makes for itself. */
const KEPT =
  /^\/registry\/(multi-cluster\.demo\.io|apiextensions\.k8s\.io|namespaces|minions|storageclasses|validatingadmissionpolic\w+|(secrets|configmaps|serviceaccounts|services\/specs|deployments|statefulsets|poddisruptionbudgets|networkpolicies)\/(shop|shoot--|kube-system\/coppice)|(clusterrole|flowschema|clusterrolebinding)s\/(coppice|cloud-identity))/;

const cluster = (name: string, spec: object): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'shop' },
  spec,
});
const managed = (name: string, more: object = {}) =>
  cluster(name, { cloudProvider: 'memory', dataPlaneNodes: 1, credentialsRef: { name: 'bound' }, ...more });
const onRecord = (name: string, more: object) =>
  cluster(name, { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', controlPlaneNodes: 1, ...more });

/** Makes a garden with clusters at all stages, and keeps what its operator has left when it is killed: test/fixtures/README.md. */
async function keep(file: string): Promise<void> {
  const server = await startApiserver({ flags: ['--storage-media-type=application/json'] });
  const directory = await mkdtemp(join(tmpdir(), 'coppice-keep-'));
  const { client } = server;
  const cloud = new MemoryCloud();
  const stopping = new AbortController();
  await install(server);
  const clusters = new Informer<WorkerCluster>(client, WORKERCLUSTERS);
  const [seeds, events, deployments] = [SEEDS, EVENTS, DEPLOYMENTS].map(
    (resource) => new Informer(client, resource),
  ) as [Informer, Informer, Informer];
  for (const cache of [clusters, seeds, events, deployments]) cache.start();
  const until = <T>(what: string, predicate: () => T | undefined | false) =>
    clusters.waitFor(predicate, { timeoutMs: PATIENCE_MS, what: () => `${what}: ${JSON.stringify(clusters.list())}` });
  const status = (name: string) => clusters.get(`shop/${name}`)?.status;

  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
  await client.create({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cloud-identity' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'reader' }],
  });
  const { uid: _, resourceVersion: __, ...metadata } = memoryProfile.metadata;
  await client.create({ ...memoryProfile, metadata });
  await client.create({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'cloud', namespace: 'shop' },
    stringData: { accessKey: 'key-1' },
  });
  await client.create({
    apiVersion: API_VERSION,
    kind: 'CredentialsBinding',
    metadata: { name: 'bound', namespace: 'shop' },
    provider: { type: 'memory' },
    credentialsRef: { apiVersion: 'v1', kind: 'Secret', name: 'cloud' },
  });
  await client.create({
    apiVersion: API_VERSION,
    kind: 'Quota',
    metadata: { name: 'team', namespace: 'shop' },
    spec: { metrics: { nodes: 30, clusters: 10 } },
  });
  const ready = {
    conditions: [{ type: 'Ready', status: 'True' }],
    allocatable: { cpu: '2', memory: '4Gi', pods: '10' },
    capacity: { cpu: '2', memory: '4Gi', pods: '10' },
  };
  await client.create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n1', labels: { [LABELS.pool]: 'default' } },
  });
  await client.mergePatch(NODES, 'n1', undefined, { status: ready }, { subresource: 'status' });
  await client.mergePatch(NODES, 'n1', undefined, { spec: { taints: null } });

  const operator = await operate(server, cloud, { name: 'one', directory, signal: stopping.signal });
  const pools = [
    { name: 'web', machineType: 'medium', minimum: 2, maximum: 2, labels: { tier: 'web' } },
    { name: 'batch', machineType: 'large', minimum: 1, maximum: 1, taints: [{ key: 'batch', effect: 'NoSchedule' }] },
  ];
  for (const object of [
    managed('one'),
    managed('leaving'),
    managed('forced'),
    managed('asleep', { hibernation: { enabled: true } }),
    onRecord('paper', { dataPlaneNodes: 3, deletionProtection: true }),
    onRecord('pooled', { pools, dataPlaneNodes: 3, ttl: '2160h' }),
    cluster('hosted', { cloudProvider: 'simulated', controlPlaneNodes: 3, dataPlaneNodes: 1 }),
    onRecord('refused', { machineType: 'none-such', dataPlaneNodes: 1 }),
  ])
    await client.create(object);
  for (const name of ['one', 'leaving', 'forced', 'paper', 'pooled'])
    await until(`${name} to be Ready`, () => isTrue(status(name)?.conditions, 'Ready'));
  await until('asleep to sleep', () => status('asleep')?.hibernation?.asleep && status('asleep'));
  await until('refused to be refused', () =>
    status('refused')?.conditions?.some(({ type, status }) => type === 'SpecAccepted' && status === 'False'),
  );

  const isAPIServer = ({ metadata }: KubeObject) => metadata.namespace === technicalID('shop', 'hosted');
  // Nothing in this garden runs its pods.
  await deployments.waitFor(() => deployments.list().find(isAPIServer), {
    timeoutMs: PATIENCE_MS,
    what: 'the API server of hosted to be asked for',
  });

  // Killed in the middle of: a deletion by force, a deletion, a creation.
  const forced = cloud.pause('delete pool default');
  await client.delete(WORKERCLUSTERS, 'forced', 'shop');
  await forced.reached;
  await client.mergePatch(WORKERCLUSTERS, 'forced', 'shop', { metadata: { finalizers: null } });
  await until('forced to be gone', () => status('forced') === undefined);
  await events.waitFor(() => events.list().find(({ reason }) => reason === 'LeftBehind'), {
    timeoutMs: PATIENCE_MS,
    what: 'the report of what was left',
  });
  const leaving = cloud.pause('delete cluster');
  await client.delete(WORKERCLUSTERS, 'leaving', 'shop');
  await leaving.reached;
  const half = cloud.pause('pool default');
  await client.create(managed('half'));
  await half.reached;
  await seeds.waitFor(() => isTrue(seeds.get('local')?.status?.conditions, 'Ready'), {
    timeoutMs: PATIENCE_MS,
    what: 'the seed to be Ready',
  });
  cloud.kill('one');

  const kept: KeptGarden = {
    commit: execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).trim(),
    takenAt: new Date().toISOString(),
    url: server.url,
    ca: server.ca,
    stored: Object.fromEntries(
      Object.entries(await server.dump())
        .map(([key, text]): [string, KubeObject] => [key, JSON.parse(text)])
        // Receipts are in the operator's namespace, under names that depend on their cluster.
        .filter(([key, { metadata }]) => KEPT.test(key) || metadata?.labels?.[LABELS.managedBy] === 'coppice'),
    ),
    made: Object.fromEntries(cloud.made),
  };
  await writeFile(file, gzipSync(JSON.stringify(kept, undefined, 1), { level: 9 }));
  stopping.abort(new Error('all is kept'));
  await Promise.race([operator.stop(), new Promise((resolve) => setTimeout(resolve, 2_000))]);
  await server.stop();
  await rm(directory, { recursive: true, force: true });
}

await keep(process.argv[2] ?? 'garden.json.gz');
process.exit();

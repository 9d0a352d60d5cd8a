import { beforeAll, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../operator/api/names.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { VNI_ANNOTATION } from '../../operator/controllers/shoot/vni.ts';
import { readStatus } from '../../operator/garden/daemon/status.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import type { Informer } from '../../operator/kube/informer.ts';
import {
  CONFIGMAPS,
  type KubeObject,
  NAMESPACES,
  PODS,
  SECRETS,
  SERVICES,
  type Secret,
  SHOOTS,
  STATEFULSETS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import {
  changeCluster,
  coppice,
  e2e,
  follow,
  garden,
  gardenClient,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  uniqueName,
  untilReady,
} from '../kit/garden.ts';

const COUNT = 30;
const KILL_AT = 10;

e2e(`${COUNT} clusters without control planes`, () => {
  const project = uniqueName('scale');
  const names: Name[] = Array.from({ length: COUNT }, (_, i) => ({ name: `c${i}`, namespace: project }));
  const inSeed = new Set(names.map(seedNamespace));
  const ofShoots = { labelSelector: LABELS.shoot };
  let clusters: Informer<WorkerCluster>;
  let namespaces: Informer;
  let keys: Informer<Secret>;
  let records: Informer;
  /** Certificates of authorities that were ever seen, by namespace. */
  const authorities = new Map<string, Set<string>>();

  const inOurs = <T extends KubeObject>(cache: Informer<T>): T[] =>
    cache.list().filter(({ metadata }) => inSeed.has(metadata.namespace ?? metadata.name));
  const readyOnes = () => clusters.list().filter(({ status }) => isTrue(status?.conditions, 'Ready'));
  const kubeconfigs = async () =>
    (await gardenClient().list<Secret>(SECRETS, { namespace: project, labelSelector: LABELS.clusterName })).items;
  const machinesOf = (cluster: Name) =>
    Object.keys((records.get(`${seedNamespace(cluster)}/machines`)?.data as object) ?? {}).sort();

  beforeAll(async () => {
    const client = gardenClient();
    await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: project } });
    clusters = await follow(client, WORKERCLUSTERS, { namespace: project });
    namespaces = await follow(client, NAMESPACES, ofShoots);
    records = await follow(client, CONFIGMAPS, ofShoots);
    keys = await follow(client, SECRETS, ofShoots);
    keys.onChange(({ object }) => {
      const { name, namespace = '' } = object.metadata;
      if (name !== 'pki' || !inSeed.has(namespace)) return;
      const seen = authorities.get(namespace) ?? new Set();
      authorities.set(namespace, seen.add(object.data?.['ca.crt'] ?? ''));
    });
    const pid = (await readStatus(new StateDirectory(garden.home).statusFile))?.processes.find(
      ({ name }) => name === 'operator',
    )?.pid;
    const begun = namespaces.waitFor(() => inOurs(namespaces).length >= KILL_AT, {
      timeoutMs: PATIENCE_MS,
      what: `${KILL_AT} clusters to be begun`,
    });
    const spec = { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', dataPlaneNodes: 3 };
    await Promise.all([
      ...names.map((name) => makeCluster(spec, name)),
      // In the middle of it all.
      begun.then(() => process.kill(pid!, 'SIGKILL')),
    ]);
    await clusters.waitFor(() => readyOnes().length === COUNT, {
      timeoutMs: PATIENCE_MS,
      what: () => `${COUNT} clusters to be Ready (${readyOnes().length} are)`,
    });
    return async () => {
      await client.delete(NAMESPACES, project);
    };
  });

  it('are all Ready although the operator was killed meanwhile, and nothing was created twice', async () => {
    expect(inOurs(namespaces).map(({ metadata }) => metadata.name)).toHaveLength(COUNT);
    expect(new Set(inOurs(namespaces).map(({ metadata }) => metadata.annotations?.[VNI_ANNOTATION])).size).toBe(COUNT);
    expect([...authorities.values()].map((seen) => seen.size)).toEqual(Array.from({ length: COUNT }, () => 1));
    for (const cluster of names) expect(machinesOf(cluster)).toHaveLength(1 + 3);
    const shoots = await gardenClient().list(SHOOTS, { namespace: project });
    expect(shoots.items).toHaveLength(COUNT);
  });

  it('have a kubeconfig with their own CA in a Secret with the usual label', async () => {
    const found = await kubeconfigs();
    expect(found.map(({ metadata }) => metadata.name).sort()).toEqual(
      names.map(({ name }) => kubeconfigSecretName(name)).sort(),
    );
    for (const { metadata, data } of found) {
      const name = metadata.labels?.[LABELS.clusterName] ?? '';
      expect(metadata.name).toBe(kubeconfigSecretName(name));
      const text = Buffer.from(data?.[KUBECONFIG_KEY] ?? '', 'base64').toString();
      const authority = keys.get(`${seedNamespace({ name, namespace: project })}/pki`)?.data?.['ca.crt'];
      expect(text).toContain(Buffer.from(authority!, 'base64').toString('base64'));
      expect(text).toContain('no-api-server.invalid');
    }
  });

  it('run nothing, and report that everywhere', async () => {
    const client = gardenClient();
    for (const resource of [PODS, STATEFULSETS, SERVICES]) {
      const { items } = await client.list(resource, ofShoots);
      expect(items.filter(({ metadata }) => inSeed.has(metadata.namespace ?? ''))).toEqual([]);
    }
    const [first] = names;
    const { status } = clusters.get(`${project}/${first!.name}`)!;
    expect(status).toMatchObject({
      simulated: true,
      controlPlane: { desired: 1, ready: 1 },
      nodes: { desired: 3, current: 3, ready: 3 },
      resource: { total: { cpu: '12', memory: '48Gi', ipPool: '759' } },
      kubeconfigRef: { name: kubeconfigSecretName(first!.name) },
    });
    for (const type of ['Ready', 'NoControlPlane']) {
      expect(findCondition(status?.conditions, type)?.message).toMatch(/^NO CONTROL PLANE: .*[Nn]othing answers/);
    }
    expect(isTrue(status?.conditions, 'APIServerAvailable')).toBe(false);
    expect(findCondition(status?.conditions, 'Simulated')?.message).toContain('NO control plane');
    const shown = await coppice(['get', 'workercluster', first!.name, '-n', project]);
    expect(shown.stdout).toContain('NO CONTROL PLANE');
    const printed = await coppice(['kubeconfig', first!.name, '-n', project]);
    expect(printed.stderr).toContain('NO CONTROL PLANE');
    expect(ok(printed)).toContain('no-api-server.invalid');
  });

  it('are scaled out and in', async () => {
    const cluster = names[1]!;
    const before = machinesOf(cluster);
    await changeCluster(cluster, { dataPlaneNodes: 5 });
    expect((await untilReady(cluster)).status).toMatchObject({
      nodes: { desired: 5, current: 5, ready: 5 },
      resource: { total: { cpu: '20' } },
    });
    expect(machinesOf(cluster)).toHaveLength(1 + 5);
    await changeCluster(cluster, { dataPlaneNodes: 1 });
    expect((await untilReady(cluster)).status).toMatchObject({ nodes: { desired: 1, current: 1, ready: 1 } });
    await records.waitFor(() => machinesOf(cluster).length === 2, {
      timeoutMs: PATIENCE_MS,
      what: 'the record to shrink',
    });
    // The oldest one stays.
    expect(machinesOf(cluster)).toEqual(before.slice(0, 2));
  });

  it('leave nothing behind', async () => {
    const client = gardenClient();
    await Promise.all(names.map(({ name }) => client.delete(WORKERCLUSTERS, name, project)));
    await clusters.waitFor(() => clusters.size === 0, { timeoutMs: PATIENCE_MS, what: 'all clusters to be gone' });
    expect(await kubeconfigs()).toEqual([]);
    expect((await client.list(SHOOTS, { namespace: project })).items).toEqual([]);
    // Kubernetes looks into a namespace only 5 s after its deletion.
    await namespaces.waitFor(() => inOurs(namespaces).length === 0, {
      timeoutMs: PATIENCE_MS,
      what: () => `${inOurs(namespaces).length} namespaces in the seed to be gone`,
    });
    for (const cache of [keys, records]) expect(inOurs<KubeObject>(cache as Informer)).toEqual([]);
  });
});

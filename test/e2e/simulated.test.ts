import { beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import { profileManifests } from '../../operator/api/profiles.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { DEPLOYMENTS, NODES, type Node, PODS, type Pod, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import {
  changeCluster,
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  gardenClient,
  kubeconfigFile,
  kubectl,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  seedPods,
  until,
  untilReady,
} from '../kit/garden.ts';
import { argsOnPage } from '../kit/task-pages/on-page.ts';

e2e('a manifest with a simulated cloud', () => {
  const cluster: Name = { name: 'demo-worker-cluster', namespace: 'default' };
  let client: KubeClient;

  beforeAll(async () => {
    ok(await coppice(['apply', '-f', 'examples/demo-worker-cluster.yaml']));
    await untilReady(cluster);
    client = await clusterClient(cluster);
    return () => deleteCluster(cluster);
  });

  const nodes = async () => (await client.list<Node>(NODES)).items;
  const isReady = (node: Node) => findCondition(node.status?.conditions as [], 'Ready')?.status === 'True';

  it('is applied unchanged', async () => {
    const found = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, cluster.name, cluster.namespace);
    expect(found.spec).toEqual({ cloudProvider: 'aws', controlPlaneNodes: 3, dataPlaneNodes: 20 });
    expect(found.status).toMatchObject({
      controlPlane: { desired: 3, ready: 3 },
      nodes: { desired: 20, current: 20, ready: 20 },
      lastErrors: [],
    });
  });

  it('creates a real control plane of three etcd members and three API servers', async () => {
    const pods = await seedPods(cluster);
    const ready = (app: string) =>
      pods.filter(
        (pod) =>
          pod.metadata.labels?.app === app &&
          pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
      );
    expect(ready(COMPONENTS.etcd)).toHaveLength(3);
    expect(ready(COMPONENTS.apiServer)).toHaveLength(3);
    const health = await client.request<string>('GET', '/readyz/etcd');
    expect(String(health)).toContain('ok');
  });

  it('runs the control plane unprivileged, in a namespace that permits no more', async () => {
    const pods = await seedPods(cluster);
    const users = pods.flatMap(({ status }) => (status?.containerStatuses ?? []) as { user?: object }[]);
    expect(users.length).toBeGreaterThanOrEqual(pods.length);
    for (const { user } of users) expect(user).toMatchObject({ linux: { uid: 65532, gid: 65532 } });
    const shell = { name: 'shell', image: 'example.org/shell:1', securityContext: { privileged: true } };
    const asked = gardenClient().create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'shell', namespace: seedNamespace(cluster) },
      spec: { hostPID: true, containers: [shell] },
    });
    await expect(asked).rejects.toThrow('violates PodSecurity "restricted');
  });

  it('creates 20 nodes with the capacity of their machine type, over all zones', async () => {
    const profile = (await profileManifests()).find(({ metadata }) => metadata.name === 'aws')!;
    const defaults = profile.spec.defaults!;
    const { machineType, region } = defaults;
    const { cpu, memory } = profile.spec.machineTypes.find(({ name }) => name === machineType)!;
    const all = await nodes();
    expect(all).toHaveLength(20);
    for (const node of all) {
      expect(isReady(node)).toBe(true);
      expect(node.status?.capacity).toMatchObject({ cpu, memory });
      expect(node.metadata.labels).toMatchObject({
        'node.kubernetes.io/instance-type': machineType,
        'topology.kubernetes.io/region': region,
      });
    }
    const zones = new Set(all.map((node) => node.metadata.labels?.['topology.kubernetes.io/zone']));
    const known = profile.spec.regions.find(({ name }) => name === region);
    expect([...zones].sort()).toEqual(known?.zones?.map(({ name }) => name).sort());
  });

  it('creates a cluster marked as simulated in status and on the command line', async () => {
    const { status } = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, cluster.name, cluster.namespace);
    expect(status).toMatchObject({ simulated: true, provider: 'simulated' });
    expect(findCondition(status?.conditions, 'Simulated')).toMatchObject({
      status: 'True',
      message: expect.stringContaining('SIMULATED'),
    });
    const table = await coppice(['get']);
    expect(ok(table)).toMatch(/aws \(SIMULATED\)/);
    expect(table.stderr).toContain('SIMULATED');
    expect(ok(await coppice(['describe', cluster.name]))).toContain('SIMULATED');
    expect(ok(await kubectl(['get', 'workerclusters', cluster.name]))).toMatch(/SIMULATED.*\n.* true /);
  });

  it('creates nodes that accept pods, which seem to run', async () => {
    const kubeconfig = await kubeconfigFile(cluster);
    ok(await kubectl(['create', 'deployment', 'web', '--image=example.org/web:1', '--replicas=40'], { kubeconfig }));
    const pods = await follow<Pod>(client, PODS, { namespace: 'default' });
    const running = await pods.waitFor(
      () => {
        const found = pods.list().filter((pod) => pod.status?.phase === 'Running');
        return found.length === 40 && found;
      },
      { timeoutMs: 120_000, what: '40 pods to run' },
    );
    expect(new Set(running.map((pod) => pod.spec.nodeName)).size).toBeGreaterThan(10);
  });

  it('makes pods Ready again that lost it in an outage of the API server', async () => {
    const pods = await follow<Pod>(client, PODS, { namespace: 'kube-system', labelSelector: 'k8s-app=kube-dns' });
    const { name } = pods.list()[0]!.metadata;
    const readyOf = (pod: Pod | undefined) => pod?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    let wasTaken = false;
    pods.onChange(({ object }) => {
      wasTaken ||= object.metadata.name === name && readyOf(object) === 'False';
    });
    const taken = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
    const path = `/api/v1/namespaces/kube-system/pods/${name}/status`;
    const contentType = 'application/strategic-merge-patch+json';
    await client.request('PATCH', path, { body: taken, contentType });
    const isAgain = () => wasTaken && readyOf(pods.get(`kube-system/${name}`)) === 'True';
    await pods.waitFor(isAgain, { timeoutMs: 60_000, what: 'the pod to be Ready again' });
  });

  it('permits no connection from its API server, and reports that nothing runs', async () => {
    const got = (path: string) =>
      client.request<string>('GET', path, { retries: 0 }).catch(({ message }: Error) => message);
    const nothing = 'no-pods-run-in-a-simulated-cluster';
    const system = '/api/v1/namespaces/kube-system';
    expect(await got(`${system}/services/http:kube-dns:9153/proxy/metrics`)).toContain(nothing);
    const dns = { namespace: 'kube-system', labelSelector: 'k8s-app=kube-dns' };
    const [pod] = (await client.list<Pod>(PODS, dns)).items;
    expect(await got(`${system}/pods/${pod!.metadata.name}/log`)).toContain(nothing);
    const other = (await seedPods(cluster)).find(
      ({ metadata }) => metadata.labels?.app === COMPONENTS.controllerManager,
    )!;
    const name = 'forged';
    await client.create({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
    const addresses = [{ type: 'InternalIP', address: other.status!.podIP! }];
    await client.mergePatch(NODES, name, undefined, { status: { addresses } }, { subresource: 'status' });
    const said = await got(`/api/v1/nodes/https:${name}:10257/proxy/healthz`);
    await client.delete(NODES, name);
    expect(said).toContain(nothing);
    const { status } = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, cluster.name, cluster.namespace);
    expect(findCondition(status?.conditions, 'SystemComponentsHealthy')?.message).toContain('run no pods');
  });

  it('is scaled in and out', async () => {
    await changeCluster(cluster, { dataPlaneNodes: 5 });
    const small = await untilReady(cluster);
    expect(small.status?.nodes).toMatchObject({ desired: 5, current: 5, ready: 5 });
    expect(await nodes()).toHaveLength(5);
    // The pods of the nodes that went were drained onto those that stay.
    const pods = await follow<Pod>(client, PODS, { namespace: 'default' });
    const staying = new Set((await nodes()).map((node) => node.metadata.name));
    await pods.waitFor(
      () => {
        const found = pods.list().filter((pod) => pod.status?.phase === 'Running' && !pod.metadata.deletionTimestamp);
        return found.length === 40 && found.every((pod) => staying.has(pod.spec.nodeName ?? ''));
      },
      { timeoutMs: 120_000, what: '40 pods to run on the nodes that stay' },
    );
    await changeCluster(cluster, { dataPlaneNodes: 30 });
    const large = await untilReady(cluster);
    expect(large.status?.nodes).toMatchObject({ desired: 30, current: 30, ready: 30 });
    expect((await nodes()).filter(isReady)).toHaveLength(30);
  });

  it('sleeps, wakes with the size requested meanwhile, and can be deleted asleep', async () => {
    const asleep = (since = 0) =>
      until(
        cluster,
        (found) =>
          found?.status?.phase === 'Hibernated' &&
          found.status.lastOperation?.state === 'Succeeded' &&
          (found.status.observedGeneration ?? 0) >= since &&
          found,
        'to sleep',
      );
    const left = async () => (await seedPods(cluster)).map(({ metadata }) => metadata.name);
    const named = { demo: cluster.name };
    ok(await coppice(argsOnPage('docs/tasks/hibernation.md', 'coppice hibernate demo', named)));
    const wait = argsOnPage('docs/tasks/hibernation.md', 'coppice wait demo --for Hibernated --timeout 5m', named);
    ok(await coppice(wait, { timeoutMs: PATIENCE_MS }));
    expect((await asleep()).status?.lastErrors ?? []).toEqual([]);
    // kwok is one of them.
    expect(await left()).toEqual([]);
    const { metadata } = await changeCluster(cluster, { dataPlaneNodes: 4 });
    expect((await asleep(metadata.generation)).status?.nodes).toMatchObject({ desired: 0, current: 0, ready: 0 });
    expect(await left()).toEqual([]);

    const wake = argsOnPage('docs/tasks/hibernation.md', 'coppice wake demo --wait', named);
    ok(await coppice(wake, { timeoutMs: PATIENCE_MS }));
    const awake = await untilReady(cluster);
    expect(awake.status).toMatchObject({
      controlPlane: { desired: 3, ready: 3 },
      nodes: { desired: 4, current: 4, ready: 4 },
      lastOperation: { type: 'Wake', state: 'Succeeded' },
      lastErrors: [],
    });
    expect((await nodes()).filter(isReady)).toHaveLength(4);
    expect(await client.get(DEPLOYMENTS, 'web', 'default')).toMatchObject({ spec: { replicas: 40 } });

    await changeCluster(cluster, { hibernation: { enabled: true } });
    await asleep();
    await deleteCluster(cluster);
  });
});

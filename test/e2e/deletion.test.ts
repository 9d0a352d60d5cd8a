import { readdir } from 'node:fs/promises';
import { beforeAll, expect, it, vi } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import type { Membership } from '../../operator/api/membership.ts';
import { COMPONENTS, kubeconfigSecretName } from '../../operator/api/names.ts';
import type { WorkerCluster } from '../../operator/api/workercluster.ts';
import { MEMBERSHIP_RECEIPTS } from '../../operator/controllers/membership/receipt.ts';
import { Cgroups, cgroupName, readLayout } from '../../operator/garden/host/cgroups.ts';
import { run } from '../../operator/garden/host/command.ts';
import { networkNames } from '../../operator/garden/host/network.ts';
import { StateDirectory } from '../../operator/garden/state/state.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { memberName } from '../../operator/hubs/member-name.ts';
import {
  CONFIGMAPS,
  MEMBERSHIPS,
  NAMESPACES,
  NODES,
  PDBS,
  type PersistentVolume,
  PODS,
  type Pod,
  PVCS,
  PVS,
  SECRETS,
  SERVICES,
  SHOOTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import {
  changeCluster,
  clusterClient,
  coppice,
  deleteCluster,
  e2e,
  follow,
  garden,
  gardenClient,
  kubeconfigOf,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  uniqueName,
  until,
  untilJoined,
  untilReady,
  untilShoot,
} from '../kit/garden.ts';
import { run as runPods } from '../kit/workload.ts';

/** What there is on this machine because of clusters, by where it is. */
interface Traces {
  volumes: string[];
  pods: string[];
  links: number;
  processes: number;
}

async function traces(): Promise<Traces> {
  const directory = new StateDirectory(garden.home);
  const { namespace } = networkNames(directory.id);
  const list = (folder: string) => readdir(folder).catch(() => [] as string[]);
  const [volumes, pods, links, layout] = await Promise.all([
    list(directory.path('seed', 'volumes')),
    list(directory.path('seed', 'kubelet', 'pods')),
    run(['ip', '-n', namespace, '-o', 'link', 'show']),
    readLayout(),
  ]);
  const processes = await new Cgroups(layout!, cgroupName(directory.id)).processes();
  return { volumes, pods, links: links.trim().split('\n').length, processes: processes.length };
}

/** Nothing in the garden or in the seed bears the cluster's name any more, but for a namespace that Kubernetes is about to remove. */
async function expectGone(cluster: Name): Promise<void> {
  const client = gardenClient();
  const { name, namespace } = cluster;
  expect(await client.getOrUndefined(WORKERCLUSTERS, name, namespace)).toBeUndefined();
  expect(await client.getOrUndefined(SHOOTS, name, namespace)).toBeUndefined();
  expect(await client.getOrUndefined(SECRETS, kubeconfigSecretName(name), namespace)).toBeUndefined();
  const space = await client.getOrUndefined(NAMESPACES, seedNamespace(cluster));
  expect(space === undefined || space.metadata.deletionTimestamp !== undefined).toBe(true);
  for (const resource of [PODS, SECRETS, SERVICES, CONFIGMAPS, PVCS]) {
    const { items } = await client.list(resource, { namespace: seedNamespace(cluster), labelSelector: LABELS.shoot });
    expect(items).toEqual([]);
  }
  const { items } = await client.list<PersistentVolume>(PVS);
  expect(items.filter((volume) => volume.spec.claimRef?.namespace === seedNamespace(cluster))).toEqual([]);
  const memberships = (await client.list<Membership>(MEMBERSHIPS, { namespace })).items;
  expect(memberships.filter(({ spec }) => spec.cluster === name)).toEqual([]);
  for (const resource of [CLUSTERPROFILES, SECRETS])
    expect(await client.getOrUndefined(resource, memberName(namespace, name, 63), namespace)).toBeUndefined();
  const ofCluster = `${LABELS.workerCluster}=${name},${LABELS.workerClusterNamespace}=${namespace}`;
  const receipts = await client.list(SECRETS, { labelSelector: `${MEMBERSHIP_RECEIPTS},${ofCluster}` });
  expect(receipts.items).toEqual([]);
}

e2e('the deletion of a cluster', () => {
  let clean: Traces;
  // The kubelet tidies up after a pod has gone from the API.
  const expectClean = () =>
    expect
      .poll(
        async () => {
          const { processes, ...found } = await traces();
          const spaces = (await gardenClient().list(NAMESPACES, { labelSelector: LABELS.shoot })).items;
          const closing = spaces.filter((space) => space.metadata.deletionTimestamp).length;
          return { ...found, closing, extraProcesses: Math.max(0, processes - clean.processes) };
        },
        { timeout: PATIENCE_MS, interval: 500 },
      )
      .toEqual({ volumes: clean.volumes, pods: clean.pods, links: clean.links, closing: 0, extraProcesses: 0 });

  beforeAll(async () => {
    clean = await traces();
  });

  it('is complete, and the name can be used again at once', async () => {
    const cluster = await makeCluster({ dataPlaneNodes: 1 });
    const before = await untilReady(cluster);
    await untilJoined(cluster);
    const oldKubeconfig = await kubeconfigOf(cluster);
    const full = await traces();
    expect(full.volumes.length).toBeGreaterThan(clean.volumes.length);
    expect(full.links).toBeGreaterThan(clean.links);

    ok(await coppice(['delete', cluster.name, '--wait']));
    await expectGone(cluster);
    const again = await makeCluster({}, cluster);
    const found = await untilReady(again);
    expect(found.metadata.uid).not.toBe(before.metadata.uid);
    expect(await kubeconfigOf(again)).not.toBe(oldKubeconfig);
    const client = await clusterClient(again);
    // A new cluster, not the old one's data.
    expect((await client.list(NODES)).items).toEqual([]);
    await deleteCluster(again);
    await expectGone(again);
    await expectClean();
  });

  it('works in every stage of creation', async () => {
    const [spaces, pods] = await Promise.all([follow(gardenClient(), NAMESPACES), follow<Pod>(gardenClient(), PODS)]);
    const pod = (prefix: string) => (cluster: Name) =>
      pods.waitFor(
        () =>
          pods
            .list()
            .some(({ metadata }) => metadata.namespace === seedNamespace(cluster) && metadata.name.startsWith(prefix)),
        { timeoutMs: PATIENCE_MS, what: `a pod ${prefix} of ${cluster.name}` },
      );
    const space = (cluster: Name) =>
      spaces.waitFor(() => spaces.get(seedNamespace(cluster)), {
        timeoutMs: PATIENCE_MS,
        what: `the namespace of ${cluster.name}`,
      });
    const stages: [stage: string, reached: (cluster: Name) => Promise<unknown>][] = [
      ['asked', async () => {}],
      ['shoot', (cluster) => untilShoot(cluster, (found) => found !== undefined, 'to be made')],
      ['space', space],
      ['etcd', pod(COMPONENTS.etcd)],
      ['api', pod(COMPONENTS.apiServer)],
      ['machine', pod('machines-')],
    ];
    await Promise.all(
      stages.map(async ([stage, reached]) => {
        const cluster = await makeCluster({ dataPlaneNodes: 1 }, { name: uniqueName(`half-${stage}`) });
        await reached(cluster);
        const found = await gardenClient().get<WorkerCluster>(WORKERCLUSTERS, cluster.name, cluster.namespace);
        expect(found.status?.phase, `at the stage ${stage} it is half-built`).not.toBe('Ready');
        await deleteCluster(cluster);
        // An API server lets a delete win over a finalizer that comes in the same moment; then garbage collection takes the rest.
        // How long that moment is depends on how busy the machine is.
        await vi.waitFor(() => expectGone(cluster), { timeout: PATIENCE_MS, interval: 500 });
      }),
    );
    await expectClean();
  });

  it('shows its progress, and does not wait for a scale-out, a new control plane member or a drain', async () => {
    const [outgrowing, draining] = await Promise.all([
      makeCluster({ dataPlaneNodes: 1 }),
      makeCluster({ dataPlaneNodes: 1 }),
    ]);
    await Promise.all([untilReady(outgrowing), untilReady(draining)]);

    const client = await clusterClient(draining);
    const guard = { name: 'guarded', namespace: 'default' };
    await client.create({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: guard,
      spec: { maxUnavailable: 0, selector: { matchLabels: { app: 'guarded' } } },
    });
    await runPods(client, { name: 'guarded' });
    await changeCluster(draining, { dataPlaneNodes: 0 });
    await until(draining, (found) => isTrue(found?.status?.conditions, 'Draining'), 'to drain');
    expect(await client.getOrUndefined(PDBS, guard.name, guard.namespace)).toBeDefined();

    await changeCluster(outgrowing, { dataPlaneNodes: 3, controlPlaneNodes: 3 });
    await untilShoot(outgrowing, (found) => found?.status?.lastOperation?.state === 'Processing', 'to grow');

    const said = until(
      draining,
      (found) => {
        const deleting = findCondition(found?.status?.conditions, 'Deleting');
        return deleting?.status === 'True' && deleting;
      },
      'to say that it is being deleted',
    );
    await Promise.all([deleteCluster(outgrowing), deleteCluster(draining)]);
    expect((await said).message).toBeTruthy();
    await Promise.all([expectGone(outgrowing), expectGone(draining)]);
    await expectClean();
  });

  it('frees the name at once: delete and create again without a pause', async () => {
    const cluster = await makeCluster();
    for (let round = 0; round < 2; round++) {
      await untilShoot(cluster, (found) => found, 'to be there');
      await deleteCluster(cluster);
      await makeCluster({}, cluster);
    }
    await untilReady(cluster);
    await deleteCluster(cluster);
    await expectGone(cluster);
    await expectClean();
  });
});

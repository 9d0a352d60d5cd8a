import { beforeAll, describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { CLOUDPROFILES, conditionIsTrue, NODES, type Node, PDBS, SHOOTS } from '../../operator/kube/resources.ts';
import {
  clusterClient,
  e2e,
  follow,
  gardenClient,
  kubectl,
  makeCluster,
  type Name,
  ok,
  PATIENCE_MS,
  seedPods,
  uniqueName,
  until,
  untilReady,
  untilShoot,
  untilShootReady,
} from '../kit/garden.ts';
import { guard, run, untilNodes, untilPods } from '../kit/workload.ts';

const CREATED_BY = { fieldManager: 'coppice-e2e' };
const readyNames = (nodes: readonly Node[]) =>
  nodes
    .filter((node) => conditionIsTrue(node, 'Ready'))
    .map((node) => node.metadata.name)
    .sort();

e2e('the scaling of', () => {
  describe('a WorkerCluster by "kubectl scale"', () => {
    let cluster: Name;
    let client: KubeClient;
    let first: string;
    const scale = async (replicas: number) =>
      ok(await kubectl(['scale', 'workerclusters', cluster.name, `--replicas=${replicas}`]));

    beforeAll(async () => {
      cluster = await makeCluster({ dataPlaneNodes: 1 });
      await untilReady(cluster);
      client = await clusterClient(cluster);
      first = (await client.list<Node>(NODES)).items[0]!.metadata.name;
    });

    it('adds nodes', async () => {
      await scale(3);
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toMatchObject({ desired: 3, current: 3, ready: 3 });
      expect(readyNames((await client.list<Node>(NODES)).items)).toHaveLength(3);
      const told = await kubectl(['get', 'workerclusters', cluster.name, '-o', 'jsonpath={.status.dataPlaneNodes}']);
      expect(ok(told)).toBe('3');
    });

    it('removes the emptiest node, though another is younger', async () => {
      const others = readyNames((await client.list<Node>(NODES)).items).filter((name) => name !== first);
      // More than the pods of the system that the first node may have: two of CoreDNS, and the provisioner of volumes.
      await Promise.all(others.map((node, i) => run(client, { name: `busy-${i}`, replicas: 4, node })));
      await scale(2);
      await untilReady(cluster);
      const left = await untilNodes(client, (nodes) => nodes.length === 2, 'to be two');
      expect(readyNames(left)).toEqual(others);
      expect((await seedPods(cluster)).map((pod) => pod.metadata.name)).not.toContain(first);
    });

    it('waits for a PodDisruptionBudget, and reports it', async () => {
      await client.apply(guard('guarded'), CREATED_BY);
      const guarded = await run(client, { name: 'guarded', replicas: 2, spread: true });
      await scale(1);
      const message = await until(
        cluster,
        (found) => {
          const draining = findCondition(found?.status?.conditions, 'Draining');
          return draining?.message?.includes('PodDisruptionBudget') && draining.message;
        },
        'to say that a PodDisruptionBudget is in the way',
      );
      const cordoned = await untilNodes(
        client,
        (nodes) => nodes.some((node) => node.spec.unschedulable),
        'to be cordoned',
      );
      const leaving = cordoned.filter((node) => node.spec.unschedulable).map((node) => node.metadata.name);
      expect(leaving).toHaveLength(1);
      expect(message).toContain(leaving[0]);
      expect(message).toContain('default/guarded-');
      expect(message).toMatch(/until \d{4}-\d\d-\d\dT/);
      // What may be evicted has gone meanwhile, what is guarded serves on.
      const still = await untilPods(client, 'guarded', (pods) => pods.length === 2, 'to run on');
      expect(still.map((pod) => pod.metadata.uid).sort()).toEqual(guarded.map((pod) => pod.metadata.uid).sort());
    });

    it('keeps the node when it is requested again meanwhile', async () => {
      const before = (await client.list<Node>(NODES)).items.map((node) => node.metadata.uid).sort();
      await scale(2);
      const found = await untilReady(cluster);
      expect(findCondition(found.status?.conditions, 'Draining')).toBeUndefined();
      const nodes = await untilNodes(client, (all) => all.every((node) => !node.spec.unschedulable), 'to take pods');
      expect(nodes.map((node) => node.metadata.uid).sort()).toEqual(before);
    });

    it('continues when the PodDisruptionBudget is deleted', async () => {
      await scale(1);
      await until(cluster, (found) => isTrue(found?.status?.conditions, 'Draining'), 'to drain');
      await client.delete(PDBS, 'guarded', 'default');
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toMatchObject({ desired: 1, current: 1, ready: 1 });
      expect(findCondition(found.status?.conditions, 'Draining')).toBeUndefined();
      expect((await client.list<Node>(NODES)).items).toHaveLength(1);
    });

    it('permits zero nodes', async () => {
      await scale(0);
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toMatchObject({ desired: 0, current: 0, ready: 0 });
      expect((await client.list<Node>(NODES)).items).toEqual([]);
      expect((await seedPods(cluster)).filter((pod) => pod.metadata.name.startsWith('machines-'))).toEqual([]);
    });
  });

  describe('a Shoot', () => {
    const DRAIN_SECONDS = 8;
    const shoot: Name = { name: uniqueName('hand'), namespace: 'default' };
    const PROFILE = uniqueName('two-types');
    const workers = (count: number, type: string) => [
      {
        name: 'slow',
        machine: { type },
        minimum: count,
        maximum: count,
        maxSurge: 1,
        maxUnavailable: 0,
        machineControllerManager: { machineDrainTimeout: `${DRAIN_SECONDS}s` },
      },
    ];
    const change = (count: number, type: string) =>
      gardenClient().mergePatch(SHOOTS, shoot.name, shoot.namespace, {
        spec: { provider: { workers: workers(count, type) } },
      });
    let client: KubeClient;

    beforeAll(async () => {
      const garden = gardenClient();
      const { spec } = await garden.get<CloudProfile>(CLOUDPROFILES, 'local');
      const machineTypes = [...spec.machineTypes, { ...spec.machineTypes[0]!, name: 'half', cpu: '500m', pods: 20 }];
      await garden.apply<CloudProfile>(
        { apiVersion: API_VERSION, kind: 'CloudProfile', metadata: { name: PROFILE }, spec: { ...spec, machineTypes } },
        CREATED_BY,
      );
      await garden.apply<Shoot>(
        {
          apiVersion: API_VERSION,
          kind: 'Shoot',
          metadata: shoot,
          spec: {
            cloudProfile: { kind: 'CloudProfile', name: PROFILE },
            region: 'local',
            kubernetes: { version: '1.36.3' },
            provider: { type: 'local', workers: workers(2, 'local') },
          },
        },
        CREATED_BY,
      );
      await untilShootReady(shoot);
      client = await clusterClient(shoot);
    });

    it('to another machine type drains and replaces machines one by one', async () => {
      const [web] = await run(client, { name: 'web', replicas: 1 });
      const nodes = await follow<Node>(client, NODES);
      const old = nodes.list().map(({ metadata }) => metadata.name);
      const drained = new Set<string>();
      // A kubelet that is late on a busy machine is not what is counted.
      const came = new Set(old);
      let fewest = old.length;
      nodes.onChange(({ type, object }) => {
        if (object.spec.unschedulable && type !== 'deleted') drained.add(object.metadata.name);
        if (conditionIsTrue(object, 'Ready')) came.add(object.metadata.name);
        const serving = nodes.list().filter(({ metadata, spec }) => came.has(metadata.name) && !spec.unschedulable);
        fewest = Math.min(fewest, serving.length);
      });
      await change(2, 'half');
      const isNew = (node: Node) => node.status?.capacity?.pods === '20' && conditionIsTrue(node, 'Ready');
      const what = 'both nodes to be new ones';
      await nodes.waitFor(() => nodes.size === 2 && nodes.list().every(isNew), { timeoutMs: PATIENCE_MS, what });
      expect([...drained].sort()).toEqual(old.sort());
      expect(fewest).toBe(2);
      const [moved] = await untilPods(client, 'web', (pods) => pods.length === 1, 'to run elsewhere');
      expect(moved!.metadata.uid).not.toBe(web!.metadata.uid);
      expect((await untilShootReady(shoot)).status?.nodes).toEqual({ desired: 2, current: 2, ready: 2 });
    });

    it('with a machineDrainTimeout ends a drain that a PodDisruptionBudget would block for ever', async () => {
      await client.apply(guard('guarded'), CREATED_BY);
      await run(client, { name: 'guarded', replicas: 2, spread: true });

      const nodes = await follow<Node>(client, NODES);
      let cordonedAt: number | undefined;
      let goneAt: number | undefined;
      nodes.onChange(({ type, object }) => {
        if (object.spec.unschedulable && type !== 'deleted') cordonedAt ??= performance.now();
        if (type === 'deleted') goneAt ??= performance.now();
      });
      await change(1, 'half');
      await nodes.waitFor(() => goneAt !== undefined, { timeoutMs: PATIENCE_MS, what: 'a node to go' });
      expect(goneAt! - cordonedAt!).toBeGreaterThan((DRAIN_SECONDS - 1) * 1000);
      expect((await untilShootReady(shoot)).status?.nodes).toEqual({ desired: 1, current: 1, ready: 1 });
      const garden = gardenClient();
      await garden.delete(SHOOTS, shoot.name, shoot.namespace);
      await untilShoot(shoot, (found) => !found, 'to be gone');
      await garden.delete(CLOUDPROFILES, PROFILE);
    });
  });
});

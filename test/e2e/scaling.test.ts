import { beforeAll, describe, expect, it } from 'vitest';
import { findCondition, isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { conditionIsTrue, type KubeObject, NODES, type Node, PDBS, SHOOTS } from '../../operator/kube/resources.ts';
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
import { run, untilNodes, untilPods } from '../kit/workload.ts';

const CREATED_BY = { fieldManager: 'coppice-e2e' };
const readyNames = (nodes: readonly Node[]) =>
  nodes
    .filter((node) => conditionIsTrue(node, 'Ready'))
    .map((node) => node.metadata.name)
    .sort();

/** Forbids that any pod of `app` is evicted. */
const guard = (app: string): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: app, namespace: 'default' },
  spec: { maxUnavailable: 0, selector: { matchLabels: { app } } },
});

e2e('scaling', () => {
  describe('a WorkerCluster, by "kubectl scale"', () => {
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

    it('gets more nodes', async () => {
      await scale(3);
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toEqual({ desired: 3, current: 3, ready: 3 });
      expect(readyNames((await client.list<Node>(NODES)).items)).toHaveLength(3);
      const told = await kubectl(['get', 'workerclusters', cluster.name, '-o', 'jsonpath={.status.dataPlaneNodes}']);
      expect(ok(told)).toBe('3');
    });

    it('gives up the emptiest node, though it is not the youngest', async () => {
      const others = readyNames((await client.list<Node>(NODES)).items).filter((name) => name !== first);
      // More than the two pods of CoreDNS that the first node may have.
      await Promise.all(others.map((node, i) => run(client, { name: `busy-${i}`, replicas: 3, node })));
      await scale(2);
      await untilReady(cluster);
      const left = await untilNodes(client, (nodes) => nodes.length === 2, 'to be two');
      expect(readyNames(left)).toEqual(others);
      expect((await seedPods(cluster)).map((pod) => pod.metadata.name)).not.toContain(first);
    });

    it('waits for a PodDisruptionBudget, and says so', async () => {
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

    it('keeps the node when it is wanted again in the middle', async () => {
      const before = (await client.list<Node>(NODES)).items.map((node) => node.metadata.uid).sort();
      await scale(2);
      const found = await untilReady(cluster);
      expect(findCondition(found.status?.conditions, 'Draining')).toBeUndefined();
      const nodes = await untilNodes(client, (all) => all.every((node) => !node.spec.unschedulable), 'to take pods');
      expect(nodes.map((node) => node.metadata.uid).sort()).toEqual(before);
    });

    it('goes on when the PodDisruptionBudget has gone', async () => {
      await scale(1);
      await until(cluster, (found) => isTrue(found?.status?.conditions, 'Draining'), 'to drain');
      await client.delete(PDBS, 'guarded', 'default');
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toEqual({ desired: 1, current: 1, ready: 1 });
      expect(findCondition(found.status?.conditions, 'Draining')).toBeUndefined();
      expect((await client.list<Node>(NODES)).items).toHaveLength(1);
    });

    it('can do without nodes', async () => {
      await scale(0);
      const found = await untilReady(cluster);
      expect(found.status?.nodes).toEqual({ desired: 0, current: 0, ready: 0 });
      expect((await client.list<Node>(NODES)).items).toEqual([]);
      expect((await seedPods(cluster)).filter((pod) => pod.metadata.name.startsWith('machines-'))).toEqual([]);
    });
  });

  it("a Shoot's machineDrainTimeout ends a drain that a PodDisruptionBudget would hold for ever", async () => {
    const DRAIN_SECONDS = 8;
    const shoot: Name = { name: uniqueName('hand'), namespace: 'default' };
    const workers = (count: number) => [
      {
        name: 'slow',
        machine: { type: 'local' },
        minimum: count,
        maximum: count,
        maxSurge: 1,
        maxUnavailable: 0,
        machineControllerManager: { machineDrainTimeout: `${DRAIN_SECONDS}s` },
      },
    ];
    const garden = gardenClient();
    await garden.apply<Shoot>(
      {
        apiVersion: API_VERSION,
        kind: 'Shoot',
        metadata: shoot,
        spec: {
          cloudProfile: { kind: 'CloudProfile', name: 'local' },
          region: 'local',
          kubernetes: { version: '1.36.3' },
          provider: { type: 'local', workers: workers(2) },
        },
      },
      CREATED_BY,
    );
    await untilShootReady(shoot);
    const client = await clusterClient(shoot);
    await client.apply(guard('guarded'), CREATED_BY);
    await run(client, { name: 'guarded', replicas: 2, spread: true });

    const nodes = await follow<Node>(client, NODES);
    let cordonedAt: number | undefined;
    let goneAt: number | undefined;
    nodes.onChange(({ type, object }) => {
      if (object.spec.unschedulable && type !== 'deleted') cordonedAt ??= performance.now();
      if (type === 'deleted') goneAt ??= performance.now();
    });
    await garden.mergePatch(SHOOTS, shoot.name, shoot.namespace, { spec: { provider: { workers: workers(1) } } });
    await nodes.waitFor(() => goneAt !== undefined, { timeoutMs: PATIENCE_MS, what: 'a node to go' });
    expect(goneAt! - cordonedAt!).toBeGreaterThan((DRAIN_SECONDS - 1) * 1000);
    expect((await untilShootReady(shoot)).status?.nodes).toEqual({ desired: 1, current: 1, ready: 1 });
    await garden.delete(SHOOTS, shoot.name, shoot.namespace);
    await untilShoot(shoot, (found) => !found, 'to be gone');
  });
});

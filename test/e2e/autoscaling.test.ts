import { beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { ANNOTATIONS } from '../../operator/api/group.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import type { Informer } from '../../operator/kube/informer.ts';
import { conditionIsTrue, DEPLOYMENTS, NODES, type Node, PDBS } from '../../operator/kube/resources.ts';
import { clusterClient, e2e, follow, killOperator, makeCluster, type Name, until, untilReady } from '../kit/garden.ts';
import { echo, guard, run, untilNodes, untilPods } from '../kit/workload.ts';

/** A node has 2 CPUs: one such pod fits. */
const requests = { cpu: '1500m' };
/** By which a cloud's termination handler says that it takes a machine away. */
const SPOT_NOTICE = 'aws-node-termination-handler/spot-itn';

e2e('the nodes of an autoscaled pool', () => {
  let cluster: Name;
  let client: KubeClient;
  let nodes: Informer<Node>;
  /** The most nodes that there ever were. */
  let most = 0;
  const said = (type: string) =>
    until(cluster, (found) => findCondition(found?.status?.conditions, type)?.message, `to say ${type}`);
  const ready = () => nodes.list().filter((node) => conditionIsTrue(node, 'Ready'));
  const scale = (replicas: number) =>
    client.mergePatch(DEPLOYMENTS, 'web', 'default', { spec: { replicas } }, { fieldManager: 'test' });

  beforeAll(async () => {
    cluster = await makeCluster({
      dataPlaneNodes: undefined,
      pools: [{ name: 'a', minimum: 0, maximum: 3, autoscale: 'Coppice', scaleInAfter: '3s' }],
    });
    await untilReady(cluster);
    client = await clusterClient(cluster);
    nodes = await follow<Node>(client, NODES);
    nodes.onChange(() => (most = Math.max(most, nodes.list().length)));
  });

  it('are added from zero for waiting pods, as many as they need', async () => {
    const pods = await run(client, { name: 'web', replicas: 2, requests });
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(2);
    expect(most).toBe(2);
    expect(await said('SizeDecided')).toMatch(
      /pool a: 2 nodes, decided by Coppice \(2 pods waited for 2 nodes, first of ReplicaSet default\/web-/,
    );
  });

  it('grow by one once, although the operator is killed meanwhile', async () => {
    const ordered = until(
      cluster,
      (found) => findCondition(found?.status?.conditions, 'SizeDecided')?.message?.includes('pool a: 3 nodes'),
      'to have 3 nodes decided',
    );
    await scale(3);
    await ordered;
    await killOperator();
    await untilPods(client, 'web', (pods) => pods.length === 3, 'to be three');
    expect(most).toBe(3);
  });

  it('stay within the maximum, and the owner of waiting pods is told', async () => {
    await scale(4);
    const message = await until(
      cluster,
      (found) => {
        const autoscaled = findCondition(found?.status?.conditions, 'Autoscaled');
        return autoscaled?.status === 'False' && autoscaled.message;
      },
      'to say who waits',
    );
    expect(message).toMatch(
      /1 pod of ReplicaSet default\/web-.*: the pools that would take them are at their maximum \(pool a\)/,
    );
    expect(most).toBe(3);
  });

  it('are removed when empty, and no pod on the others is touched', async () => {
    const before = await untilPods(client, 'web', (all) => all.length === 3, 'to be three');
    await scale(1);
    const [left] = await untilNodes(client, (all) => all.length === 1, 'to be one');
    const pods = await untilPods(client, 'web', (all) => all.length === 1, 'to be one');
    expect(pods.map(({ spec }) => spec.nodeName)).toEqual([left!.metadata.name]);
    expect(before.map(({ metadata }) => metadata.uid)).toContain(pods[0]!.metadata.uid);
    expect(left!.spec.unschedulable ?? false).toBe(false);
  });

  it('that the cloud interrupts are drained as PodDisruptionBudgets permit, after a replacement is ready', async () => {
    const [left] = await untilNodes(client, (all) => all.length === 1, 'to be one');
    const { name } = left!.metadata;
    const [before] = await untilPods(client, 'web', (all) => all.length === 1, 'to be one');
    await client.apply(guard('web'), { fieldManager: 'test' });
    const taint = (taints: object[] | null) =>
      client.mergePatch(NODES, name, undefined, { spec: { taints } }, { fieldManager: 'test' });
    await taint([{ key: SPOT_NOTICE, effect: 'NoSchedule' }]);
    await until(
      cluster,
      (found) => {
        const { message = '' } = findCondition(found?.status?.conditions, 'Autoscaled') ?? {};
        return message.includes(`node ${name} is being emptied: the cloud takes it away`) && message.includes('budget');
      },
      'to say that a PodDisruptionBudget keeps a pod on a node that its cloud takes away',
    );
    // Whether its pod could be elsewhere by now: it is the budget that keeps it.
    await untilNodes(client, (all) => all.filter((one) => conditionIsTrue(one, 'Ready')).length === 2, 'to be two');
    const [guarded] = await untilPods(client, 'web', (all) => all.length === 1, 'to be one');
    expect(guarded!.metadata.uid).toBe(before!.metadata.uid);
    await client.delete(PDBS, 'web', 'default');
    const elsewhere = await untilPods(
      client,
      'web',
      (all) => all.length === 1 && all[0]!.spec.nodeName !== name,
      'to be elsewhere',
    );
    // As if the cloud had changed its mind: the node is one that nobody needs.
    await taint(null);
    const [stays] = await untilNodes(client, (all) => all.length === 1, 'to be one again');
    expect(stays!.metadata.name).toBe(elsewhere[0]!.spec.nodeName);
  });

  it('shrink to zero, although the operator is killed while it drains the last one', async () => {
    const emptied = nodes.waitFor(
      () => nodes.list().some(({ metadata }) => metadata.annotations?.[ANNOTATIONS.emptiedSince]) || nodes.size === 0,
      { timeoutMs: 60_000, what: 'a node to be emptied' },
    );
    await client.delete(DEPLOYMENTS, echo({ name: 'web' }).metadata.name, 'default');
    await emptied;
    await killOperator();
    await untilNodes(client, (all) => all.length === 0, 'to be gone');
    const found = await until(
      cluster,
      (seen) => seen?.status?.nodes?.current === 0 && seen.status.nodes.desired === 0 && seen,
      'to have no nodes',
    );
    expect(findCondition(found.status?.conditions, 'Autoscaled')?.status).toBe('True');
    expect(ready()).toEqual([]);
  });
});

import { beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import type { Shoot } from '../../operator/api/shoot.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { waitFor } from '../../operator/kube/informer.ts';
import { conditionIsTrue, NODES, type Node, PODS, type Pod, SHOOTS } from '../../operator/kube/resources.ts';
import {
  clusterClient,
  e2e,
  follow,
  gardenClient,
  kubectl,
  type Name,
  ok,
  PATIENCE_MS,
  seedNamespace,
  uniqueName,
  untilShootReady,
} from '../kit/garden.ts';

const CREATED_BY = { fieldManager: 'coppice-e2e' };
/** In place of two and three minutes. */
const HEALTH_SECONDS = 15;
/** Nothing is repaired for ten minutes after the garden's API server was away, as it may have been in another file or on a busy machine. */
const CALM_MS = 10 * 60_000;

e2e('machines with unhealthy nodes', () => {
  const shoot: Name = { name: uniqueName('repair'), namespace: 'default' };
  let client: KubeClient;

  beforeAll(async () => {
    const worker = {
      name: 'web',
      machine: { type: 'local' },
      minimum: 2,
      maximum: 2,
      maxSurge: 1,
      maxUnavailable: 0,
      machineControllerManager: { machineHealthTimeout: `${HEALTH_SECONDS}s` },
    };
    await gardenClient().apply<Shoot>(
      {
        apiVersion: API_VERSION,
        kind: 'Shoot',
        metadata: shoot,
        spec: {
          cloudProfile: { kind: 'CloudProfile', name: 'local' },
          region: 'local',
          kubernetes: { version: '1.36.3' },
          provider: { type: 'local', workers: [worker] },
        },
      },
      CREATED_BY,
    );
    await untilShootReady(shoot);
    client = await clusterClient(shoot);
  });

  it('are restarted over their disks one by one: one with a deleted node, one with a stopped kubelet', async () => {
    const nodes = await follow<Node>(client, NODES);
    const namespace = seedNamespace(shoot);
    const machines = await follow<Pod>(gardenClient(), PODS, { namespace });
    const [deleted, stopped] = nodes.list();
    const machine = (node: Node) => machines.get(`${namespace}/${node.metadata.name}`);
    const before = [deleted, stopped].map((node) => machine(node!)!.metadata.uid);
    const restarts = (node: Node) => machine(node)?.status?.containerStatuses?.[0]?.restartCount;
    const isBack = ({ metadata }: Node) => conditionIsTrue(nodes.get(metadata.name) ?? {}, 'Ready');
    let isTogether = false;
    machines.onChange(() => {
      isTogether ||= restarts(stopped!) === 1 && !isBack(deleted!);
    });

    const stop =
      'for f in /proc/[0-9]*/comm; do [ "$(<$f)" != kubelet ] || kill -STOP "$(basename "$(dirname $f)")"; done';
    ok(await kubectl(['-n', namespace, 'exec', stopped!.metadata.name, '--', 'bash', '-c', stop]));
    await client.delete(NODES, deleted!.metadata.name);

    const what = () => `the deleted node to be back: ${nodes.list().map(({ metadata }) => metadata.name)}`;
    await waitFor([nodes, machines], () => isBack(deleted!) && restarts(deleted!) === 1, {
      timeoutMs: CALM_MS + PATIENCE_MS,
      what,
    });
    expect(nodes.get(deleted!.metadata.name)?.metadata.uid).not.toBe(deleted!.metadata.uid);
    await waitFor([nodes, machines], () => restarts(stopped!) === 1 && isBack(stopped!), {
      timeoutMs: CALM_MS + PATIENCE_MS,
      what: 'the node whose kubelet was stopped to be Ready after a restart',
    });
    expect([deleted, stopped].map((node) => machine(node!)!.metadata.uid)).toEqual(before);
    expect(isTogether).toBe(false);
    const { status } = await untilShootReady(shoot);
    expect(findCondition(status?.conditions, 'EveryNodeReady')?.message).toBe('all 2 nodes are Ready');
    await gardenClient().delete(SHOOTS, shoot.name, shoot.namespace);
  });
});

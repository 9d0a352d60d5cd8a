import { dump, loadAll } from 'js-yaml';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Node } from '../../../operator/kube/resources.ts';
import { simulated, simulatedNode } from '../../../providers/simulated/index.ts';
import { kwokConfiguration, kwokObjects } from '../../../providers/simulated/kwok.ts';
import { context, FakeCluster, pool } from './fixtures.ts';

describe('simulated provider', () => {
  let shoot: FakeCluster;
  const ctx = () => context({ shoot: shoot.client });

  beforeEach(() => {
    shoot = new FakeCluster();
  });

  it('makes nodes as recorded', async () => {
    const taints = [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }];
    const node = simulatedNode(context(), pool({ machineType: 'gpu', taints, labels: { team: 't' } }), 3);
    await expect(dump(node, { lineWidth: -1, noRefs: true })).toMatchFileSnapshot('golden/simulated/node.yaml');
  });

  it('configures kwok as recorded', async () => {
    const text = kwokConfiguration('10.96.0.0/16');
    expect(loadAll(text)).toHaveLength(6);
    await expect(text).toMatchFileSnapshot('golden/simulated/kwok.yaml');
    const [, deployment] = kwokObjects(context(), 'KUBECONFIG');
    await expect(dump(deployment, { lineWidth: -1, noRefs: true })).toMatchFileSnapshot(
      'golden/simulated/deployment.yaml',
    );
  });

  it('makes what is missing, by the lowest free numbers, and then nothing', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 3 }));
    const name = (index: number) => `shoot--team--one-workers-${index}`;
    expect(shoot.names('Node')).toEqual([name(0), name(1), name(2)]);
    await simulated.removeMachines(ctx(), 'workers', [name(1)], 2);
    await simulated.reconcilePool(ctx(), pool({ count: 2 }));
    expect(shoot.names('Node')).toEqual([name(0), name(2)]);
    await simulated.reconcilePool(ctx(), pool({ count: 4 }));
    expect(shoot.names('Node')).toEqual([name(0), name(1), name(2), name(3)]);
    shoot.writes = [];
    await simulated.reconcilePool(ctx(), pool({ count: 4 }));
    expect(shoot.writes).toEqual([]);
  });

  it('never takes nodes away because there are too many', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 3 }));
    await simulated.reconcilePool(ctx(), pool({ count: 0 }));
    expect(await simulated.listMachines(ctx())).toHaveLength(3);
  });

  it('removes a node with the pods that are still on it', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 1 }));
    const [node] = shoot.names('Node');
    for (const [name, nodeName] of [
      ['here', node],
      ['elsewhere', 'x'],
    ] as const) {
      shoot.put({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'n' },
        spec: { nodeName, containers: [] },
      });
    }
    await simulated.removeMachines(ctx(), 'workers', [node!, 'never-was'], 0);
    expect(shoot.names('Node')).toEqual([]);
    expect(shoot.names('Pod')).toEqual(['elsewhere']);
  });

  it('tells nodes of new labels, taints and types, once', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 1, labels: { old: 'x' } }));
    const later = pool({ count: 1, machineType: 'gpu', taints: [{ key: 'k', effect: 'NoSchedule' }] });
    await simulated.reconcilePool(ctx(), later);
    const [node] = [...shoot.objects.values()] as Node[];
    expect(node!.metadata.labels).not.toHaveProperty('old');
    expect(node!.spec.taints).toEqual([{ key: 'k', effect: 'NoSchedule' }]);
    expect(node!.status!.capacity).toEqual({ cpu: '4', memory: '16Gi', pods: '58', 'nvidia.com/gpu': '1' });
    shoot.writes = [];
    await simulated.reconcilePool(ctx(), later);
    expect(shoot.writes).toEqual([]);
  });

  it('does nothing without a cluster', async () => {
    await simulated.reconcilePool(context(), pool());
    expect(await simulated.listMachines(context())).toEqual([]);
    await simulated.deletePool(context(), 'workers');
    await simulated.deleteAll(context());
  });
});

import { dump, loadAll } from 'js-yaml';
import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { simulated, simulatedProvider } from '../../../providers/simulated/index.ts';
import {
  KWOK_ANNOTATION,
  kwokConfiguration,
  kwokObjects,
  READY_AT_ANNOTATION,
} from '../../../providers/simulated/kwok.ts';
import { simulatedNode } from '../../../providers/simulated/node.ts';
import { context, FakeCluster, pool, profile, wanted } from './fixtures.ts';

describe('the simulated provider', () => {
  let shoot: FakeCluster;
  const ctx = () => context({ shoot: shoot.client });

  beforeEach(() => {
    shoot = new FakeCluster();
  });

  it('creates nodes as in the golden file', async () => {
    const taints = [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }];
    const given = { index: 3, zone: 'north-b', readyAfterMs: 0 };
    const node = simulatedNode(context(), pool({ machineType: 'gpu', taints, labels: { team: 't' } }), given, 0);
    await expect(dump(node, { lineWidth: -1, noRefs: true })).toMatchFileSnapshot('golden/simulated/node.yaml');
  });

  it('configures kwok as in the golden file', async () => {
    const text = kwokConfiguration('10.96.0.0/16');
    expect(loadAll(text)).toHaveLength(7);
    await expect(text).toMatchFileSnapshot('golden/simulated/kwok.yaml');
    const [, deployment] = kwokObjects(context(), 'KUBECONFIG');
    await expect(dump(deployment, { lineWidth: -1, noRefs: true })).toMatchFileSnapshot(
      'golden/simulated/deployment.yaml',
    );
  });

  it('creates missing nodes by the lowest free numbers, once', async () => {
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

  it('restores the annotation by which kwok manages a node', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 1 }));
    const name = shoot.names('Node')[0]!;
    const { metadata } = shoot.get<Node>(`Node/${name}`);
    const [key] = Object.keys(KWOK_ANNOTATION);
    delete metadata.annotations![key!];
    const [machine] = await simulated.listMachines(ctx());
    expect(machine).toMatchObject({ phase: 'Running', ready: true });
    await simulated.repair!.restart(ctx(), machine!);
    expect(shoot.get<Node>(`Node/${name}`).metadata.annotations).toMatchObject(KWOK_ANNOTATION);
  });

  it('lists machines from the nodes in a cache without any call', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 2 }));
    const nodes = shoot.names('Node').map((node) => shoot.get<Node>(`Node/${node}`));
    const silent = { list: () => Promise.reject(new Error('nobody is to be asked')) } as unknown as KubeClient;
    const others = [{ ...nodes[0]!, metadata: { name: 'of-nobody' } }];
    const machines = await simulated.listMachines({
      ...ctx(),
      shoot: silent,
      seen: { pods: [], nodes: [...nodes, ...others] },
    });
    expect(machines.map((machine) => machine.name)).toEqual(shoot.names('Node'));
  });

  it('never removes surplus nodes by itself', async () => {
    await simulated.reconcilePool(ctx(), pool({ count: 3 }));
    await simulated.reconcilePool(ctx(), pool({ count: 0 }));
    expect(await simulated.listMachines(ctx())).toHaveLength(3);
  });

  it('removes a node with its remaining pods', async () => {
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

  it('deletes the given pods, and no new pod of the same name', async () => {
    const pod = (name: string, uid: string) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'n', uid },
      spec: { containers: [] },
    });
    shoot.put(pod('ended', 'one'));
    shoot.put(pod('anew', 'second'));
    await simulated.endPods!(ctx(), [pod('ended', 'one'), pod('anew', 'first'), pod('gone', 'x')]);
    expect(shoot.names('Pod')).toEqual(['anew']);
  });

  it('updates labels, taints and types of nodes once', async () => {
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

  describe('in an imperfect cloud', () => {
    let time: number;
    const behaving = (simulation: object) => {
      const imperfect = { ...profile, spec: { ...profile.spec, providerConfig: { simulation } } };
      return context({ shoot: shoot.client, profile: imperfect });
    };
    const provider = simulatedProvider(() => time);
    const nodes = () => [...shoot.objects.values()] as Node[];

    beforeEach(() => {
      time = Date.parse('2026-11-21T00:00:00Z');
    });

    it('reports when a machine will be ready, and Pending until then', async () => {
      const ctx = behaving({ machines: { creation: { p50: '45s' } } });
      await provider.reconcilePool(ctx, pool({ count: 1 }));
      expect(nodes()[0]!.metadata.annotations?.[READY_AT_ANNOTATION]).toBe('2026-11-21T00:00:45.000Z');
      expect(await provider.listMachines(ctx)).toMatchObject([{ phase: 'Pending', ready: false }]);
      time += 45_000;
      expect(await provider.listMachines(ctx)).toMatchObject([{ phase: 'Running' }]);
    });

    it('reports depleted capacity with its code, and still updates existing nodes', async () => {
      const ctx = behaving({ capacity: { depleted: [{ machineType: 'gpu' }] } });
      await provider.reconcilePool(ctx, pool({ count: 1 }));
      const more = pool({ count: 3, machineType: 'gpu', labels: { team: 't' } });
      await expect(provider.reconcilePool(ctx, more)).rejects.toMatchObject({
        code: 'ERR_INFRA_RESOURCES_DEPLETED',
        message: 'pool workers lacks 2 of 3 machines: no gpu left in north-b, north-a',
      });
      expect(nodes()[0]!.metadata.labels).toMatchObject({ team: 't' });
    });

    it('applies one quota to all clusters of the profile', async () => {
      const ctx = behaving({ quota: { nodes: 3 } });
      const other = { ...ctx, technicalID: 'shoot--team--two', shoot: new FakeCluster().client };
      await provider.reconcilePool(other, pool({ count: 2 }));
      await expect(provider.reconcilePool(ctx, pool({ count: 2 }))).rejects.toMatchObject({
        code: 'ERR_INFRA_QUOTA_EXCEEDED',
        message: expect.stringContaining('lacks 1 of 2 machines: 3 of 3 nodes are in use in north'),
      });
      expect(nodes()).toHaveLength(1);
      await provider.deleteAll(other);
      await provider.reconcilePool(ctx, pool({ count: 2 }));
      expect(nodes()).toHaveLength(2);
    });

    it('interrupts spot machines and replaces them', async () => {
      const ctx = behaving({ spot: { interruptionsPerHour: 1 } });
      await provider.reconcilePool(ctx, pool({ count: 2, spot: true }));
      const before = nodes().map((node) => node.metadata.uid);
      shoot.writes = [];
      await provider.reconcilePool(ctx, pool({ count: 2, spot: true }));
      expect(shoot.writes).toEqual([]);
      time += 100 * 3_600_000;
      await provider.reconcilePool(ctx, pool({ count: 2, spot: true }));
      expect(nodes()).toHaveLength(2);
      for (const node of nodes()) expect(before).not.toContain(node.metadata.uid);
    });

    it('refuses unknown settings', () => {
      const [problem] = provider.validate(wanted(), behaving({ latency: '5s' }).profile);
      expect(problem).toEqual({
        field: 'cloudProfile',
        code: 'ERR_CONFIGURATION_PROBLEM',
        message: 'CloudProfile test: spec.providerConfig.simulation has no field latency',
      });
    });
  });

  it('does nothing without a cluster', async () => {
    await simulated.reconcilePool(context(), pool());
    expect(await simulated.listMachines(context())).toEqual([]);
    await simulated.deletePool(context(), 'workers');
    await simulated.deleteAll(context());
  });
});

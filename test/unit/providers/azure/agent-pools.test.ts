import { describe, expect, it } from 'vitest';
import { agentPoolNameOf, agentPoolOf, taintText } from '../../../../providers/azure/agent-pools.ts';
import type { CloudPool } from '../../../../providers/cloud.ts';
import { autoscaled, clusterInputs, pool, subnet, tags } from './fixtures.ts';

const cluster = clusterInputs();
const of = (changes: Partial<CloudPool> = {}) => agentPoolOf(pool(changes), cluster);
const nameOf = (changes: Partial<CloudPool> = {}) => agentPoolNameOf(pool(changes), of(changes));

describe('an agent pool', () => {
  it('has the requested machines, number and zones', () => {
    expect(of()).toMatchObject({
      mode: 'User',
      vmSize: 'Standard_D4s_v5',
      count: 5,
      enableAutoScaling: false,
      availabilityZones: ['1', '2', '3'],
      vnetSubnetID: subnet,
      enableNodePublicIP: false,
      maxPods: 110,
      osDiskType: 'Managed',
    });
    expect(of({ zones: ['2'] }).availabilityZones).toEqual(['2']);
    expect(of({ machineType: 'Standard_D2ps_v5', architecture: 'arm64' }).vmSize).toBe('Standard_D2ps_v5');
    expect(of()).not.toHaveProperty('minCount');
  });

  it('autoscales between minimum and maximum without a fixed number', () => {
    expect(agentPoolOf(autoscaled({ minimum: 2, maximum: 9 }), cluster)).toMatchObject({
      count: 2,
      enableAutoScaling: true,
      minCount: 2,
      maxCount: 9,
    });
    expect(agentPoolOf(autoscaled({ minimum: 2, maximum: 9 }), cluster, 0).count).toBe(2);
    expect(agentPoolOf(pool({ desired: 0, minimum: 2 }), cluster, 7).count).toBe(0);
  });

  it("has the requested disk size, or AKS' default", () => {
    expect(of({ diskGiB: 200 }).osDiskSizeGB).toBe(200);
    expect(of()).not.toHaveProperty('osDiskSizeGB');
  });

  it("of spot machines pays at most the on-demand price, deletes evicted machines, and has AKS' labels and taints", () => {
    expect(
      of({ spot: true, labels: { team: 'a' }, taints: [{ key: 'k', value: 'v', effect: 'NoExecute' }] }),
    ).toMatchObject({
      scaleSetPriority: 'Spot',
      scaleSetEvictionPolicy: 'Delete',
      spotMaxPrice: -1,
      nodeLabels: { team: 'a', 'kubernetes.azure.com/scalesetpriority': 'spot' },
      nodeTaints: ['k=v:NoExecute', 'kubernetes.azure.com/scalesetpriority=spot:NoSchedule'],
    });
    expect(of()).not.toHaveProperty('scaleSetPriority');
    expect(of().nodeTaints).toEqual([]);
  });

  it('of GPU machines gets the driver', () => {
    expect(of({ gpu: 1 }).gpuProfile).toEqual({ driver: 'Install' });
    expect(of()).not.toHaveProperty('gpuProfile');
  });

  it('labels its nodes and its bill with the pool', () => {
    expect(of({ labels: { 'multi-cluster.demo.io/pool': 'mine' } }).nodeLabels).toEqual({
      'multi-cluster.demo.io/pool': 'workers',
    });
    expect(of().tags).toEqual({ ...tags, 'coppice-pool': 'workers' });
  });

  it.each([
    [{ key: 'k', value: 'v', effect: 'NoSchedule' }, 'k=v:NoSchedule'],
    [{ key: 'k', effect: 'NoExecute' }, 'k=:NoExecute'],
  ])('writes taint %o in the form of AKS', (taint, text) => {
    expect(taintText(taint)).toBe(text);
  });

  it('gets another name only for changes that AKS cannot make in place', () => {
    const changes: Partial<CloudPool>[] = [
      { machineType: 'Standard_D8s_v5' },
      { spot: true },
      { zones: ['1'] },
      { diskGiB: 64 },
      { gpu: 1 },
    ];
    expect(new Set([{}, ...changes].map((change) => nameOf(change))).size).toBe(changes.length + 1);
    for (const change of [{ desired: 9 }, { labels: { a: 'b' } }, { maximum: 99 }])
      expect(nameOf(change)).toBe(nameOf());
  });
});

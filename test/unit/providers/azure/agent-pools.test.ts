import { describe, expect, it } from 'vitest';
import { agentPoolNameOf, agentPoolOf, taintText } from '../../../../providers/azure/agent-pools.ts';
import type { CloudPool } from '../../../../providers/cloud.ts';
import { autoscaled, clusterInputs, pool, subnet, tags } from './fixtures.ts';

const cluster = clusterInputs();
const of = (changes: Partial<CloudPool> = {}) => agentPoolOf(pool(changes), cluster);
const nameOf = (changes: Partial<CloudPool> = {}) => agentPoolNameOf(pool(changes), of(changes));

describe('an agent pool', () => {
  it('has the machines, the number and the place that were asked for', () => {
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

  it('is autoscaled between minimum and maximum when no number is given', () => {
    expect(agentPoolOf(autoscaled({ minimum: 2, maximum: 9 }), cluster)).toMatchObject({
      count: 2,
      enableAutoScaling: true,
      minCount: 2,
      maxCount: 9,
    });
    expect(agentPoolOf(autoscaled({ minimum: 2, maximum: 9 }), cluster, 0).count).toBe(2);
    expect(agentPoolOf(pool({ desired: 0, minimum: 2 }), cluster, 7).count).toBe(0);
  });

  it('has a disk of the size that was asked for, otherwise of AKS’ choice', () => {
    expect(of({ diskGiB: 200 }).osDiskSizeGB).toBe(200);
    expect(of()).not.toHaveProperty('osDiskSizeGB');
  });

  it('of spot machines pays the price on demand at most, loses evicted machines, and bears what AKS marks them with', () => {
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

  it('of machines with GPUs gets the driver', () => {
    expect(of({ gpu: 1 }).gpuProfile).toEqual({ driver: 'Install' });
    expect(of()).not.toHaveProperty('gpuProfile');
  });

  it('tells its nodes and its bill which pool it is', () => {
    expect(of({ labels: { 'multi-cluster.demo.io/pool': 'mine' } }).nodeLabels).toEqual({
      'multi-cluster.demo.io/pool': 'workers',
    });
    expect(of().tags).toEqual({ ...tags, 'coppice-pool': 'workers' });
  });

  it.each([
    [{ key: 'k', value: 'v', effect: 'NoSchedule' }, 'k=v:NoSchedule'],
    [{ key: 'k', effect: 'NoExecute' }, 'k=:NoExecute'],
  ])('writes taint %o as AKS reads it', (taint, text) => {
    expect(taintText(taint)).toBe(text);
  });

  it('has another name when AKS could not change it in place, and the same when it can', () => {
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

import { describe, expect, it } from 'vitest';
import { clusterResource, podAddresses } from '../../../operator/clusters/capacity.ts';
import { podRequests } from '../../../operator/kube/pod-requests.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';

const node = (name: string, cpu: string, memory: string, more: Partial<Node['spec']> = {}, ready = 'True'): Node => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name },
  spec: { podCIDR: '100.96.0.0/24', ...more },
  status: { allocatable: { cpu, memory, 'nvidia.com/gpu': '1' }, conditions: [{ type: 'Ready', status: ready }] },
});
const pod = (nodeName: string, requests: Record<string, string>, more: object = {}, phase = 'Running'): Pod =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { nodeName, containers: [{ name: 'c', resources: { requests } }], ...more },
    status: { phase },
  }) as Pod;

describe('clusterResource', () => {
  it('counts all, free, and free in one piece', () => {
    const nodes = [node('a', '2', '4Gi'), node('b', '1500m', '2Gi')];
    const pods = [pod('a', { cpu: '1250m', memory: '1Gi' }), pod('b', { cpu: '100m', 'nvidia.com/gpu': '1' })];
    expect(clusterResource(nodes, pods)).toEqual({
      total: { cpu: '3500m', memory: '6Gi', gpu: '2', ipPool: '506' },
      available: { cpu: '2150m', memory: '5Gi', gpu: '1', ipPool: '504' },
      continuous: { cpu: '1400m', memory: '3Gi', gpu: '1', ipPool: '252' },
    });
  });

  it('leaves out what is finished or not placed yet', () => {
    const pods = [pod('a', { cpu: '1' }, {}, 'Succeeded'), pod('', { cpu: '1' }), pod('a', { cpu: '1' }, {}, 'Failed')];
    expect(clusterResource([node('a', '2', '1Gi')], pods).available?.cpu).toBe('2');
  });

  it('offers no piece on nodes that take no pods', () => {
    const nodes = [
      node('a', '4', '1Gi', { unschedulable: true }),
      node('b', '3', '1Gi', {}, 'False'),
      node('c', '1', '1Gi'),
    ];
    const { total, continuous } = clusterResource(nodes, []);
    expect([total?.cpu, continuous?.cpu]).toEqual(['8', '1']);
  });
});

describe('podRequests', () => {
  const request = (cpu: string) => ({ resources: { requests: { cpu } } });
  it('takes the larger of the containers and the largest init container, with sidecars', () => {
    const spec = {
      containers: [
        { name: 'a', ...request('300m') },
        { name: 'b', ...request('200m') },
      ],
      initContainers: [
        { name: 'sidecar', restartPolicy: 'Always', ...request('100m') },
        { name: 'init', ...request('700m') },
      ],
      overhead: { cpu: '50m' },
    };
    expect(podRequests({ spec } as unknown as Pod).cpu).toBe(850);
  });
  it('gives no address to a pod of the host network', () => {
    expect(podRequests({ spec: { hostNetwork: true, containers: [] } } as unknown as Pod).ipPool).toBe(0);
  });
});

describe('podAddresses', () => {
  it.each([
    ['10.0.0.0/24', 253],
    ['10.0.0.0/30', 1],
    ['10.0.0.0/32', 0],
    [undefined, 0],
  ] as const)('%s has %i', (range, count) => {
    expect(podAddresses(range)).toBe(count);
  });
});

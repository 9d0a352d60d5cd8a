import { describe, expect, it } from 'vitest';
import { clusterResource, countInSteps, countResources, nodeAmounts } from '../../../operator/clusters/capacity.ts';
import { podRequests } from '../../../operator/kube/pod-requests.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';
import { buildNode, buildPod } from '../../kit/builders/objects.ts';

const node = (name: string, cpu: string, memory: string, more: Partial<Node['spec']> = {}, ready = 'True') =>
  buildNode({
    metadata: { name },
    spec: { podCIDR: '100.96.0.0/24', ...more },
    status: { allocatable: { cpu, memory, 'nvidia.com/gpu': '1' }, conditions: [{ type: 'Ready', status: ready }] },
  });
const pod = (nodeName: string, requests: Record<string, string>, more: object = {}, phase = 'Running'): Pod =>
  buildPod({
    metadata: { name: 'p', namespace: undefined },
    spec: { nodeName, containers: [{ name: 'c', resources: { requests } }], ...more },
    status: { phase },
  });

describe('clusterResource', () => {
  it('reports the total, the free amount, and the largest free piece', () => {
    const nodes = [node('a', '2', '4Gi'), node('b', '1500m', '2Gi')];
    const pods = [pod('a', { cpu: '1250m', memory: '1Gi' }), pod('b', { cpu: '100m', 'nvidia.com/gpu': '1' })];
    expect(clusterResource(nodes, pods)).toEqual({
      total: { cpu: '3500m', memory: '6Gi', gpu: '2', ipPool: '506' },
      available: { cpu: '2150m', memory: '5Gi', gpu: '1', ipPool: '504' },
      continuous: { cpu: '1400m', memory: '3Gi', gpu: '1', ipPool: '252' },
    });
  });

  it('excludes finished and unscheduled pods', () => {
    const pods = [pod('a', { cpu: '1' }, {}, 'Succeeded'), pod('', { cpu: '1' }), pod('a', { cpu: '1' }, {}, 'Failed')];
    expect(clusterResource([node('a', '2', '1Gi')], pods).available?.cpu).toBe('2');
  });

  it('offers no piece on unschedulable nodes', () => {
    const nodes = [
      node('a', '4', '1Gi', { unschedulable: true }),
      node('b', '3', '1Gi', {}, 'False'),
      node('c', '1', '1Gi'),
    ];
    const { total, continuous } = clusterResource(nodes, []);
    expect([total?.cpu, continuous?.cpu]).toEqual(['8', '1']);
  });
});

describe('countResources', () => {
  const nodes = [node('a', '2', '4Gi'), node('b', '2', '4Gi')];

  it('counts a node with a pod that requests 64Pi as full, leaves others unchanged, and names the pod', () => {
    const huge = { ...pod('a', { cpu: '1', memory: '64Pi' }), metadata: { name: 'huge', namespace: 'default' } };
    const { resource, uncounted } = countResources(nodes, [huge, pod('b', { memory: '1Gi' })]);
    expect(resource.total?.memory).toBe('8Gi');
    expect(resource.available).toMatchObject({ cpu: '3', memory: '3Gi' });
    expect(resource.continuous?.memory).toBe('3Gi');
    expect(uncounted).toEqual(['Pod default/huge']);
  });

  it.each(['64Pi', '1e999'])('never throws for the sum of many requests of %s', (memory) => {
    const many = Array.from({ length: 1000 }, () => pod('a', { memory, cpu: memory, 'nvidia.com/gpu': memory }));
    expect(countResources(nodes, many).resource.available).toMatchObject({ cpu: '2', memory: '4Gi', gpu: '1' });
  });

  it.each(['x', '9'.repeat(1000)])('counts a node as full for a pod whose request is no quantity', (memory) => {
    const { resource, uncounted } = countResources(nodes, [pod('a', { memory })]);
    expect([resource.available?.memory, uncounted]).toEqual(['4Gi', ['Pod p']]);
  });

  it('counts a node with invalid allocatable as zero, and names it', () => {
    const { resource, uncounted } = countResources([...nodes, node('c', 'x', '4Gi')], []);
    expect([resource.total?.memory, uncounted]).toEqual(['8Gi', ['Node c']]);
  });

  it('names none where all can be counted', () => {
    expect(countResources(nodes, [pod('a', { memory: '1Gi' })]).uncounted).toEqual([]);
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
    expect(podRequests(buildPod({ spec })).cpu).toBe(850);
  });
  it('counts no address for a pod with hostNetwork', () => {
    expect(podRequests(buildPod({ spec: { hostNetwork: true, containers: [] } })).ipPool).toBe(0);
  });
});

describe('addresses for pods of a node', () => {
  it.each([
    ['10.0.0.0/24', 253],
    ['10.0.0.0/30', 1],
    ['10.0.0.0/32', 0],
    [undefined, 0],
  ] as const)('%s has %i', (range, count) => {
    expect(nodeAmounts(node('a', '1', '1Gi', { podCIDR: range })).ipPool).toBe(count);
  });
});

it('countInSteps pauses after some hundred pods, and counts the same', () => {
  const nodes = [node('a', '8', '8Gi')];
  const pods = Array.from({ length: 5_000 }, () => pod('a', { cpu: '1m' }));
  const work = countInSteps(nodes, pods);
  let pauses = 0;
  let next = work.next();
  for (; !next.done; next = work.next()) pauses++;
  expect(pauses).toBeGreaterThanOrEqual(10);
  expect(next.value).toEqual(countResources(nodes, pods));
});

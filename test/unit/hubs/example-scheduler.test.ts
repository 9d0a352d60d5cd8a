import { describe, expect, it } from 'vitest';
import { divided, isAsked, roomOn } from '../../../examples/burst/scheduler.ts';
import { node, pod } from '../../kit/burst.ts';

describe('the example scheduler', () => {
  const rooms = [
    { name: 'bought', replicas: 2, isBought: true },
    { name: 'own-b', replicas: 1, isBought: false },
    { name: 'own-a', replicas: 2, isBought: false },
  ];
  const shares = (replicas: number) => Object.fromEntries(divided(rooms, replicas));

  it('fills standing clusters before bought ones, and empties bought ones first', () => {
    expect(shares(2)).toEqual({ 'own-a': 2, 'own-b': 0, bought: 0 });
    expect(shares(4)).toEqual({ 'own-a': 2, 'own-b': 1, bought: 1 });
    expect(shares(9)).toEqual({ 'own-a': 2, 'own-b': 1, bought: 2 });
  });

  it('counts free capacity of nodes beside other pods, node by node', () => {
    const nodes = [node('a'), node('b')];
    const each = { cpu: '1500m', memory: '1Gi' };
    expect(roomOn(nodes, [], each)).toBe(4);
    expect(roomOn(nodes, [pod('1500m', 'a'), pod('1500m', 'b')], each)).toBe(2);
    expect(roomOn([node('a', 'a', { spec: { unschedulable: true } })], [], each)).toBe(0);
    expect(roomOn([node('a', 'a', { status: { conditions: [] } })], [], each)).toBe(0);
  });

  it.each([
    [undefined, true],
    ['Leaving', true],
    ['Asleep', false],
    ['Initializing', false],
  ])('asks a member that is closed as %s: %s, as one that sleeps would keep all others waiting', (closed, asked) => {
    const labels = { ...(closed && { 'multi-cluster.demo.io/membership-closed': closed }) };
    const profile = {
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ClusterProfile',
      metadata: { name: 'a', labels },
    };
    expect(isAsked(profile)).toBe(asked);
  });
});

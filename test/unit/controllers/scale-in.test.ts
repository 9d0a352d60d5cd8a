import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import {
  DRAINING_ANNOTATION,
  nodesToUncordon,
  planScaleIn,
} from '../../../operator/controllers/shoot/machines/scale-in.ts';
import type { Node, Pod } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { buildNode, buildPod } from '../../kit/builders/objects.ts';

const machine = (name: string, more: Partial<Machine> = {}): Machine => ({
  name,
  pool: 'default',
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '2026-01-01T00:00:00Z',
  ...more,
});
const node = (name: string, annotations: Record<string, string> = {}, ready = 'True') =>
  buildNode({
    metadata: { name, annotations },
    status: { conditions: [{ type: 'Ready', status: ready }] },
  });
const pod = (owner = 'ReplicaSet'): Pod =>
  buildPod({
    metadata: { name: 'p', ownerReferences: [{ kind: owner, controller: true }] },
    spec: { containers: [] },
    status: { phase: 'Running' },
  });

const victims = (count: number, machines: Machine[], nodes: Node[], pods: Record<string, Pod[]> = {}) =>
  planScaleIn(
    [{ name: 'default', count }],
    machines,
    new Map(nodes.map((n) => [n.metadata.name, n])),
    new Map(Object.entries(pods)),
  )
    .flatMap((plan) => plan.victims)
    .map((victim) => victim.name);

describe('planScaleIn', () => {
  it('does nothing up to the desired number', () => {
    expect(victims(2, [machine('a'), machine('b')], [node('a'), node('b')])).toEqual([]);
  });
  it('removes the emptiest first, not counting DaemonSet pods', () => {
    const machines = [machine('a'), machine('b'), machine('c')];
    const nodes = [node('a'), node('b'), node('c')];
    const pods = { a: [pod(), pod()], b: [pod('DaemonSet'), pod('DaemonSet'), pod('DaemonSet')], c: [pod()] };
    expect(victims(1, machines, nodes, pods)).toEqual(['b', 'c']);
  });
  it('removes machines that are not serving first, then those marked by a person', () => {
    const machines = [machine('empty'), machine('marked'), machine('ill'), machine('unborn')];
    const nodes = [node('empty'), node('marked', { [ANNOTATIONS.scaleInFirst]: 'true' }), node('ill', {}, 'False')];
    expect(victims(1, machines, nodes, { marked: [pod()], ill: [pod()] })).toEqual(['unborn', 'ill', 'marked']);
  });
  it('continues with the node it began to drain', () => {
    const nodes = [node('a'), node('b', { [DRAINING_ANNOTATION]: '2026-01-01T00:00:00Z' })];
    expect(victims(1, [machine('a'), machine('b')], nodes, { b: [pod()] })).toEqual(['b']);
  });
  it('counts machines being deleted as gone', () => {
    expect(victims(1, [machine('a'), machine('b', { phase: 'Terminating' })], [node('a'), node('b')])).toEqual([]);
  });
  it('uncordons nodes that may stay', () => {
    const nodes = [node('a', { [DRAINING_ANNOTATION]: 'x' }), node('b', { [DRAINING_ANNOTATION]: 'x' }), node('c')];
    expect(nodesToUncordon(nodes, new Set(['b'])).map((n) => n.metadata.name)).toEqual(['a']);
  });
});

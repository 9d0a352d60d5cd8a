import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { LABELS } from '../../../operator/api/group.ts';
import { say } from '../../../operator/controllers/conditions.ts';
import { strayNodes } from '../../../operator/controllers/shoot/machines/stray-nodes.ts';
import { runningStatus } from '../../../operator/controllers/shoot/status/running-status.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import type { Machine } from '../../../providers/contract.ts';
import { buildNode, buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const WORKERS = pool({ count: 2 });
const shoot = buildShoot({
  metadata: { name: 'one', uid: 'u', generation: 2 },
  spec: {
    provider: {
      workers: [
        { name: 'boss', minimum: 1, maximum: 1, controlPlane: {} },
        { name: WORKERS.name, minimum: 2, maximum: 2 },
      ],
    },
  },
});
const node = (name: string, inPool: string | undefined = WORKERS.name) =>
  buildNode({
    metadata: { name, labels: inPool === '' ? {} : { [LABELS.pool]: inPool } },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  });
const machine = (name: string, more: Partial<Machine> = {}): Machine => ({
  name,
  pool: WORKERS.name,
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '2026-11-21T00:00:00Z',
  ...more,
});
const two = [machine('a'), machine('b')];

describe('nodes without a machine', () => {
  it.each<[string, Node[], Machine[], string[]]>([
    ['are none when each has one', [node('a'), node('b')], two, []],
    ['are those whose machine is gone', [node('a'), node('b'), node('c')], two, ['c']],
    [
      'are those whose machine goes',
      [node('a'), node('b'), node('c')],
      [...two, machine('c', { phase: 'Terminating' })],
      ['c'],
    ],
    [
      'are not those that are being replaced',
      [node('a'), node('b'), node('c')],
      [...two, machine('c', { phase: 'Terminating', outdated: true })],
      [],
    ],
    ['are not those of the control plane', [node('a'), node('b'), node('boss-0', 'boss')], two, []],
    ['are not those that people made', [node('a'), node('b'), node('mine', '')], two, []],
    ['are also those of a pool that was dropped', [node('a'), node('b'), node('x', 'dropped')], two, ['x']],
  ])('%s', (_, nodes, machines, strays) => {
    expect(strayNodes(shoot, nodes, machines)).toEqual(strays);
  });

  it.each<[string, string[], Machine[], object]>([
    ['is Ready with as many nodes as machines', ['a', 'b'], two, { every: 'True', ready: 'True' }],
    ['is not Ready with a node too many', ['a', 'b', 'c'], two, { every: 'False', ready: 'False' }],
    [
      'is not Ready while a machine that was one too many goes',
      ['a', 'b', 'c'],
      [...two, machine('c', { phase: 'Terminating' })],
      { every: 'False', ready: 'False' },
    ],
  ])('a cluster %s', (_, nodes, machines, expected) => {
    const dns = buildPod({
      metadata: { labels: { 'k8s-app': 'kube-dns' } },
      status: { conditions: [{ type: 'Ready', status: 'True' }] },
    });
    const facts = {
      shoot,
      technicalID: 'shoot--team--one',
      seedName: 'local',
      version: '1.36.3',
      endpoint: undefined,
      pools: [WORKERS],
      operation: undefined,
      errors: [],
      observedGeneration: 2,
      usable: { ok: true, message: 'works' },
      inside: { nodes: nodes.map((name) => node(name)), pods: [dns], machines },
      draining: [],
    };
    const healthy = say('ControlPlaneHealthy', true, 'AllReady', 'all');
    const { conditions } = runningStatus(facts, { healthy, desired: 1, ready: 1, resource: undefined }, new Date(0));
    const of = (type: string) => findCondition(conditions, type);
    expect({ every: of('EveryNodeReady')?.status, ready: of('Ready')?.status }).toEqual(expected);
    if (nodes.length > 2) expect(of('Ready')?.message).toContain('without a machine are being removed: c');
  });
});

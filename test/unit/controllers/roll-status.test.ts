import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { say } from '../../../operator/controllers/conditions.ts';
import { runningStatus } from '../../../operator/controllers/shoot/status/running-status.ts';
import type { Machine } from '../../../providers/contract.ts';
import { buildNode, buildPod, buildShoot } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const NOW = new Date('2026-11-21T00:00:00Z');
const node = (name: string) =>
  buildNode({ metadata: { name }, status: { conditions: [{ type: 'Ready', status: 'True' }] } });
const machine = (name: string, more: Partial<Machine> = {}): Machine => ({
  name,
  pool: 'workers',
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '2026-11-21T00:00:00Z',
  ...more,
});
const old = (name: string) => machine(name, { outdated: true });
const dns = buildPod({
  metadata: { labels: { 'k8s-app': 'kube-dns' } },
  status: { conditions: [{ type: 'Ready', status: 'True' }] },
});

/** Conditions of a cluster of two machines, of which these are Ready nodes. */
const conditions = (machines: Machine[], ready: string[], repairing: string[] = []) => {
  const facts = {
    shoot: buildShoot({ metadata: { name: 'one', uid: 'u', generation: 2 }, spec: { provider: {} } }),
    technicalID: 'shoot--team--one',
    seedName: 'local',
    version: '1.36.3',
    endpoint: undefined,
    pools: [pool({ count: 2 })],
    operation: undefined,
    errors: [],
    observedGeneration: 2,
    usable: { ok: true, message: 'works' },
    inside: { nodes: ready.map(node), pods: [dns], machines },
    draining: [],
    repairing,
  };
  const healthy = say('ControlPlaneHealthy', true, 'AllReady', 'all');
  const status = runningStatus(facts, { healthy, desired: 1, ready: 1, resource: undefined }, NOW);
  const of = (type: string) => findCondition(status.conditions, type);
  const every = of('EveryNodeReady');
  return {
    every: every?.status,
    ready: of('Ready')?.status,
    rolling: of('Rolling')?.message,
    ...(repairing.length > 0 && { message: every?.message }),
  };
};

it('status reports the repair of machines with not-Ready nodes, and nothing once all are Ready', () => {
  const lines = ['machine b runs without its node: it was restarted', 'node c is not Ready'];
  expect(conditions([machine('a'), machine('b')], ['a'], lines)).toMatchObject({
    every: 'False',
    message: '1 of 2 nodes are Ready; machine b runs without its node: it was restarted; and 1 more',
  });
  expect(conditions([machine('a'), machine('b')], ['a', 'b'], lines).message).toBe('all 2 nodes are Ready');
});

describe('the status during a roll of machines', () => {
  it.each<[string, Machine[], string[], object]>([
    ['nothing is', [machine('a'), machine('b')], ['a', 'b'], { every: 'True', ready: 'True', rolling: undefined }],
    [
      'one more is coming up',
      [old('a'), old('b'), machine('c')],
      ['a', 'b'],
      { every: 'True', ready: 'True', rolling: 'rolling pool workers: 0 of 2 machines are new' },
    ],
    [
      'one more is there',
      [old('a'), old('b'), machine('c')],
      ['a', 'b', 'c'],
      { every: 'True', ready: 'True', rolling: 'rolling pool workers: 1 of 2 machines are new' },
    ],
    [
      'one is missing',
      [old('a'), machine('c')],
      ['a'],
      { every: 'False', ready: 'False', rolling: 'rolling pool workers: 0 of 2 machines are new' },
    ],
    ['one is too many', [machine('a'), machine('b'), machine('c')], ['a', 'b', 'c'], { every: 'False' }],
  ])('when %s', (_, machines, ready, expected) => {
    expect(conditions(machines, ready)).toMatchObject(expected);
  });
});

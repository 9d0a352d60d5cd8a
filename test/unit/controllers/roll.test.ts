import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import { ofOtherVersions } from '../../../operator/controllers/shoot/hosted/hosted-tasks.ts';
import { paceOf, planRoll, rollLines } from '../../../operator/controllers/shoot/machines/roll.ts';
import { DRAINING_ANNOTATION, planScaleIn } from '../../../operator/controllers/shoot/machines/scale-in.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { type Machine, sizeWhileRolling } from '../../../providers/contract.ts';
import { buildNode, buildPod } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';

const machine = (name: string, more: Partial<Machine> = {}): Machine => ({
  name,
  pool: 'workers',
  nodeName: name,
  phase: 'Running',
  ready: true,
  createdAt: '2026-01-01T00:00:00Z',
  ...more,
});
const old = (name: string, more: Partial<Machine> = {}) => machine(name, { outdated: true, ...more });
const node = (name: string, { ready = true, draining = false, marked = false } = {}): Node =>
  buildNode({
    metadata: {
      name,
      annotations: {
        ...(draining && { [DRAINING_ANNOTATION]: '2026-01-01T00:00:00Z' }),
        ...(marked && { [ANNOTATIONS.scaleInFirst]: 'true' }),
      },
    },

    status: { conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
  });

const planned = (count: number, machines: Machine[], nodes: Node[], pace = { surge: 1, unavailable: 0 }) => {
  const byName = new Map(nodes.map((one) => [one.metadata.name, one]));
  const [plan] = planRoll([{ name: 'workers', count, pace }], machines, byName, new Map());
  return plan && { ...plan, victims: plan.victims.map(({ name }) => name) };
};

describe('paceOf', () => {
  it.each([
    [{}, 3, { surge: 1, unavailable: 0 }],
    [{ maxSurge: '25%', maxUnavailable: '25%' }, 10, { surge: 3, unavailable: 2 }],
    [{ maxSurge: 0, maxUnavailable: 0 }, 10, { surge: 0, unavailable: 1 }],
    [{ maxSurge: 2, maxUnavailable: 5 }, 3, { surge: 2, unavailable: 3 }],
  ])('reads %o of %i machines as Deployments do', (fields, minimum, pace) => {
    expect(paceOf({ maxSurge: 1, maxUnavailable: 0, ...fields, minimum })).toEqual(pace);
  });
});

describe('planRoll', () => {
  it('ignores pools without outdated machines', () => {
    expect(planned(1, [machine('a')], [node('a')])).toBeUndefined();
    expect(planned(1, [machine('a'), old('b', { phase: 'Terminating' })], [node('a'), node('b')])).toBeUndefined();
  });
  it('requests a new machine first, and removes none before its node is Ready', () => {
    const machines = [old('a'), old('b')];
    const nodes = [node('a'), node('b')];
    expect(planned(2, machines, nodes)).toMatchObject({ asked: 3, there: 2, outdated: 2, renewed: 0, victims: [] });
    expect(planned(2, [...machines, machine('new')], nodes)?.victims).toEqual([]);
    expect(planned(2, [...machines, machine('new')], [...nodes, node('new', { ready: false })])?.victims).toEqual([]);
    expect(planned(2, [...machines, machine('new')], [...nodes, node('new')])).toMatchObject({
      renewed: 1,
      victims: ['a'],
    });
  });
  it('requests no more above the size than remain to replace', () => {
    expect(planned(3, [old('a'), machine('b'), machine('c')], [], { surge: 3, unavailable: 0 })?.asked).toBe(4);
    expect(sizeWhileRolling({ count: 0, maxSurge: 1 }, 1)).toBe(0);
  });
  it('continues with the machine it began to drain', () => {
    const nodes = [node('a', { marked: true }), node('b', { draining: true }), node('new')];
    expect(planned(2, [old('a'), old('b'), machine('new')], nodes)?.victims).toEqual(['b']);
  });
  it('prefers machines that are not serving, but waits for a replacement', () => {
    const nodes = [node('a'), node('b', { ready: false })];
    expect(planned(2, [old('a'), old('b')], nodes)?.victims).toEqual([]);
    expect(planned(2, [old('a'), old('b'), machine('new')], nodes)?.victims).toEqual([]);
    expect(planned(2, [old('a'), old('b'), machine('new')], [...nodes, node('new')])?.victims).toEqual(['b']);
  });
  it('adds none where some may be missing', () => {
    const nodes = ['a', 'b', 'c'].map((name) => node(name));
    const machines = [old('a'), old('b'), old('c')];
    expect(planned(3, machines, nodes, { surge: 0, unavailable: 2 })).toMatchObject({ asked: 3, victims: ['a', 'b'] });
    // No node serves: all of them at once would leave nothing to come back to.
    expect(planned(3, machines, [], { surge: 0, unavailable: 1 })?.victims).toEqual(['a']);
  });
});

describe('a pool that shrinks during a roll', () => {
  it('loses outdated machines first, but no serving one before one that is not', () => {
    const machines = [machine('a-new'), old('b'), old('c'), machine('coming')];
    const nodes = new Map(['a-new', 'b', 'c'].map((name) => [name, node(name)]));
    const [plan] = planScaleIn([{ name: 'workers', count: 1 }], machines, nodes, new Map());
    expect(plan?.victims.map(({ name }) => name)).toEqual(['coming', 'b', 'c']);
  });
});

describe('rollLines', () => {
  it('report the progress of each pool', () => {
    const machines = [old('a'), machine('b'), machine('c'), machine('d', { pool: 'other' })];
    const pools = [pool({ count: 2 }), pool({ name: 'other', count: 1 })];
    expect(rollLines(pools, machines, [machines[0]!, machines[1]!])).toEqual([
      'rolling pool workers: 1 of 2 machines are new',
    ]);
  });
});

describe('ofOtherVersions', () => {
  const apiServer = (name: string, version: string, phase = 'Running', app = 'kube-apiserver') =>
    buildPod({
      metadata: { name, labels: { app } },
      spec: { containers: [{ name: app, image: `registry.k8s.io/${app}:v${version}` }] },
      status: { phase },
    });

  it("are API servers older than a kubelet's version, and nothing else", () => {
    const pods = [
      apiServer('new', '1.36.3', 'Pending'),
      apiServer('old', '1.36.1'),
      apiServer('ended', '1.36.1', 'Failed'),
      apiServer('scheduler', '1.36.1', 'Running', 'kube-scheduler'),
    ];
    expect(ofOtherVersions(pods, '1.36.3')).toEqual(['old']);
    expect(ofOtherVersions(pods.slice(0, 1), '1.36.3')).toEqual([]);
  });
});

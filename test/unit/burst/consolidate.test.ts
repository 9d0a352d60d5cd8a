import { describe, expect, it } from 'vitest';
import type {
  ClustersView,
  EmptyingCluster,
  Movable,
  OwnCluster,
  Peak,
  Supply,
} from '../../../operator/burst/clusters/model.ts';
import type { ClusterBilling } from '../../../operator/cost/billing.ts';
import { planByKind } from '../../kit/burst/plan-by-kind.ts';
import { limits, MINUTE, NOW, podOf, template, work } from '../../kit/burst/views.ts';

/** A cluster with one node of so many CPUs, so many of which are in use. */
const supply = (name: string, cpu: number, used = 0, more: Partial<Supply> = {}): Supply => ({
  cluster: `shop/${name}`,
  member: { name, labels: { tier: 'private' }, zones: [] },
  nodes: [
    {
      node: { ...template(cpu), name: 'node', unschedulable: false },
      pods: Array.from({ length: used }, () => podOf('1')),
    },
  ],
  planned: [],
  ...more,
});

const own = (name: string, more: Partial<OwnCluster> = {}): OwnCluster => ({
  key: `shop/${name}`,
  name,
  candidate: 'aws',
  at: NOW - 60 * MINUTE,
  phase: 'Joined',
  idleSince: undefined,
  underusedSince: NOW - 20 * MINUTE,
  hasWork: true,
  hourly: 1_000_000n,
  failure: undefined,
  ...more,
});

/** One bought cluster with two replicas on it, and the private one with 4 CPUs free. */
const view = (more: Partial<ClustersView> = {}): ClustersView => ({
  limits: limits({ maximumClusters: 5 }),
  waiting: [],
  supply: [supply('private', 8, 4), supply('bought', 8, 2)],
  candidates: [{ name: 'aws', priority: 0, left: 3, offer: undefined, problem: undefined }],
  clusters: [own('bought')],
  movable: new Map([['shop/bought', { work: [work('web', 2)] }]]),
  spent: 0n,
  lastOut: undefined,
  lastIn: undefined,
  ...more,
});
const plan = (more: Partial<ClustersView> = {}, now = NOW) => planByKind(view(more), now);
const emptied = (more: Partial<ClustersView> = {}) => plan(more).emptyings.map(({ name }) => name);
/** So many clusters the policy always has. */
const least = (clusters: number): Peak => ({
  name: '',
  candidate: undefined,
  clusters,
  from: 0,
  until: Number.POSITIVE_INFINITY,
  isMinimum: true,
});
const movable = (all: Record<string, Movable>) =>
  new Map(Object.entries(all).map(([name, one]) => [`shop/${name}`, one]));

describe('an underused cluster', () => {
  it('is emptied when all of its work has room elsewhere, and the room is named', () => {
    const { emptyings, removals, stays } = plan();
    expect(emptyings).toEqual([
      {
        name: 'bought',
        why: 'it has little work: 2 replicas (1 CPU each) of web, for which there is room on shop/private',
      },
    ]);
    expect(removals).toEqual([]);
    expect([...stays]).toEqual([]);
  });

  it.each<[string, Partial<ClustersView>, string | undefined]>([
    ['whose work has no room elsewhere', { supply: [supply('private', 8, 7)] }, 'not enough room elsewhere'],
    [
      'whose work just fits, so that one more replica would buy it again',
      { supply: [supply('private', 8, 6)] },
      'room',
    ],
    [
      'whose work fits only on nodes that are on their way',
      { supply: [supply('private', 2, 2, { planned: [{ template: template(8), count: 1 }] })] },
      'on their way',
    ],
    [
      'whose work the hub would not place elsewhere',
      { movable: movable({ bought: { work: [work('web', 2, '1', { accepts: ({ name }) => name === 'bought' })] } }) },
      'not enough room elsewhere',
    ],
    [
      'whose work goes to one cluster as a whole, and no other has room for all of it',
      {
        supply: [supply('private', 8, 6), supply('other', 8, 6)],
        movable: movable({ bought: { work: [work('web', 2, '1', { inOneCluster: true })] } }),
      },
      'not enough room elsewhere',
    ],
    [
      'with work that cannot go elsewhere',
      { movable: movable({ bought: { stays: 'pod shop/db-0 keeps data on volumes' } }) },
      'pod shop/db-0 keeps data on volumes',
    ],
    [
      'whose work has room only on a cluster that goes by itself',
      {
        supply: [supply('private', 8, 8), supply('idle', 8)],
        clusters: [own('bought'), own('idle', { hasWork: false, idleSince: NOW - MINUTE })],
      },
      'not enough room elsewhere',
    ],
    ['while work waits', { waiting: [work('api', 1)] }, 'work of the hub waits'],
    ['while work waits that other policies serve', { hubWaiting: [work('api', 1)] }, 'work of the hub waits'],
    [
      'while another cluster comes',
      { clusters: [own('bought'), own('new', { phase: 'Making', hasWork: false, at: NOW - MINUTE })] },
      'comes or goes',
    ],
    ['while another leaves', { clusters: [own('bought'), own('old', { phase: 'Leaving' })] }, 'comes or goes'],
    [
      'while a peak is on',
      { peaks: [{ name: 'sale', candidate: undefined, clusters: 1, from: NOW - MINUTE, until: NOW + MINUTE }] },
      'peak sale',
    ],
    [
      'before a peak that would have it made again',
      {
        peaks: [{ name: 'sale', candidate: undefined, clusters: 1, from: NOW + 20 * MINUTE, until: NOW + 60 * MINUTE }],
      },
      'peak sale',
    ],
    ['that is among the least that there always are', { peaks: [least(1)] }, 'to have 1 cluster at least'],
    ['where something outside speaks against it', { unsettled: 'another cluster leaves' }, 'another cluster leaves'],
    ['that nobody has looked into', { movable: new Map() }, undefined],
    [
      'that has had little work for a moment',
      { clusters: [own('bought', { underusedSince: NOW - MINUTE })] },
      undefined,
    ],
    ['that is young', { clusters: [own('bought', { at: NOW - 20 * MINUTE })] }, undefined],
    ['soon after something was given back', { lastIn: NOW - MINUTE }, undefined],
    ['soon after something was bought', { lastOut: NOW - MINUTE }, undefined],
    ['that could not be emptied lately', { clusters: [own('bought', { leftAloneUntil: NOW + 1 })] }, undefined],
    ['that waits warm', { clusters: [own('bought', { warm: true })] }, undefined],
    ['of a policy that is suspended', { limits: limits({ maximumClusters: 5, isSuspended: true }) }, undefined],
  ])('%s stays', (_, more, why) => {
    expect(emptied(more)).toEqual([]);
    const said = plan(more).stays.get('bought');
    if (why === undefined) expect(said).toBeUndefined();
    else expect(said).toContain(why);
  });

  it('is emptied although waiting work fits no node', () => {
    const hopeless = [{ ...work('huge', 1), pod: podOf('64') }];
    expect(emptied({ waiting: hopeless })).toEqual(['bought']);
    expect(emptied({ hubWaiting: hopeless })).toEqual(['bought']);
  });

  it('stays for its paid time, and is emptied early enough to be removed before the next billing step', () => {
    const billing: ClusterBilling = {
      machines: { stepMs: 60 * MINUTE, minimumMs: 0 },
      controlPlane: undefined,
      fee: 0n,
    };
    const aged = (minutes: number) => ({ clusters: [own('bought', { at: NOW - minutes * MINUTE, billing })] });
    expect(emptied(aged(65))).toEqual([]);
    expect(plan(aged(65)).next).toBe(NOW + 45 * MINUTE);
    expect(emptied(aged(111))).toEqual(['bought']);
  });

  it('is emptied alone: the one with the highest saving per moved replica', () => {
    const three = {
      clusters: [own('busy'), own('calm'), own('dear', { hourly: 5_000_000n })],
      movable: movable({
        busy: { work: [work('web', 3)] },
        calm: { work: [work('api', 1)] },
        dear: { work: [work('jobs', 2)] },
      }),
    };
    expect(emptied(three)).toEqual(['dear']);
    expect(plan(three).stays.get('calm')).toBe('dear is emptied first');
    expect(emptied({ ...three, clusters: [own('busy'), own('calm')] })).toEqual(['calm']);
  });
});

it('is emptied where more clusters than the minimum exist', () => {
  const clusters = [own('bought'), own('busy', { underusedSince: undefined })];
  expect(emptied({ clusters, peaks: [least(1)] })).toEqual(['bought']);
});

describe('a cluster that is being emptied', () => {
  const going = own('bought', { emptyingSince: NOW - MINUTE });
  const seen = (more: Partial<EmptyingCluster> = {}): EmptyingCluster => ({
    name: 'bought',
    supply: supply('bought', 8, 2),
    hasBegun: true,
    isDone: false,
    problem: undefined,
    ...more,
  });
  const on = (more: Partial<ClustersView> = {}, one: Partial<EmptyingCluster> = {}) =>
    plan({ supply: [supply('private', 8, 4)], clusters: [going], emptying: [seen(one)], ...more });

  it('continues, and no other emptying begins', () => {
    const { kept, emptyings, removals } = on();
    expect([kept, emptyings, removals]).toEqual([[], [], []]);
  });

  it('is removed once its hub has nothing there and nothing runs, not before', () => {
    const done = { clusters: [{ ...going, idleSince: NOW, hasWork: false }] };
    expect(on(done, { isDone: true }).removals).toEqual([
      { name: 'bought', why: 'its work was moved to other clusters', isFailure: false },
    ]);
    expect(on(done).removals).toEqual([]);
    expect(on({}, { isDone: true }).removals).toEqual([]);
  });

  it.each<[string, Partial<ClustersView>, Partial<EmptyingCluster>, boolean]>([
    ['that its hub does not empty', {}, { problem: 'its hub has not moved all of it' }, true],
    [
      'whose work has lost its room before the hub began',
      { supply: [supply('private', 8, 7)] },
      { hasBegun: false },
      true,
    ],
    [
      'whose work turns out to be held before the hub began',
      { movable: movable({ bought: { stays: 'pod shop/new has an annotation' } }) },
      { hasBegun: false },
      true,
    ],
    ['that has room for work which waits and has none elsewhere', { waiting: [work('api', 6)] }, {}, false],
    ['of a policy that is suspended', { limits: limits({ maximumClusters: 5, isSuspended: true }) }, {}, false],
    [
      'when a peak begins',
      { peaks: [{ name: 'sale', candidate: undefined, clusters: 1, from: NOW, until: NOW + MINUTE }] },
      {},
      false,
    ],
    ['that is now among the least that there always are', { peaks: [least(1)] }, {}, false],
  ])('%s takes work again', (_, more, one, isFailure) => {
    const { kept, removals, purchases } = on(more, one);
    expect(kept).toMatchObject([{ name: 'bought', isFailure }]);
    expect([removals, purchases]).toEqual([[], []]);
  });

  it('provides room for waiting work, so that nothing is bought', () => {
    const { verdicts } = on({ waiting: [work('api', 6)] });
    expect(verdicts).toMatchObject([{ source: 'api', state: 'Fits' }]);
  });

  it('continues while waiting work has room elsewhere, or none on this cluster either', () => {
    expect(on({ waiting: [work('api', 2)] }).kept).toEqual([]);
    expect(on({ waiting: [work('large', 1, '32')] }).kept).toEqual([]);
  });

  it('continues while work below the minimum priority waits', () => {
    const waiting = [work('low', 6, '1', { priority: -1 })];
    expect(on({ waiting, limits: limits({ maximumClusters: 5, minimumPriority: 0 }) }).kept).toEqual([]);
  });

  it('continues once the hub has begun, although moved work now takes the expected room', () => {
    expect(on({ supply: [supply('private', 8, 7)] }).kept).toEqual([]);
  });
});

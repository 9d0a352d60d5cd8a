import { describe, expect, it } from 'vitest';
import { JOIN_LIMIT_MS } from '../../../operator/burst/clusters/give-back.ts';
import type {
  ClusterOffer,
  ClusterPrice,
  ClustersView,
  GrowingPool,
  HubCustomKind,
  OwnCluster,
  Peak,
  Supply,
  WaitingWork,
  WarmCluster,
} from '../../../operator/burst/clusters/model.ts';
import { takenByPool } from '../../../operator/burst/clusters/room.ts';
import { fitPod } from '../../../operator/burst/fit/pod.ts';
import type { ClusterBilling } from '../../../operator/cost/billing.ts';
import { planByKind } from '../../kit/burst/plan-by-kind.ts';
import { limits, MINUTE, NOW, podOf, template, work } from '../../kit/burst/views.ts';
import { holds } from '../../kit/property.ts';

/** Nodes of 4 CPU, `most` of them, each at `price` an hour in whole units. */
const offer = (price: number, more: { most?: number; minimum?: number; tier?: string } = {}): ClusterOffer => ({
  member: { name: 'new', labels: { tier: more.tier ?? 'public' }, zones: [] },
  pools: [
    {
      name: 'pool',
      template: template(4),
      minimum: more.minimum ?? 1,
      most: more.most ?? 10,
      price: BigInt(price * 1e6),
    },
  ],
  price: (nodes) => {
    const hourly = BigInt((nodes.get('pool') ?? 0) * price * 1e6);
    return { hourly, most: hourly };
  },
});
/** Of a cluster with an autoscaler, which may have so many nodes at any time. */
const autoscaled = (price: number, autoscaledTo: number): ClusterOffer => {
  const one = offer(price);
  return { ...one, pools: one.pools.map((pool) => ({ ...pool, autoscaledTo })) };
};
/** One whose nodes have 8 CPU. */
const large = (name: string, price: number) => {
  const one = candidate(name, price);
  return {
    ...one,
    offer: { ...one.offer, pools: one.offer.pools.map((pool) => ({ ...pool, template: template(8) })) },
  };
};
const candidate = (
  name: string,
  price: number,
  more: Partial<ClustersView['candidates'][number]> & { most?: number } = {},
) => {
  const { most, ...rest } = more;
  return {
    name,
    priority: 0,
    left: 3,
    offer: offer(price, most === undefined ? {} : { most }),
    problem: undefined,
    ...rest,
  };
};

const HOURLY: ClusterBilling = {
  machines: { stepMs: 60 * MINUTE, minimumMs: 0 },
  controlPlane: undefined,
  fee: 0n,
};
const PER_SECOND: ClusterBilling = { ...HOURLY, machines: { stepMs: 1000, minimumMs: MINUTE } };
/** The same, with its time billed like this. */
const billed = (one: ReturnType<typeof candidate>, billing: ClusterBilling) => ({
  ...one,
  offer: {
    ...one.offer,
    price: (nodes: ReadonlyMap<string, number>) => ({ ...(one.offer.price(nodes) as ClusterPrice), billing }),
  },
});

const own = (name: string, more: Partial<OwnCluster> = {}): OwnCluster => ({
  key: `shop/${name}`,
  name,
  candidate: 'aws',
  at: NOW - 60 * MINUTE,
  phase: 'Joined',
  idleSince: undefined,
  hourly: 1_000_000n,
  failure: undefined,
  ...more,
});

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

const view = (more: Partial<ClustersView> = {}): ClustersView => ({
  limits: limits(),
  waiting: [work('web', 6)],
  supply: [],
  candidates: [candidate('aws', 1), candidate('gcp', 2)],
  clusters: [],
  spent: 0n,
  lastOut: undefined,
  lastIn: undefined,
  ...more,
});

const plan = (more: Partial<ClustersView> = {}, now = NOW) => planByKind(view(more), now);
const bought = (more: Partial<ClustersView> = {}, now = NOW) =>
  plan(more, now).purchases.map(({ candidate, nodes }) => `${candidate} ${nodes.pool}`);
const states = (more: Partial<ClustersView> = {}, now = NOW) => plan(more, now).verdicts.map(({ state }) => state);
const removed = (more: Partial<ClustersView> = {}, now = NOW) => plan(more, now).removals.map(({ name }) => name);

describe('unplaced work', () => {
  it('is served although older work of many sizes exceeds the budget', () => {
    const dear = Array.from({ length: 20 }, (_, index) =>
      work(`dear-${index}`, 40, `${1000 + index}m`, { since: NOW - 60 * MINUTE }),
    );
    const few = work('few', 1, '1', { since: NOW - 30 * MINUTE });
    const { purchases, verdicts } = plan({ waiting: [...dear, few], limits: limits({ hourly: 9_000_000n }) });
    expect(purchases).toMatchObject([{ sources: [few.source] }]);
    expect(verdicts.filter(({ state }) => state === 'Refused')).toHaveLength(8);
    expect(verdicts.find(({ source }) => source === 'dear-19')).toMatchObject({
      state: 'Later',
      message: 'what the policy may still buy is not enough for it, nor for older work',
    });
  });

  it('is served although another namespace has more unservable work than the limit of demands', () => {
    const many = Array.from({ length: 60 }, (_, index) =>
      work(`many-${index}`, 100, '1', { since: NOW - 60 * MINUTE, namespace: 'many' }),
    );
    const few = work('few', 1, '1', { since: NOW - 30 * MINUTE, namespace: 'few' });
    const { purchases } = plan({ waiting: [...many, few], limits: limits({ hourly: 9_000_000n }) });
    expect(purchases).toMatchObject([{ sources: [few.source] }]);
  });

  it.each<[string, [string, number][]]>([
    ['one source has 5,000 replicas', [['vast', 5_000]]],
    [
      'two sources have more together',
      [
        ['vast', 3_000],
        ['wide', 2_500],
      ],
    ],
  ])('is served also where of other namespaces %s', (_, others) => {
    const older = others.map(([namespace, count]) =>
      work(namespace, count, '1', { since: NOW - 60 * MINUTE, namespace }),
    );
    const { purchases } = plan({ waiting: [...older, work('few', 1, '1', { namespace: 'few' })] });
    expect(purchases).toMatchObject([{ sources: ['few'] }]);
  });

  it('is served in turn although older work beyond the limit of demands exceeds the policy', () => {
    const of = (index: number, cpu: string) => work(`vast-${index}`, 4_000, cpu, { since: NOW - 60 * MINUTE + index });
    // The last of them asks for so little that one cluster takes it.
    const waiting = [of(0, '1'), of(1, '1'), of(2, '1'), of(3, '1m')].map((one) => ({
      ...one,
      pod: podOf(one.each.split(' ')[0]!, '1Mi'),
    }));
    const roomy = candidate('aws', 1, { most: 40 });
    const served = (now: number) =>
      plan({ waiting, candidates: [roomy] }, now).purchases.flatMap(({ sources }) => sources);
    const turns = [0, 1, 2].map((minutes) => served(NOW + minutes * MINUTE));
    expect(turns.filter((sources) => sources.length > 0)).toEqual([['vast-3']]);
  });

  it('is served although older work exists that no offer takes', () => {
    const large = Array.from({ length: 50 }, (_, index) =>
      work(`large-${index}`, 1, '8', { since: NOW - 60 * MINUTE - index }),
    );
    const small = work('small', 1);
    const { purchases, verdicts } = plan({ waiting: [...large, small] });
    expect(purchases.map(({ sources }) => sources)).toEqual([['small']]);
    expect(verdicts.filter(({ state }) => state === 'Refused')).toHaveLength(50);
    expect(verdicts.find(({ source }) => source === 'large-7')?.message).toMatch(
      /^nothing is bought for its 1 replica \(8 CPU each\): aws: /,
    );
  });

  it("is served although older work beyond one decision's limit fits no offer", () => {
    const older = { since: NOW - 60 * MINUTE };
    const hopeless = [
      ...Array.from({ length: 4 }, (_, index) => work(`vast-${index}`, 1200, '8', { since: NOW - 90 * MINUTE })),
      // More kinds than are told about one by one.
      ...Array.from({ length: 100 }, (_, index) => work(`large-${index}`, 2, `${9 + index}`, older)),
    ];
    const small = [work('small', 3), work('tiny', 2)];
    const { purchases, verdicts } = plan({ waiting: [...hopeless, ...small] });
    expect(purchases.map(({ sources }) => sources)).toEqual([['small', 'tiny']]);
    const of = (source: string) => verdicts.find((one) => one.source === source);
    expect(of('vast-0')).toMatchObject({ state: 'Refused', message: expect.stringContaining('Insufficient cpu') });
    expect(of('large-90')).toMatchObject({
      state: 'Refused',
      message: 'nothing is bought for its 2 replicas (99 CPU each): no node that is for sale takes one',
    });
    // What is left out is what nothing takes.
    expect(verdicts.filter(({ state }) => state === 'Later').map(({ source }) => source)).toEqual([
      'large-98',
      'large-99',
    ]);
  });

  it('gets existing room in order of age, whatever is offered', () => {
    const [old, young] = [work('old', 1, '8', { since: NOW - 60 * MINUTE }), work('young', 1)];
    const { purchases, verdicts } = plan({ waiting: [young, old], supply: [supply('own', 8)] });
    expect(verdicts.find(({ source }) => source === 'old')?.state).toBe('Fits');
    expect(purchases.map(({ sources }) => sources)).toEqual([['young']]);
  });

  it('is decided quickly for much work and a small budget', () => {
    let asked = 0;
    const offered = candidate('aws', 1, { most: 1000 });
    const counting: ClusterOffer = {
      ...offered.offer,
      price: (nodes) => {
        asked++;
        return offered.offer.price(nodes);
      },
    };
    const waiting = Array.from({ length: 1000 }, (_, index) => work(`web-${index}`, 1));
    const { purchases } = plan({
      waiting,
      candidates: [{ ...offered, offer: counting }],
      limits: limits({ hourly: 3_000_000n }),
    });
    expect(purchases.map(({ nodes }) => nodes.pool)).toEqual([3]);
    // Halving a thousand anew for each that is refused would ask more than a hundred times.
    expect(asked).toBeLessThan(60);
  });

  it('buys the cheapest cluster for all of it, with the nodes it needs, and reports the alternatives', () => {
    const { purchases } = plan();
    expect(purchases).toEqual([
      {
        candidate: 'aws',
        nodes: { pool: 2 },
        price: { hourly: 2_000_000n, most: 2_000_000n },
        sources: ['web'],
        why: '6 replicas (1 CPU each) of web have no place; aws takes 6 of them for 2 USD an hour',
        alternatives: [{ candidate: 'gcp', hourly: 4_000_000n, whyNot: 'aws was better' }],
      },
    ]);
  });

  it('buys from the candidate of higher priority although it costs more', () => {
    expect(bought({ candidates: [candidate('aws', 1), candidate('gcp', 2, { priority: 1 })] })).toEqual(['gcp 2']);
  });

  it('buys several clusters where one is too small', () => {
    expect(bought({ candidates: [candidate('aws', 1, { most: 1 })] })).toEqual(['aws 1', 'aws 1']);
  });

  describe('unplaced work that must go to one cluster', () => {
    const one = { inOneCluster: true } as const;
    const job = (source: string, count: number) => work(source, count, '1', one);
    const two = [supply('own', 4), supply('other', 4)];

    it('fits into one cluster that takes all of it, but not into two', () => {
      expect(states({ waiting: [work('web', 6)], supply: two })).toEqual(['Fits']);
      expect(states({ waiting: [job('train', 4)], supply: two })).toEqual(['Fits']);
      expect(bought({ waiting: [job('train', 6)], supply: two })).toEqual(['aws 2']);
    });

    it('uses the room that earlier work left', () => {
      const waiting = [job('a', 3), job('b', 3), job('c', 1), job('d', 4)];
      const { verdicts } = plan({ waiting, supply: two });
      expect(verdicts.map(({ source, state }) => `${source} ${state}`).sort()).toEqual([
        'a Fits',
        'b Fits',
        'c Fits',
        'd Bought',
      ]);
    });

    it('with several parts is bought for as a whole', () => {
      const small = [candidate('aws', 1, { most: 1 })];
      expect(bought({ waiting: [job('train', 6)], candidates: small })).toEqual([]);
      expect(states({ waiting: [job('train', 6)], candidates: small })).toEqual(['Refused']);
      expect(bought({ waiting: [job('a', 3), job('b', 3)], candidates: small })).toEqual(['aws 1', 'aws 1']);
      const parts = [work('train', 1, '1', one), work('train', 2, '2', one)];
      expect(bought({ waiting: parts, candidates: small })).toEqual([]);
      expect(bought({ waiting: parts })).toEqual(['aws 2']);
    });
  });

  it('prefers a cluster for all of it to a cheaper one for a part', () => {
    const candidates = [candidate('aws', 1, { most: 1 }), candidate('gcp', 1)];
    expect(bought({ candidates })).toEqual(['gcp 2']);
  });

  it('buys the cluster with the lowest cost over its minimum life: half an hour may cost as much as an hour', () => {
    const candidates = [billed(candidate('aws', 1), HOURLY), billed(candidate('gcp', 1.5), PER_SECOND)];
    const [cheapest] = plan({ candidates }).purchases;
    expect(cheapest).toMatchObject({ candidate: 'gcp', price: { hourly: 3_000_000n } });
    expect(cheapest!.alternatives).toEqual([
      {
        candidate: 'aws',
        hourly: 2_000_000n,
        whyNot: 'gcp was better: as its time is billed, this one costs 2 USD at least, that one 1.5',
      },
    ]);
    // For a longer life the hours are used.
    expect(bought({ candidates, limits: limits({ minimumLifeMs: 50 * MINUTE }) })).toEqual(['aws 2']);
    // The part of the price that is no machine's is billed in its own way.
    const fee = { ...HOURLY, fee: 1_000_000n, controlPlane: { stepMs: 1000, minimumMs: 0 } };
    expect(
      bought({ candidates: [billed(candidate('aws', 1), fee), billed(candidate('gcp', 1.4), PER_SECOND)] }),
    ).toEqual(['gcp 2']);
    expect(
      bought({ candidates: [billed(candidate('aws', 1), { ...fee, fee: 2_000_000n }), candidate('gcp', 1.4)] }),
    ).toEqual(['aws 2']);
  });

  it('buys a cluster that is ready in time although it costs more and has a lower priority; otherwise the fastest', () => {
    const slow = candidate('aws', 1, { startupMs: 12 * MINUTE + 16_000, priority: 1 });
    const quick = candidate('gcp', 2, { startupMs: 4 * MINUTE });
    const within = (minutes: number) => ({ limits: limits({ startWithinMs: minutes * MINUTE }) });
    expect(bought({ candidates: [slow, quick] })).toEqual(['aws 2']);
    expect(bought({ candidates: [slow, quick], ...within(15) })).toEqual(['aws 2']);
    const [inTime] = plan({ candidates: [slow, quick], ...within(5) }).purchases;
    expect(inTime).toMatchObject({
      candidate: 'gcp',
      alternatives: [{ whyNot: 'gcp was better: this one needs 13 minutes to start, and 5 minutes are allowed' }],
    });
    expect(bought({ candidates: [slow, quick], ...within(1) })).toEqual(['gcp 2']);
    // What is not known keeps nobody out.
    expect(bought({ candidates: [slow, candidate('gcp', 2)], ...within(1) })).toEqual(['gcp 2']);
    // One that is late is bought where nothing else takes the work.
    expect(bought({ candidates: [slow, candidate('gcp', 2, { problem: 'it rests' })], ...within(1) })).toEqual([
      'aws 2',
    ]);
    // There may be no money for what comes in time: late is better than not at all.
    const little = { limits: limits({ startWithinMs: 5 * MINUTE, hourly: 3_000_000n }) };
    expect(bought({ candidates: [slow, quick], ...little })).toEqual(['aws 2']);
    const small = candidate('gcp', 2, { startupMs: 4 * MINUTE, most: 1 });
    expect(bought({ waiting: [work('web', 12)], candidates: [slow, small], ...little })).toEqual(['aws 3']);
    // Of what costs the same, the quicker.
    expect(bought({ candidates: [{ ...slow, priority: 0 }, candidate('gcp', 1, { startupMs: MINUTE })] })).toEqual([
      'gcp 2',
    ]);
  });

  it('buys nothing where it fits already, and names the cluster', () => {
    const room = { supply: [supply('private', 8, 2)] };
    expect(bought(room)).toEqual([]);
    expect(plan(room).verdicts).toEqual([
      {
        source: 'web',
        state: 'Fits',
        message: 'it fits on shop/private, and the hub has not placed it there yet: nothing is bought',
      },
    ]);
  });

  it('buys only for the part without room', () => {
    expect(bought({ supply: [supply('private', 4, 2)] })).toEqual(['aws 1']);
  });

  it('ignores room in clusters to which the hub would not send it', () => {
    const waiting = [work('web', 6, '1', { accepts: ({ labels }) => labels.tier === 'public' })];
    expect(bought({ waiting, supply: [supply('private', 8)] })).toEqual(['aws 2']);
    const elsewhere = [work('web', 6, '1', { accepts: ({ labels }) => labels.tier === 'gold' })];
    expect(plan({ waiting: elsewhere }).verdicts[0]).toMatchObject({
      state: 'Refused',
      message: expect.stringContaining('its affinity asks for other clusters'),
    });
  });

  describe('unplaced work of a kind that not every cluster serves', () => {
    const kind = (
      servedBy: readonly string[],
      isBroughtTo: HubCustomKind['isBroughtTo'] = () => false,
    ): HubCustomKind => ({
      kind: 'batch.volcano.sh/v1alpha1 Job',
      servedBy: new Set(servedBy),
      isBroughtTo,
    });
    const waits = (customKind: HubCustomKind) => [work('train', 6, '1', { customKind })];
    const like = (name: string, price: number, alike: readonly string[]) => {
      const one = candidate(name, price);
      return { ...one, offer: { ...one.offer, member: { ...one.offer.member, alike } } };
    };

    it.each<[string, HubCustomKind, readonly string[], string[]]>([
      ['nothing where only clusters of another make serve it', kind(['private']), [], []],
      ['one that the hub brings the kind to', kind([], ({ labels }) => labels.tier === 'public'), [], ['aws 2']],
      ['none to which the hub does not bring it', kind([], ({ labels }) => labels.tier === 'own'), [], []],
      ['one like those that serve it', kind(['first', 'second']), ['first', 'second'], ['aws 2']],
      ['none like some of which one does not serve it', kind(['first']), ['first', 'second'], []],
    ])('buys %s', (_, customKind, alike, expected) => {
      const view = { waiting: waits(customKind), candidates: [like('aws', 1, alike)] };
      expect(bought(view)).toEqual(expected);
      if (expected.length === 0)
        expect(plan(view).verdicts).toMatchObject([
          {
            state: 'Refused',
            message: expect.stringContaining('aws: a new cluster of it will not serve batch.volcano'),
          },
        ]);
    });

    it('buys the more expensive of two candidates when the other does not serve the kind', () => {
      const candidates = [like('aws', 1, ['a']), like('gcp', 2, ['b'])];
      const { purchases } = plan({ waiting: waits(kind(['b'])), candidates });
      expect(purchases).toMatchObject([
        { candidate: 'gcp', alternatives: [{ candidate: 'aws', whyNot: expect.stringContaining('will not serve') }] },
      ]);
    });

    it('ignores room where the kind is not served, including ordered clusters', () => {
      const candidates = [like('aws', 1, ['old'])];
      const customKind = kind(['old']);
      expect(bought({ waiting: waits(customKind), candidates, supply: [supply('private', 8)] })).toEqual(['aws 2']);
      const { member, ...coming } = supply('coming', 8);
      const there = { ...coming, member: { ...member, alike: ['old'] } };
      expect(bought({ waiting: waits(customKind), candidates, supply: [there] })).toEqual([]);
      const served = kind(['old', member.name]);
      expect(states({ waiting: waits(served), supply: [supply('coming', 8)] })).toEqual(['Fits']);
    });
  });

  it('counts ordered room, so that nothing is bought twice', () => {
    const coming = { ...supply('coming', 4), nodes: [], planned: [{ template: template(4), count: 2 }] };
    expect(bought({ supply: [coming] })).toEqual([]);
    expect(states({ supply: [coming] })).toEqual(['RoomOrdered']);
  });

  it('buys only after its waiting time and after the cool-down', () => {
    const waiting = [work('web', 6, '1', { since: NOW - 20_000 })];
    expect(states({ waiting })).toEqual(['Stabilising']);
    expect(plan({ waiting }).next).toBe(NOW + 10_000);
    expect(bought({ waiting }, NOW + 10_000)).toEqual(['aws 2']);
    expect(states({ lastOut: NOW - 20_000 })).toEqual(['CoolingDown']);
    expect(plan({ lastOut: NOW - 20_000 }).next).toBe(NOW + 40_000);
  });

  it.each<[string, Partial<ClustersView>, RegExp]>([
    [
      'the budget of an hour',
      { limits: limits({ hourly: 1_500_000n }) },
      /costs 2 USD an hour, and 1.5 USD of the budget/,
    ],
    [
      'the budget of an hour, with what runs',
      { limits: limits({ hourly: 2_500_000n }), clusters: [own('a')] },
      /costs 2 USD an hour, and 1.5 USD of the budget/,
    ],
    [
      'the budget of the month',
      { limits: limits({ monthly: 5_000_000n }), spent: 4_500_000n },
      /costs 1 USD, more than is left of the budget of the month of 5 USD/,
    ],
    [
      'the budget of the month, as time is billed',
      {
        limits: limits({ monthly: 5_000_000n }),
        spent: 3_500_000n,
        candidates: [billed(candidate('aws', 1), HOURLY)],
      },
      /costs 2 USD, more than is left of the budget of the month of 5 USD/,
    ],
    [
      'the budget of the month, with hours that have begun',
      {
        limits: limits({ monthly: 5_000_000n }),
        // A half of its second hour is spent; half an hour more, and it is in its third: 1.5 are still to come.
        clusters: [own('a', { at: NOW - 90 * MINUTE - 1, billing: HOURLY })],
        spent: 2_600_000n,
      },
      /costs 1 USD, more than is left of the budget of the month of 5 USD/,
    ],
    [
      'the maximum',
      { limits: limits({ maximumClusters: 1 }), clusters: [own('a')] },
      /has reached its maximum of 1 clusters/,
    ],
    ['the maximum of a candidate', { candidates: [candidate('aws', 1, { left: 0 })] }, /has reached its own maximum/],
    [
      'a candidate that cannot be made',
      { candidates: [candidate('aws', 1, { problem: 'it rests' })] },
      /aws: it rests/,
    ],
    ['work that no node takes', { waiting: [work('web', 1, '5')] }, /Insufficient cpu/],
  ])('buys nothing against %s, and says so', (_, more, message) => {
    const { purchases, verdicts, left } = plan(more);
    expect(purchases).toEqual([]);
    expect(verdicts[0]).toMatchObject({ state: 'Refused', message: expect.stringMatching(message) });
    // Another policy may have it.
    expect(left).toHaveLength(1);
  });

  it('does not buy for a part of a source that the hub would not place, and serves others instead', () => {
    const waiting = [work('large', 100), work('web', 6, '1', { since: NOW - MINUTE })];
    const { purchases, verdicts } = plan({ waiting, limits: limits({ hourly: 3_000_000n }) });
    expect(purchases.map(({ sources }) => sources)).toEqual([['web']]);
    expect(verdicts.map(({ source, state }) => [source, state])).toEqual([
      ['large', 'Refused'],
      ['web', 'Bought'],
    ]);
  });

  it('passes a budget that is too small for it on to other work', () => {
    const waiting = Array.from({ length: 60 }, (_, index) => work(`web-${index}`, 100 - index));
    const { verdicts, left } = plan({ waiting, limits: limits({ hourly: 1_000_000n }) });
    expect(new Set(verdicts.map(({ state }) => state))).toEqual(new Set(['Refused', 'Later']));
    expect(left).toHaveLength(60);
    const vast = [0, 1, 2].map((index) => work(`vast-${index}`, 4_000, '1', { since: NOW - 60 * MINUTE + index }));
    expect(plan({ waiting: vast }).left).toHaveLength(2);
  });

  it('buys nothing while the policy is suspended, and is left to other policies', () => {
    const suspended = plan({ limits: limits({ isSuspended: true }) });
    expect(suspended.purchases).toEqual([]);
    expect(suspended.left).toHaveLength(1);
    // Nor does it say that it will.
    const later = plan({
      limits: limits({ isSuspended: true }),
      waiting: [{ ...work('web', 4), servedUntil: NOW + 60_000 }],
    });
    expect(later.verdicts).toMatchObject([{ state: 'Suspended' }]);
    expect(later.left).toHaveLength(1);
  });

  it('reports that more clusters are needed than one decision buys, within maximum and budget', () => {
    const rich = limits({ maximumClusters: 100, hourly: 10_000_000_000n });
    const [verdict] = plan({
      waiting: [work('web', 500)],
      limits: rich,
      candidates: [candidate('aws', 1, { left: 100 })],
    }).verdicts;
    expect(verdict).toMatchObject({
      state: 'Refused',
      message: expect.stringContaining(
        'one more takes 40 of 500 replicas, and no more than 10 clusters are bought at once',
      ),
    });
  });

  it('of unreasonable size is refused quickly', () => {
    expect(states({ waiting: [work('flood', 1_000_000)] })).toEqual(['Refused']);
  });
});

describe('a bought cluster', () => {
  const idle = (minutes: number, more: Partial<OwnCluster> = {}) =>
    own('a', { idleSince: NOW - minutes * MINUTE, ...more });
  const quiet = { waiting: [] };

  it('is removed once it is old enough and without work', () => {
    expect(removed({ ...quiet, clusters: [idle(11)] })).toEqual(['a']);
    expect(removed({ ...quiet, clusters: [idle(9)] })).toEqual([]);
    expect(plan({ ...quiet, clusters: [idle(9)] }).next).toBe(NOW + MINUTE);
    expect(removed({ ...quiet, clusters: [idle(11, { at: NOW - 20 * MINUTE })] })).toEqual([]);
    expect(removed({ ...quiet, clusters: [own('a')] })).toEqual([]);
  });

  it('stays for the cool-down after a purchase or removal', () => {
    expect(removed({ ...quiet, clusters: [idle(11)], lastOut: NOW - 5 * MINUTE })).toEqual([]);
    expect(removed({ ...quiet, clusters: [idle(11)], lastIn: NOW - 5 * MINUTE })).toEqual([]);
  });

  it('stays for its paid hour and is removed before the next one; with billing by the second it is removed at once', () => {
    // Idle for more than long enough at minute 52 of its second hour.
    const hourly = idle(52, { at: NOW - 112 * MINUTE, billing: HOURLY });
    expect(removed({ ...quiet, clusters: [{ ...hourly, at: NOW - 72 * MINUTE }] })).toEqual([]);
    expect(plan({ ...quiet, clusters: [{ ...hourly, at: NOW - 72 * MINUTE }] }).next).toBe(NOW + 43 * MINUTE);
    expect(removed({ ...quiet, clusters: [{ ...hourly, at: NOW - 72 * MINUTE }] }, NOW + 43 * MINUTE)).toEqual(['a']);
    expect(removed({ ...quiet, clusters: [{ ...hourly, at: NOW - 119 * MINUTE }] })).toEqual(['a']);
    // What has begun by now is paid for.
    expect(removed({ ...quiet, clusters: [{ ...hourly, at: NOW - 121 * MINUTE }] })).toEqual([]);
    expect(removed({ ...quiet, clusters: [idle(11, { billing: PER_SECOND })] })).toEqual(['a']);
    // Its control plane costs more each second.
    const fee = { ...HOURLY, fee: 100_000n, controlPlane: { stepMs: 1000, minimumMs: 0 } };
    expect(removed({ ...quiet, clusters: [{ ...hourly, at: NOW - 72 * MINUTE, billing: fee }] })).toEqual(['a']);
    // One that does not come is paid for in vain, and given up all the same.
    const failed = own('a', { phase: 'Making', at: NOW - MINUTE, billing: HOURLY, failure: 'sold out' });
    expect(removed({ ...quiet, clusters: [failed] })).toEqual(['a']);
  });

  it.each([1, 60])(
    'is cancelled as an order without work, also between whole seconds, with billing steps of %i s',
    (step) => {
      // The time of an order is in whole seconds, that of a look in milliseconds.
      const since = NOW + 20_037;
      const billing = { ...PER_SECOND, machines: { stepMs: step * 1000, minimumMs: 0 } };
      const order = own('a', { phase: 'Ordered', at: NOW, unneededSince: since, billing });
      const waits = plan({ ...quiet, clusters: [order] }, since);
      expect(waits).toMatchObject({ removals: [], next: since + 30_000 });
      expect(removed({ ...quiet, clusters: [order] }, since + 30_000)).toEqual(['a']);
    },
  );

  it('is kept as an order without work until shortly before its next billing step', () => {
    const billing = { ...PER_SECOND, machines: { stepMs: 15 * MINUTE, minimumMs: 0 } };
    const order = own('a', { phase: 'Making', at: NOW, unneededSince: NOW + 37, billing });
    const end = NOW + 10 * MINUTE;
    expect(plan({ ...quiet, clusters: [order] }, NOW + MINUTE + 37)).toMatchObject({ removals: [], next: end });
    expect(removed({ ...quiet, clusters: [order] }, end + 37)).toEqual(['a']);
  });

  it('is cancelled as an order after half of its startup time without waiting work, or at its expected arrival', () => {
    const candidates = [candidate('aws', 1, { startupMs: 10 * MINUTE })];
    const order = (gone: number) => own('a', { phase: 'Making', at: NOW, unneededSince: NOW + gone });
    const view = (gone: number) => ({ ...quiet, candidates, clusters: [order(gone)] });
    expect(plan(view(MINUTE), NOW + 2 * MINUTE)).toMatchObject({ removals: [], next: NOW + 6 * MINUTE });
    expect(removed(view(MINUTE), NOW + 6 * MINUTE)).toEqual(['a']);
    expect(plan(view(8 * MINUTE), NOW + 9 * MINUTE)).toMatchObject({ removals: [], next: NOW + 10 * MINUTE });
    expect(removed(view(8 * MINUTE), NOW + 10 * MINUTE)).toEqual(['a']);
    // A step of what it is given for stabilisation is waited for in any case, and one that wakes takes another time.
    expect(removed(view(12 * MINUTE), NOW + 12.5 * MINUTE)).toEqual(['a']);
    const waking = { ...order(MINUTE), phase: 'Waking' as const, sleeps: true as const };
    expect(removed({ ...view(MINUTE), clusters: [waking] }, NOW + 1.5 * MINUTE)).toEqual(['a']);
  });

  describe('as an order', () => {
    const since = NOW + MINUTE;
    const nodes = (count: number) => new Map([['pool', count]]);
    const order = (lessNeeded?: { since: number; nodes: Map<string, number> }, more: Partial<OwnCluster> = {}) =>
      own('a', { phase: 'Making', at: NOW, order: { ordered: nodes(5), least: nodes(1), lessNeeded }, ...more });
    const ordered = supply('a', 4, 0, { nodes: [], planned: [{ template: template(4), count: 5 }] });
    const cuts = (more: Partial<ClustersView>, now: number) =>
      plan({ waiting: [work('web', 6)], supply: [ordered], ...more }, now).cuts;

    it('is cut to the nodes that the rest of its work needs, after the time in which one without work is cancelled', () => {
      const view = { clusters: [order({ since, nodes: nodes(2) })], waiting: [work('web', 6)], supply: [ordered] };
      expect(plan(view, since + 29_999)).toMatchObject({ cuts: [], next: since + 30_000 });
      expect(plan(view, since + 30_000).needs.get('shop/a')).toEqual({ ordered: nodes(5), nodes: nodes(2) });
      expect(cuts(view, since + 30_000)).toEqual([
        {
          name: 'a',
          nodes: { pool: 2 },
          why: 'the work that waits for it has needed no more than 2 of 5 nodes of pool pool since 2026-11-23T12:01:00Z',
        },
      ]);
      const candidates = [candidate('aws', 1, { startupMs: 10 * MINUTE })];
      expect(cuts({ ...view, candidates }, since + 4 * MINUTE)).toEqual([]);
      expect(cuts({ ...view, candidates }, since + 5 * MINUTE)).toHaveLength(1);
    });

    it('keeps what was needed in that time, what other work needs that does not fit, and its minimum', () => {
      const now = since + MINUTE;
      const left = (more: Partial<ClustersView>, most = 2) =>
        cuts({ clusters: [order({ since, nodes: nodes(most) })], ...more }, now).map((cut) => cut.nodes.pool);
      expect(left({}, 4)).toEqual([4]);
      expect(left({}, 5)).toEqual([]);
      expect(left({ waiting: [work('web', 6), work('large', 30)] })).toEqual([]);
      expect(left({ waiting: [work('web', 1)] }, 1)).toEqual([1]);
      expect(left({ clusters: [order()] })).toEqual([]);
      expect(left({ isPartial: true })).toEqual([]);
      expect(left({ limits: limits({ isSuspended: true }) })).toEqual([]);
      expect(left({ supply: [{ ...ordered, planned: [] }] })).toEqual([]);
    });

    it('needs what its purchase would need: large pods first', () => {
      const waiting = [work('small', 4, '1'), work('large', 2, '3', { since: NOW })];
      const { needs } = plan({ clusters: [order()], waiting, supply: [ordered] }, since);
      expect(needs.get('shop/a')?.nodes).toEqual(nodes(3));
    });
  });

  it('stays while work waits that would be placed there', () => {
    expect(removed({ clusters: [idle(60)], supply: [supply('a', 2)] })).toEqual([]);
  });

  it('is given up when it does not come, whatever its age', () => {
    const making = own('a', { phase: 'Making', at: NOW - MINUTE });
    expect(removed({ ...quiet, clusters: [making] })).toEqual([]);
    expect(plan({ ...quiet, clusters: [{ ...making, failure: 'sold out' }] }).removals).toEqual([
      { name: 'a', why: 'sold out', isFailure: true },
    ]);
    expect(removed({ ...quiet, clusters: [{ ...making, at: NOW - JOIN_LIMIT_MS }] })).toEqual(['a']);
    // Not one that is seen to work: a cache may be behind.
    expect(removed({ ...quiet, clusters: [{ ...making, at: NOW - JOIN_LIMIT_MS, hasWork: true }] })).toEqual([]);
  });

  it('stays while the policy is suspended', () => {
    expect(removed({ ...quiet, clusters: [idle(60)], limits: limits({ isSuspended: true }) })).toEqual([]);
  });
});

/** A pool of nodes of 4 CPU that may have `more`, each at `price` an hour in whole units. */
const growing = (name: string, more: number, price: number, rest: Partial<GrowingPool> = {}): GrowingPool => ({
  cluster: `shop/${name}`,
  member: { name, labels: { tier: 'private' }, zones: [] },
  pool: 'a',
  template: { ...template(4), id: `shop/${name}/a` },
  more,
  hourly: BigInt(price * 1e6),
  problem: undefined,
  ...rest,
});

describe('the minimum priority of a policy', () => {
  const low = work('low', 6, '1', { priority: -5, since: NOW - 60 * MINUTE });
  const least = { limits: limits({ minimumPriority: 0 }) };
  const told = (more: Partial<ClustersView>) =>
    plan({ ...least, ...more }).verdicts.map(({ source, state }) => `${source} ${state}`);

  it('prevents buying, growing, opening or waking for work below it, reports that, and leaves the work to other policies', () => {
    const more = { ...least, waiting: [low], growth: [{ name: 'private', left: 9, pools: [growing('own', 9, 0)] }] };
    const { purchases, growths, openings, verdicts, left } = plan(more);
    expect([purchases, growths, openings]).toEqual([[], [], []]);
    expect(verdicts).toEqual([
      {
        source: 'low',
        state: 'LowPriority',
        message: 'nothing is bought for it: its priority is -5, and the policy buys for 0 and more (minimumPriority)',
      },
    ]);
    expect(left).toEqual([low]);
    expect(bought({ waiting: [low] })).toEqual(['aws 2']);
  });

  it('takes unknown priorities as 0, like Kubernetes', () => {
    expect(bought({ limits: limits({ minimumPriority: 0 }) })).toEqual(['aws 2']);
    expect(bought({ limits: limits({ minimumPriority: 1 }) })).toEqual([]);
  });

  it('is compared with the highest priority among the parts of a source', () => {
    const parts = [work('parts', 1, '1', { priority: -5 }), work('parts', 5, '1', { priority: 3 })];
    expect(bought({ ...least, waiting: parts })).toEqual(['aws 2']);
  });

  it('keeps older work below it from taking existing or ordered room from work above it', () => {
    const waiting = [low, work('web', 4)];
    const coming = supply('new', 4, 0, { nodes: [], planned: [{ template: template(4), count: 1 }] });
    expect(told({ waiting, supply: [coming] })).toEqual(['web RoomOrdered', 'low LowPriority']);
    expect(bought({ ...least, waiting, supply: [supply('new', 4)] })).toEqual([]);
    expect(bought({ ...least, waiting, supply: [supply('new', 4, 1)] })).toEqual(['aws 1']);
  });

  it('reports that work below it fits, but keeps no empty cluster for it', () => {
    const empty = own('a', { idleSince: NOW - 60 * MINUTE });
    const more = { waiting: [low], clusters: [empty], supply: [supply('a', 4)] };
    expect(told({ ...more, supply: [supply('a', 8)] })).toEqual(['low Fits']);
    expect(removed({ ...more, ...least })).toEqual(['a']);
    expect(removed({ ...more, limits: limits({ maximumClusters: 1 }) })).toEqual([]);
  });

  it('keeps work below it from blocking other work, however much there is', () => {
    const flood = Array.from({ length: 20 }, (_, index) => work(`low-${index}`, 1000, '1', { priority: -5 }));
    expect(bought({ ...least, waiting: [...flood, work('web', 6, '1', { since: NOW - MINUTE })] })).toEqual(['aws 2']);
  });
});

describe('the maximum of nodes of a policy', () => {
  const most = (maximumNodes: number) => ({ limits: limits({ maximumNodes }) });
  const refusal = (more: Partial<ClustersView>) =>
    plan(more).verdicts.find(({ state }) => state === 'Refused')?.message;
  const private_ = [{ name: 'private', left: 9, pools: [growing('own', 9, 0)] }];

  it.each<[string, Partial<ClustersView>, string[]]>([
    ['that is not reached changes nothing', most(2), ['aws 2']],
    ['that would be exceeded has nothing bought', most(1), []],
    ['counts what the policy has', { ...most(4), clusters: [own('a', { nodes: 3 })] }, []],
    ['counts what it has added to others', { ...most(4), grownNodes: 3 }, []],
    ['has what fits bought', { ...most(2), waiting: [work('large', 20), work('small', 5)] }, ['aws 2']],
    [
      'has a few large nodes bought in place of many small ones',
      { ...most(1), waiting: [work('web', 2, '3')], candidates: [candidate('aws', 1), large('gcp', 8)] },
      ['gcp 1'],
    ],
    [
      'counts pools that autoscalers size at their largest',
      { ...most(9), candidates: [{ ...candidate('aws', 1), offer: autoscaled(1, 10) }, candidate('gcp', 2)] },
      ['gcp 2'],
    ],
    [
      'holds for what a peak asks for',
      { ...most(1), waiting: [], peaks: [{ name: 'p', candidate: undefined, clusters: 2, from: 0, until: NOW + 1 }] },
      ['aws 1'],
    ],
    [
      'holds for what waits warm',
      { ...most(1), waiting: [], candidates: [candidate('aws', 1, { warm: 1 })], clusters: [own('a', { nodes: 1 })] },
      [],
    ],
  ])('%s', (_, more, expected) => expect(bought(more)).toEqual(expected));

  it('includes growth together with purchases', () => {
    const grown = (maximumNodes: number) => {
      const { growths, purchases } = plan({ ...most(maximumNodes), waiting: [work('web', 30)], growth: private_ });
      return [...growths.map(({ nodes }) => `+${nodes}`), ...purchases.map(({ nodes }) => `aws ${nodes.pool}`)];
    };
    expect(grown(8)).toEqual(['+8']);
    expect(grown(7)).toEqual([]);
    // Of the policy's own clusters a part of what may grow is counted already, or all.
    const own9 = (counted: number) => [{ name: undefined, left: 9, pools: [growing('own', 9, 0, { counted })] }];
    expect(plan({ ...most(1), growth: own9(9) }).growths).toMatchObject([{ nodes: 2 }]);
    expect(plan({ ...most(1), growth: own9(1) }).growths).toMatchObject([{ nodes: 2, granted: 1 }]);
    expect(plan({ ...most(1), growth: own9(0) }).growths).toEqual([]);
  });

  it('is named by the refusal', () => {
    expect(refusal(most(1))).toMatch(
      /aws: one more takes 4 of 6 replicas, and of its 1 node \(maximumNodes\) the policy has 1 left/,
    );
    expect(refusal({ ...most(3), clusters: [own('a', { nodes: 3 })] })).toMatch(
      /aws: it counts for 1 node at least, and of its 3 nodes \(maximumNodes\) the policy has 0 left/,
    );
    expect(refusal({ ...most(3), grownNodes: 3, candidates: [], growth: private_ })).toMatch(
      /private: of its 3 nodes \(maximumNodes\) the policy has 0 left/,
    );
  });

  it('permits a cluster for one of two sources', () => {
    const { purchases, verdicts } = plan({ ...most(2), waiting: [work('large', 20), work('small', 5)] });
    expect(purchases.map(({ sources }) => sources)).toEqual([['small']]);
    expect(verdicts.map(({ source, state }) => `${source} ${state}`)).toEqual(['large Refused', 'small Bought']);
  });
});

describe('pools that may grow', () => {
  const held = (source: string, count: number, more: Partial<WaitingWork> = {}) =>
    work(source, count, '1', { inOneCluster: true, isHeld: true, ...more });
  const growth = (pools: GrowingPool[], left = 100) => [{ name: 'private', left, pools }];
  const grown = (more: Partial<ClustersView>) => {
    const { growths, purchases } = plan(more);
    return [
      ...growths.map(({ cluster, nodes }) => `${cluster} +${nodes}`),
      ...purchases.map(({ candidate, nodes }) => `${candidate} ${nodes.pool}`),
    ];
  };

  it('do not grow for pods with affinity rules about pods on other nodes, which are not evaluated there', () => {
    const labelSelector = { matchLabels: { app: 'web' } };
    const spread = [{ topologyKey: 'zone', maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', labelSelector }];
    const apartBy = (topologyKey: string) => ({
      affinity: {
        podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector }] },
      },
    });
    const ofPods = (spec: object) => {
      const object = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'a', namespace: 'shop', labels: { app: 'web' } },
      };
      const containers = [{ name: 'work', resources: { requests: { cpu: '1' } } }];
      const pod = fitPod({ ...object, spec: { containers, ...spec } });
      return takenByPool(growing('own', 5, 1), [{ work: { ...work('web', 2), pod }, count: 2 }], 5).nodes;
    };
    expect(ofPods({})).toBe(1);
    expect(ofPods(apartBy('kubernetes.io/hostname'))).toBe(2);
    expect([apartBy('zone'), { topologySpreadConstraints: spread }].map(ofPods)).toEqual([0, 0]);
  });

  it('do not grow for a part of a held job whose other parts cannot be placed', () => {
    const labels = { matchLabels: { app: 'web' } };
    const terms = [{ topologyKey: 'kubernetes.io/hostname', labelSelector: labels }];
    const near = fitPod({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'a', namespace: 'shop', labels: { app: 'web' } },
      spec: {
        affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
        containers: [{ name: 'work', resources: { requests: { cpu: '1' } } }],
      },
    });
    const waiting = [held('train', 4), { ...held('train', 1), pod: near }];
    expect(grown({ waiting, growth: growth([growing('own', 5, 1)]) })).toEqual(['aws 2']);
  });

  it('grow in any number, whatever other pools take', () => {
    const many = Array.from({ length: 150 }, (_, index) => growing(`own-${index}`, 1, 0));
    const waiting = [work('web', 480)];
    expect(plan({ candidates: [], waiting, growth: growth(many, 500) }).growths).toHaveLength(120);
    const last = (one: { name: string }) => one.name === 'own-149';
    const [only] = plan({
      candidates: [],
      waiting: [work('web', 4, '1', { accepts: last })],
      growth: growth(many),
    }).growths;
    expect(only).toMatchObject({ cluster: 'shop/own-149', nodes: 1 });
  });

  it('take fitting work although much unfitting work is older', () => {
    const waiting = [
      ...Array.from({ length: 40 }, (_, index) => work(`large-${index}`, 1, '100', { accepts: () => true })),
      ...Array.from({ length: 40 }, (_, index) => work(`far-${index}`, 1, '1', { accepts: () => false })),
      work('web', 4),
    ];
    const { growths } = plan({ candidates: [], waiting, growth: growth([growing('own', 1, 0)]) });
    expect(growths).toMatchObject([{ nodes: 1, sources: ['web'] }]);
  });

  it('grow before a cluster is bought, although buying would cost less, with the reason', () => {
    const { growths, purchases, verdicts } = plan({ growth: growth([growing('own', 5, 3)]) });
    expect(purchases).toEqual([]);
    expect(growths).toEqual([
      {
        entry: 'private',
        cluster: 'shop/own',
        pool: 'a',
        nodes: 2,
        each: 3_000_000n,
        sources: ['web'],
        why: '6 replicas (1 CPU each) of web have no place; 2 nodes more of pool a take 6 of them',
      },
    ]);
    expect(verdicts).toMatchObject([{ state: 'Growing', message: 'added for it: 2 nodes of pool a of shop/own' }]);
  });

  it.each<[string, Partial<ClustersView>, string[]]>([
    [
      'what is free is taken first',
      { supply: [supply('own', 4, 2)], growth: growth([growing('own', 5, 1)]) },
      ['shop/own +1'],
    ],
    [
      'a pool of which a cloud took machines away after all others, and among its like the cheapest first',
      {
        waiting: [work('web', 14)],
        growth: growth([
          growing('dear-taken', 5, 1, { isLast: true }),
          growing('taken', 1, 0, { isLast: true }),
          growing('own', 2, 2),
        ]),
      },
      ['shop/own +2', 'shop/taken +1', 'shop/dear-taken +1'],
    ],
    ['the cheapest pool first', { growth: growth([growing('dear', 5, 2), growing('own', 5, 1)]) }, ['shop/own +2']],
    [
      'several pools where one is too small',
      { growth: growth([growing('own', 1, 1), growing('two', 5, 2)]) },
      ['shop/own +1', 'shop/two +1'],
    ],
    [
      'the cheapest pool first, where budgets count none of them',
      {
        growth: growth([
          growing('dear', 5, 0, { price: 2n }),
          growing('unknown', 5, 0),
          growing('own', 5, 0, { price: 1n }),
        ]),
      },
      ['shop/own +2'],
    ],
    ['a cluster for the rest', { growth: growth([growing('own', 1, 0)]) }, ['shop/own +1', 'aws 1']],
    ['a cluster alone where that costs less', { growth: growth([growing('own', 1, 5)]) }, ['aws 2']],
    ['no more than its entry allows', { growth: growth([growing('own', 5, 0)], 1) }, ['shop/own +1', 'aws 1']],
    [
      'no pool twice that two entries name: a cluster for the rest',
      {
        growth: [
          { name: 'private', left: 9, pools: [growing('own', 1, 1)] },
          { name: 'web', left: 9, pools: [growing('own', 1, 1)] },
        ],
      },
      ['shop/own +1', 'aws 1'],
    ],
    [
      'a pool as far as another entry that names it allows, where one has had its nodes',
      {
        growth: [
          { name: 'private', left: 0, pools: [growing('own', 5, 1)] },
          { name: 'web', left: 9, pools: [growing('own', 5, 1)] },
        ],
      },
      ['shop/own +2'],
    ],
    [
      'one pool for all of a job that its hub holds, the cheapest that takes it',
      {
        waiting: [held('train', 6)],
        growth: growth([growing('small', 1, 1), growing('dear', 5, 3), growing('own', 5, 2)]),
      },
      ['shop/own +2'],
    ],
    [
      'several such jobs each on one pool',
      {
        waiting: [held('a', 6), held('b', 6, { since: NOW - 9 * MINUTE })],
        growth: growth([growing('own', 2, 1), growing('two', 2, 2)]),
      },
      ['shop/own +2', 'shop/two +2'],
    ],
    [
      'none for a job that no pool takes as a whole',
      { waiting: [held('train', 6)], growth: growth([growing('own', 1, 0), growing('two', 1, 0)]) },
      ['aws 2'],
    ],
    [
      'none for a job that its hub has sent to its clusters: where it goes its pods have nodes',
      { waiting: [work('train', 6, '1', { inOneCluster: true })], growth: growth([growing('own', 5, 0)]) },
      ['aws 2'],
    ],
    ['none that cannot', { growth: growth([growing('own', 5, 1, { problem: 'it rests' })]) }, ['aws 2']],
    [
      'none to which the hub would not send it',
      {
        waiting: [work('web', 6, '1', { accepts: ({ labels }) => labels.tier === 'public' })],
        growth: growth([growing('own', 5, 1)]),
      },
      ['aws 2'],
    ],
    [
      'within the budget of an hour',
      { limits: limits({ hourly: 5_000_000n }), growth: growth([growing('own', 5, 4)]) },
      ['aws 2'],
    ],
    [
      'within the budget, with nodes that were added before',
      {
        limits: limits({ hourly: 3_000_000n }),
        grownHourly: 2_000_000n,
        growth: growth([growing('own', 5, 1)]),
        candidates: [],
      },
      [],
    ],
    [
      'within the budget of the month',
      {
        limits: limits({ monthly: 1_000_000n }),
        spent: 400_000n,
        growth: growth([growing('own', 5, 1)]),
        candidates: [],
      },
      [],
    ],
    ['nothing while it cools down', { lastOut: NOW - 20_000, growth: growth([growing('own', 5, 1)]) }, []],
    ['nothing for a part', { waiting: [work('web', 600)], growth: growth([growing('own', 5, 1)]) }, []],
  ])('%s', (_, more, expected) => expect(grown(more)).toEqual(expected));

  it('report why they do not grow, beside the candidates', () => {
    const { verdicts } = plan({ waiting: [work('web', 600)], growth: growth([growing('own', 5, 1)]) });
    expect(verdicts[0]!.alternatives?.[0]).toEqual({
      candidate: 'private',
      whyNot: 'nodes that may be added there take 20 of 600 replicas',
    });
  });

  it('leave nodes to the pending pods of their own cluster', () => {
    const coming = { planned: [{ template: template(4), count: 2 }], nodes: [] };
    expect(bought({ supply: [supply('own', 4, 0, coming)] })).toEqual([]);
    expect(bought({ supply: [supply('own', 4, 0, { ...coming, pending: [podOf('3')] })] })).toEqual(['aws 1']);
  });

  it('keep a growing cluster although it is empty', () => {
    const idle = own('a', { idleSince: NOW - 60 * MINUTE });
    const { removals, growths } = plan({
      clusters: [idle],
      growth: [{ name: undefined, left: 9, pools: [growing('a', 5, 0)] }],
    });
    expect(growths).toMatchObject([{ entry: undefined, cluster: 'shop/a' }]);
    expect(removals).toEqual([]);
  });
});

describe('a warm cluster', () => {
  const warm = (name: string, more: Partial<OwnCluster> = {}) => own(name, { warm: true, revision: 'now', ...more });
  const ready = (name: string, cpu = 4, more: Partial<WarmCluster> = {}): WarmCluster => ({
    name,
    candidate: 'aws',
    supply: supply(name, cpu),
    ...more,
  });
  const wanting = (count: number, more: object = {}) => [
    { ...candidate('aws', 1, more), warm: count, revision: 'now' },
  ];
  const quiet = { waiting: [] };
  const done = (more: Partial<ClustersView>) => {
    const { openings, growths, purchases } = plan(more);
    return [
      ...growths.map(({ cluster, nodes }) => `${cluster} +${nodes}`),
      ...openings.map(({ name }) => `open ${name}`),
      ...purchases.map((one) => `${one.candidate} ${one.nodes.pool}${one.warm ? ' warm' : ''}`),
    ];
  };

  it('is bought in minimum size for each that a candidate asks for, one per decision', () => {
    const [first, ...others] = plan({ ...quiet, candidates: wanting(2) }).purchases;
    expect(others).toEqual([]);
    expect(first).toMatchObject({ candidate: 'aws', nodes: { pool: 1 }, warm: true, revision: 'now' });
    expect(done({ ...quiet, candidates: wanting(2), clusters: [warm('a')] })).toEqual(['aws 1 warm']);
    expect(done({ ...quiet, candidates: wanting(1), clusters: [warm('a')] })).toEqual([]);
  });

  it('is bought although waiting work fits no offer, but not while work waits that may need the budget', () => {
    const [huge, dear] = [work('huge', 1, '64'), work('dear', 40)];
    const little = { limits: limits({ hourly: 2_000_000n }), candidates: wanting(1) };
    expect(done({ ...little, waiting: [huge] })).toEqual(['aws 1 warm']);
    expect(done({ ...little, waiting: [huge, dear] })).toEqual([]);
  });

  it('is opened during a cool-down, since it is paid for; work that it does not take waits', () => {
    const lastOut = NOW - 20_000;
    const warmed = { lastOut, warm: [ready('a', 8)] };
    expect(done(warmed)).toEqual(['open a']);
    expect(states({ ...warmed, waiting: [work('web', 6), work('api', 6)] }).toSorted()).toEqual([
      'CoolingDown',
      'Opened',
    ]);
    const waking = { hourly: 0n, most: 0n, counted: 0n, startupMs: undefined };
    expect(done({ lastOut, warm: [ready('a', 8, { waking })] })).toEqual([]);
    expect(done({ lastOut, warm: [ready('a', 4)] })).toEqual([]);
  });

  it.each<[string, Partial<ClustersView>, string[]]>([
    ['is opened before another is bought', { warm: [ready('a', 8)] }, ['open a']],
    ['is opened for a part, and one is bought for the rest', { warm: [ready('a')] }, ['open a', 'aws 1']],
    [
      'is not opened for a part of what goes to one cluster',
      { warm: [ready('a')], waiting: [work('job', 6, '1', { inOneCluster: true })] },
      ['aws 2'],
    ],
    ['is opened as many as are needed', { warm: [ready('a'), ready('b'), ready('c')] }, ['open a', 'open b']],
    [
      'is opened after pools that may grow',
      {
        warm: [ready('a', 8)],
        growth: [{ name: 'private', left: 9, pools: [growing('own', 9, 1)] }],
      },
      ['shop/own +2'],
    ],
    [
      'is opened where pools that may grow are too little',
      { warm: [ready('a', 8)], growth: [{ name: 'private', left: 9, pools: [growing('own', 1, 1)] }] },
      ['open a'],
    ],
    [
      'is not opened for what the hub would not send there',
      { warm: [ready('a', 8)], waiting: [work('web', 6, '1', { accepts: ({ labels }) => labels.tier === 'public' })] },
      ['aws 2'],
    ],
    [
      'is opened though no money is left',
      { warm: [ready('a', 8)], clusters: [warm('a')], limits: limits({ hourly: 0n }) },
      ['open a'],
    ],
    [
      'is not made within a budget that has no room',
      { ...quiet, candidates: wanting(1), limits: limits({ hourly: 0n }) },
      [],
    ],
    [
      'is not made beyond the maximum',
      { ...quiet, candidates: wanting(1), clusters: [own('a'), own('b'), own('c')] },
      [],
    ],
    ['is not made while work waits', { waiting: [work('web', 600)], candidates: wanting(1) }, []],
    [
      'is not made while it is suspended',
      { ...quiet, candidates: wanting(1), limits: limits({ isSuspended: true }) },
      [],
    ],
    [
      'is opened for a peak',
      {
        ...quiet,
        warm: [ready('a')],
        clusters: [warm('a')],
        peaks: [{ name: 'sale', candidate: undefined, clusters: 1, from: 0, until: NOW + 1 }],
      },
      ['open a'],
    ],
  ])('%s', (_, more, expected) => expect(done(more)).toEqual(expected));

  it('is refused together with sleeping ones in one verdict: two of one source would alternate in status', () => {
    const both = [{ ...candidate('aws', 1), warm: 1, asleep: 1, revision: 'now' }];
    const { verdicts } = plan({ ...quiet, candidates: both, limits: limits({ hourly: 0n }) });
    expect(verdicts).toEqual([
      { source: 'candidate aws', state: 'Refused', message: expect.stringMatching(/wait warm.*; .*sleep/) },
    ]);
  });

  it('stays without work, and is removed when fewer are asked for or its template changed', () => {
    const clusters = [warm('a', { at: NOW - 90 * MINUTE }), warm('b')];
    expect(removed({ ...quiet, candidates: wanting(2), clusters })).toEqual([]);
    expect(removed({ ...quiet, candidates: wanting(1), clusters })).toEqual(['b']);
    expect(removed({ ...quiet, candidates: [], clusters })).toEqual(['a', 'b']);
    const old = clusters.map((one) => ({ ...one, revision: 'before' }));
    expect(removed({ ...quiet, candidates: wanting(2), clusters: old })).toEqual(['b']);
    // The others stay until its successor is there.
    const making = { ...warm('c'), phase: 'Making' as const, at: NOW };
    expect(removed({ ...quiet, candidates: wanting(2), clusters: [old[0]!, making] })).toEqual([]);
    expect(removed({ ...quiet, candidates: wanting(2, { problem: 'it rests' }), clusters: old })).toEqual([]);
  });
});

describe('a sleeping cluster', () => {
  const price = (hourly: bigint, more: object = {}) => ({
    waking: { hourly, most: hourly, counted: 0n, ...more },
  });
  const asleep = (name: string, cpu = 8, more: object = price(1_000_000n), candidateName = 'aws'): WarmCluster => ({
    name,
    candidate: candidateName,
    supply: { ...supply(name, 0), nodes: [], planned: [{ template: template(cpu), count: 1 }] },
    ...more,
  });
  const sleeper = (name: string, more: Partial<OwnCluster> = {}) =>
    own(name, { warm: true, sleeps: true, revision: 'now', hourly: 0n, ...more });
  const wanting = (count: number, more: object = {}) => [
    { ...candidate('aws', 1, more), asleep: count, revision: 'now' },
  ];
  const quiet = { waiting: [] };
  const done = (more: Partial<ClustersView>) => {
    const { openings, growths, purchases } = plan(more);
    return [
      ...growths.map(({ cluster, nodes }) => `${cluster} +${nodes}`),
      ...openings.map(({ name, waking }) => `${waking ? 'wake' : 'open'} ${name}`),
      ...purchases.map((one) => `${one.candidate} ${one.nodes.pool}${one.sleeps ? ' to sleep' : ''}`),
    ];
  };
  const warm = (name: string, cpu: number): WarmCluster => ({ name, candidate: 'aws', supply: supply(name, cpu) });

  it.each<[string, Partial<ClustersView>, string[]]>([
    ['is woken before another is bought', { warm: [asleep('a')] }, ['wake a']],
    ['is woken after what waits warm', { warm: [asleep('a'), warm('w', 4)] }, ['open w', 'wake a']],
    ['is left asleep where what waits warm is enough', { warm: [asleep('a'), warm('w', 8)] }, ['open w']],
    ['is woken for a part, and one is bought for the rest', { warm: [asleep('a', 4)] }, ['wake a', 'aws 1']],
    ['is left asleep where a new one costs less', { warm: [asleep('a', 8, price(9_000_000n))] }, ['aws 2']],
    [
      'is woken where it costs more, and only it comes in time',
      {
        warm: [asleep('a', 8, price(9_000_000n, { startupMs: MINUTE }))],
        limits: limits({ startWithinMs: 2 * MINUTE }),
        candidates: [{ ...candidate('aws', 1), startupMs: 5 * MINUTE }],
      },
      ['wake a'],
    ],
    [
      'is left asleep where only a new one comes in time',
      {
        warm: [asleep('a', 8, price(1n, { startupMs: 5 * MINUTE }))],
        limits: limits({ startWithinMs: 2 * MINUTE }),
        candidates: [{ ...candidate('aws', 1), startupMs: MINUTE }],
      },
      ['aws 2'],
    ],
    [
      'is not woken beyond the budget',
      { warm: [asleep('a')], clusters: [sleeper('a')], limits: limits({ hourly: 999_999n }) },
      [],
    ],
    [
      'is woken where none may be bought any more',
      { warm: [asleep('a')], clusters: [sleeper('a'), own('b'), own('c')] },
      ['wake a'],
    ],
    [
      'is woken after pools that may grow',
      { warm: [asleep('a')], growth: [{ name: 'private', left: 9, pools: [growing('own', 9, 1)] }] },
      ['shop/own +2'],
    ],
    [
      'is not woken for what the hub would not send there',
      { warm: [asleep('a')], waiting: [work('web', 6, '1', { accepts: ({ labels }) => labels.tier === 'public' })] },
      ['aws 2'],
    ],
    [
      'is woken for a peak, after what waits warm',
      {
        ...quiet,
        warm: [asleep('a'), warm('w', 8)],
        clusters: [sleeper('a'), own('w', { warm: true })],
        peaks: [{ name: 'sale', candidate: undefined, clusters: 2, from: 0, until: NOW + 1 }],
      },
      ['open w', 'wake a'],
    ],
    [
      'is not woken for a peak beyond the budget',
      {
        ...quiet,
        warm: [asleep('a')],
        clusters: [sleeper('a')],
        limits: limits({ hourly: 999_999n }),
        peaks: [{ name: 'sale', candidate: undefined, clusters: 1, from: 0, until: NOW + 1 }],
      },
      [],
    ],
    [
      'is made where it is not there',
      { ...quiet, candidates: wanting(2), clusters: [sleeper('a')] },
      ['aws 1 to sleep'],
    ],
    [
      'is not made where one with work is to take its place',
      { ...quiet, candidates: wanting(2), clusters: [sleeper('a'), own('b', { revision: 'now' })] },
      [],
    ],
    [
      'is made where one with work is of another template',
      { ...quiet, candidates: wanting(2), clusters: [sleeper('a'), own('b', { revision: 'before' })] },
      ['aws 1 to sleep'],
    ],
  ])('%s', (_, more, expected) => expect(done(more)).toEqual(expected));

  it('replaces a cluster without work as long as more sleeping clusters are asked for', () => {
    const idle = (name: string, more: Partial<OwnCluster> = {}) =>
      own(name, { idleSince: NOW - 60 * MINUTE, revision: 'now', ...more });
    const ends = (more: Partial<ClustersView>) =>
      plan({ ...quiet, ...more }).removals.map(({ name, toSleep }) => `${name}${toSleep ? ' sleeps' : ''}`);
    const clusters = [idle('a'), idle('b')];
    expect(ends({ candidates: wanting(1), clusters })).toEqual(['a sleeps', 'b']);
    expect(ends({ candidates: wanting(2), clusters: [...clusters, sleeper('c')] })).toEqual(['a sleeps', 'b']);
    expect(ends({ candidates: wanting(2, { cannotSleep: 'no' }), clusters })).toEqual(['a', 'b']);
    // One is made anew in its place, as far as that can be.
    const before = [idle('a', { revision: 'before' })];
    expect(ends({ candidates: wanting(1, { problem: 'it rests' }), clusters: before })).toEqual(['a']);
  });
});

describe('a scheduled peak', () => {
  const peak = (clusters: number, more: Partial<Peak> = {}): Peak => ({
    name: 'sale',
    candidate: undefined,
    clusters,
    from: NOW - MINUTE,
    until: NOW + 60 * MINUTE,
    ...more,
  });
  const quiet = { waiting: [] };

  it('buys its number of clusters in minimum size without waiting work, with the reason', () => {
    const { purchases, verdicts } = plan({ ...quiet, peaks: [peak(2)], clusters: [own('a')] });
    expect(verdicts).toEqual([]);
    expect(purchases).toEqual([
      {
        candidate: 'aws',
        nodes: { pool: 1 },
        price: { hourly: 1_000_000n, most: 1_000_000n },
        sources: ['peak sale'],
        why: 'peak sale is to have 2 clusters until 2026-11-23T13:00:00Z, and 1 is there',
        alternatives: [{ candidate: 'gcp', hourly: 2_000_000n, whyNot: 'aws was better' }],
      },
    ]);
  });

  it.each<[string, Partial<ClustersView>, string[]]>([
    ['before it begins', { peaks: [peak(1, { from: NOW + MINUTE })] }, []],
    ['when it is over', { peaks: [peak(1, { until: NOW })] }, []],
    ['where they are there', { peaks: [peak(1)], clusters: [own('a')] }, []],
    ['where they leave', { peaks: [peak(1)], clusters: [own('a', { phase: 'Leaving' })] }, ['aws 1']],
    ['of its candidate', { peaks: [peak(1, { candidate: 'gcp' })], clusters: [own('a')] }, ['gcp 1']],
    ['for two at once', { peaks: [peak(1), peak(2, { name: 'fair' })] }, ['aws 1', 'aws 1']],
    ['within the budget', { peaks: [peak(3)], limits: limits({ hourly: 2_000_000n }) }, ['aws 1', 'aws 1']],
    ['within the maximum', { peaks: [peak(3)], limits: limits({ maximumClusters: 1 }) }, ['aws 1']],
    ['a moment after something was bought', { peaks: [peak(1)], lastOut: NOW }, ['aws 1']],
    ['while it is suspended', { peaks: [peak(1)], limits: limits({ isSuspended: true }) }, []],
    [
      'with a node, where pools may have none',
      { peaks: [peak(1)], candidates: [{ ...candidate('aws', 1), offer: offer(1, { minimum: 0 }) }] },
      ['aws 1'],
    ],
  ])('%s', (_, more, expected) => expect(bought({ ...quiet, ...more })).toEqual(expected));

  it('reports why there are fewer clusters', () => {
    const [verdict] = plan({ ...quiet, peaks: [peak(1)], limits: limits({ hourly: 0n }) }).verdicts;
    expect(verdict).toMatchObject({
      source: 'peak sale',
      state: 'Refused',
      message: expect.stringMatching(/aws: it costs 1 USD/),
    });
  });

  it('wakes no cluster that the policy did not buy, which would not count', () => {
    const waking = { hourly: 1n, most: 1n, counted: 0n };
    const theirs: WarmCluster = {
      name: 'night',
      candidate: 'night',
      entry: 'night',
      supply: supply('night', 8),
      waking,
    };
    const { openings, purchases } = plan({ peaks: [peak(1)], warm: [theirs] });
    expect(openings).toEqual([]);
    expect(purchases).toMatchObject([{ sources: ['peak sale'] }]);
  });

  it('makes work wait for the next decision, which knows what the new clusters take', () => {
    expect(bought({ peaks: [peak(1)] })).toEqual(['aws 1']);
    expect(states({ peaks: [peak(1)] })).toEqual(['CoolingDown']);
  });

  it('keeps empty clusters until it ends', () => {
    const idle = ['a', 'b', 'c'].map((name) => own(name, { idleSince: NOW - 60 * MINUTE }));
    expect(removed({ ...quiet, clusters: idle, peaks: [peak(2)] })).toEqual(['a']);
    expect(
      removed({
        ...quiet,
        clusters: idle,
        peaks: [peak(2, { candidate: 'gcp' })],
        limits: limits({ maximumClusters: 3 }),
      }),
    ).toEqual(['a', 'b', 'c']);
    expect(plan({ ...quiet, clusters: idle, peaks: [peak(3)] }).next).toBe(NOW + 60 * MINUTE);
    expect(removed({ ...quiet, clusters: idle, peaks: [peak(3)] }, NOW + 60 * MINUTE)).toEqual(['a', 'b', 'c']);
  });

  describe('a minimum number of clusters', () => {
    const least = (clusters: number): Peak =>
      peak(clusters, { name: '', from: 0, until: Number.POSITIVE_INFINITY, isMinimum: true });

    it('buys that number, and reports its source and why there are fewer', () => {
      expect(plan({ ...quiet, peaks: [least(2)], clusters: [own('a')] }).purchases).toMatchObject([
        {
          sources: ['minimumClusters'],
          why: 'the policy is to have 2 clusters at least (minimumClusters), and 1 is there',
        },
      ]);
      const dear = plan({ ...quiet, peaks: [least(1)], limits: limits({ hourly: 0n }) });
      expect(dear.verdicts).toMatchObject([
        {
          source: 'minimumClusters',
          message: expect.stringMatching(/^the policy is to have 1 cluster .* aws: it costs/),
        },
      ]);
      expect(dear.next).toBeUndefined();
    });

    it('counts clusters of an active peak', () => {
      expect(bought({ ...quiet, peaks: [peak(2, { candidate: 'gcp' }), least(2)] })).toEqual(['gcp 1', 'gcp 1']);
    });

    it('keeps that number without work, even while another cluster failed', () => {
      const idle = ['a', 'b', 'c'].map((name) => own(name, { idleSince: NOW - 60 * MINUTE }));
      expect(removed({ ...quiet, clusters: idle, peaks: [least(2)] })).toEqual(['a']);
      const failed = own('failed', { phase: 'Making', failure: 'none left' });
      expect(removed({ ...quiet, clusters: [failed, ...idle.slice(1)], peaks: [least(2)] })).toEqual(['failed']);
    });
  });
});

holds(
  'never spends more than it may, buys nothing for what fits, and decides the same again',
  (choose) => {
    const maximumClusters = choose.integer(1, 4);
    const hourly = BigInt(choose.integer(0, 20)) * 1_000_000n;
    const monthly = choose.chance(0.3) ? BigInt(choose.integer(0, 20)) * 1_000_000n : undefined;
    const clusters = choose.many(choose.integer(0, 4), (index) =>
      own(`c${index}`, {
        hourly: BigInt(choose.integer(0, 3)) * 1_000_000n,
        idleSince: choose.chance(0.5) ? NOW - choose.integer(0, 60) * MINUTE : undefined,
      }),
    );
    const drawn = view({
      limits: limits({ maximumClusters, hourly, monthly }),
      waiting: choose.many(choose.integer(0, 5), (index) =>
        work(`s${index}`, choose.integer(1, 30), String(choose.integer(1, 5)), {
          since: NOW - choose.integer(0, 90) * 1000,
        }),
      ),
      supply: choose.many(choose.integer(0, 3), (index) =>
        supply(`c${index}`, choose.integer(1, 16), choose.integer(0, 1)),
      ),
      candidates: choose.many(choose.integer(1, 3), (index) =>
        candidate(`k${index}`, choose.integer(1, 4), { most: choose.integer(1, 6), priority: choose.integer(0, 1) }),
      ),
      clusters,
      spent: BigInt(choose.integer(0, 10)) * 1_000_000n,
    });
    const { purchases, verdicts, removals } = planByKind(drawn, NOW);
    expect(planByKind(drawn, NOW)).toEqual(planByKind(drawn, NOW));

    const runs = clusters.reduce((sum, one) => sum + one.hourly, 0n);
    const more = purchases.reduce((sum, { price }) => sum + price.most, 0n);
    if (purchases.length > 0) {
      expect(runs + more <= hourly).toBe(true);
      expect(clusters.length + purchases.length).toBeLessThanOrEqual(maximumClusters);
      if (monthly !== undefined) expect(drawn.spent + (runs + more) / 2n <= monthly).toBe(true);
    }
    for (const { candidate } of purchases) expect(drawn.candidates.some(({ name }) => name === candidate)).toBe(true);
    const served = new Set(purchases.flatMap(({ sources }) => sources));
    for (const { source, state } of verdicts) expect(served.has(source)).toBe(state === 'Bought');

    // What was bought is there: nothing more is bought for the same work, and nothing that it needs goes.
    const then = NOW + 2 * MINUTE;
    const made = purchases.map(({ candidate, nodes }, index): Supply => {
      const [pool] = drawn.candidates.find(({ name }) => name === candidate)!.offer!.pools;
      const planned = [{ template: pool!.template, count: nodes.pool! }];
      return { cluster: `shop/new${index}`, member: { name: 'new', labels: {}, zones: [] }, nodes: [], planned };
    });
    const later = planByKind(
      {
        ...drawn,
        waiting: drawn.waiting.filter(({ source }) => served.has(source)),
        supply: [...drawn.supply, ...made],
        clusters: [
          ...clusters,
          ...purchases.map(({ price }, index) => own(`new${index}`, { hourly: price.most, at: NOW })),
        ],
        lastOut: purchases.length > 0 ? NOW : undefined,
      },
      then,
    );
    expect(later.purchases).toEqual([]);
    expect(later.removals.filter(({ name }) => name.startsWith('new'))).toEqual([]);
    for (const { name } of removals)
      expect(clusters.some((one) => one.name === name && one.idleSince !== undefined)).toBe(true);
  },
  { runs: 100 },
);

holds(
  'grows no pool beyond what its entry and budgets allow, and not again for what it has grown for',
  (choose) => {
    const hourly = BigInt(choose.integer(0, 20)) * 1_000_000n;
    const left = choose.integer(0, 6);
    const pools = choose.many(choose.integer(1, 4), (index) =>
      growing(`g${index}`, choose.integer(0, 5), choose.integer(0, 3)),
    );
    const drawn = view({
      limits: limits({ hourly }),
      grownHourly: BigInt(choose.integer(0, 4)) * 1_000_000n,
      waiting: choose.many(choose.integer(1, 5), (index) =>
        work(`s${index}`, choose.integer(1, 20), String(choose.integer(1, 4))),
      ),
      growth: [{ name: 'private', left, pools }],
      candidates: [candidate('aws', choose.integer(1, 4), { most: choose.integer(1, 3) })],
    });
    const { growths, purchases, verdicts } = planByKind(drawn, NOW);
    const nodes = growths.reduce((sum, one) => sum + one.nodes, 0);
    expect(nodes).toBeLessThanOrEqual(left);
    for (const { cluster, nodes: more } of growths)
      expect(more).toBeLessThanOrEqual(pools.find((one) => one.cluster === cluster)!.more);
    const cost = growths.reduce((sum, one) => sum + one.each * BigInt(one.nodes), 0n);
    const most = purchases.reduce((sum, { price }) => sum + price.most, 0n);
    if (cost + most > 0n) expect(drawn.grownHourly! + cost + most <= hourly).toBe(true);
    const states = verdicts.map(({ state }) => state);
    expect(states.includes('Growing')).toBe(growths.length > 0 && purchases.length === 0);

    const served = new Set(
      verdicts.flatMap(({ source, state }) => (state === 'Growing' || state === 'Bought' ? [source] : [])),
    );
    const made = purchases.map(
      ({ nodes: { pool = 0 } }, index): Supply => ({
        ...supply(`new${index}`, 4, 0, { planned: [{ template: template(4), count: pool }] }),
        nodes: [],
      }),
    );
    const grown = growths.map((one): Supply => {
      const { member, template: ofPool } = pools.find(({ cluster }) => cluster === one.cluster)!;
      return { cluster: one.cluster, member, nodes: [], planned: [{ template: ofPool, count: one.nodes }] };
    });
    const again = planByKind(
      { ...drawn, waiting: drawn.waiting.filter(({ source }) => served.has(source)), supply: [...made, ...grown] },
      NOW + 2 * MINUTE,
    );
    expect(again.growths).toEqual([]);
    expect(again.purchases).toEqual([]);
  },
  { runs: 100 },
);

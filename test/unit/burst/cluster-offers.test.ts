import { describe, expect, it } from 'vitest';
import type { WorkerCluster, WorkerClusterSpec } from '../../../operator/api/workercluster.ts';
import {
  clusterOfferOf,
  countedNodes,
  offeredNodesOf,
  withMinimumsOf,
  withNodes,
} from '../../../operator/burst/clusters/offer.ts';
import type { ClusterPurchase } from '../../../operator/burst/clusters/purchases.ts';
import {
  type BurstReceipt,
  clustersIn,
  emptyReceipt,
  endRest,
  measuredStartupMs,
  nodesIn,
  noteDecision,
  noteStartup,
  restCandidate,
  withCluster,
} from '../../../operator/burst/clusters/receipt.ts';
import { addNodes, buyCluster, returnCluster } from '../../../operator/burst/clusters/receipt-decisions.ts';
import { withNodesFacts } from '../../../operator/burst/clusters/receipt-facts.ts';
import { comesTo, offeredNow, soldOutOf, withoutSoldOut } from '../../../operator/burst/clusters/sold-out.ts';
import { forgetCluster, setRate, spentUntil } from '../../../operator/burst/clusters/spend.ts';
import { readReceipt, storedReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import { seeCluster } from '../../../operator/burst/clusters/transitions.ts';
import { atPlace } from '../../../operator/capacity/places.ts';
import { parseMoney } from '../../../operator/cost/money.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { holds } from '../../kit/property.ts';
import { profile } from '../cost/objects.ts';

const cluster = (spec: Partial<WorkerClusterSpec>) =>
  buildWorkerCluster({
    metadata: { name: 'new', namespace: 'shop' },
    spec: { cloudProvider: 'cloud', controlPlaneNodes: 1, ...spec },
  });
const offer = (spec: Partial<WorkerClusterSpec>, more: { currency?: string; assumedHourly?: string } = {}) =>
  clusterOfferOf({
    cluster: cluster(spec),
    profile: profile(),
    member: { name: 'new', labels: {}, zones: [] },
    reserve: 'none',
    currency: 'USD',
    ...more,
  });
const pool = (more: object = {}) => ({ name: 'a', minimum: 1, maximum: 5, ...more });
const price = (spec: Partial<WorkerClusterSpec>, more: Parameters<typeof offer>[1] = {}, nodes = 2) =>
  offer(spec, more).price(new Map([['a', nodes]]));

describe('the sold-out offers of a cluster', () => {
  const NOW = new Date('2026-11-23T12:00:00Z');
  const UNTIL = +NOW + 60_000;
  const small = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: false, until: UNTIL };
  const soldOut = (spec: Partial<WorkerClusterSpec>, depleted: readonly (typeof small)[], now = NOW, more = {}) =>
    soldOutOf(cluster(spec), (name) => (name === 'cloud' ? profile(more) : undefined), { depleted }, now);
  const why = 'small of pool a in here is sold out, and not asked for again until 2026-11-23T12:01:00Z';

  it.each<[string, Partial<WorkerClusterSpec>, Partial<typeof small>[], string | undefined]>([
    ['all that it may have', {}, [{}], why],
    ['nothing', {}, [], undefined],
    ['something in another region', {}, [{ region: 'there' }], undefined],
    ['spot machines, which it does not ask for', {}, [{ spot: true }], undefined],
    ['spot machines, which it asks for', { pools: [pool({ spot: true })] }, [{ spot: true }], `spot ${why}`],
    ['one of two machine types', { pools: [pool({ machineTypes: ['small', 'gpu'] })] }, [{}], undefined],
    [
      'both machine types',
      { pools: [pool({ machineTypes: ['small', 'gpu'] })] },
      [{}, { machineType: 'gpu' }],
      'small, gpu of pool a in here are sold out, and not asked for again until 2026-11-23T12:01:00Z',
    ],
    [
      'all that only a pool without a minimum may have',
      { pools: [pool({ machineType: 'gpu', minimum: 0 }), pool({ name: 'b' })] },
      [{ machineType: 'gpu' }],
      undefined,
    ],
    ['all that it may have here, and a hosted one stays', { fallback: [{ region: 'there' }] }, [{}], why],
    [
      'all that it may have here, and it may go there',
      { mode: 'Managed', fallback: [{ region: 'there' }] },
      [{}],
      undefined,
    ],
    [
      'all that it may have, here and there',
      { mode: 'Managed', pools: [pool()], fallback: [{ region: 'there' }] },
      [{}, { region: 'there' }],
      `${why}; ${why.replace('here', 'there')}`,
    ],
  ])('where that is %s', (_, spec, depleted, problem) => {
    const known = depleted.map((one) => ({ ...small, ...one }));
    expect(soldOut({ pools: [pool()], ...spec }, known).problem).toBe(problem);
    expect(soldOut({ pools: [pool()], ...spec }, known, new Date(UNTIL)).problem).toBeUndefined();
  });

  it('are those at its place, for an existing or sleeping cluster', () => {
    const there = {
      ...cluster({ mode: 'Managed', pools: [pool()], fallback: [{ region: 'there' }] }),
      status: { region: 'here' },
    };
    const known = (depleted: readonly (typeof small)[]) =>
      soldOutOf(there as typeof there & WorkerCluster, () => profile(), { depleted }, NOW).problem;
    expect(known([small])).toBe(why);
    expect(known([{ ...small, region: 'there' }])).toBeUndefined();
  });

  it('exclude offers of another cloud with a region of the same name', () => {
    const spec: Partial<WorkerClusterSpec> = {
      mode: 'Managed',
      pools: [pool()],
      fallback: [{ cloudProvider: 'other', region: 'here' }],
    };
    const there = { ...cluster(spec), status: { region: 'here' } } as ReturnType<typeof cluster>;
    const other = profile();
    other.metadata.name = 'other';
    const profileOf = (name: string) => (name === 'other' ? other : profile());
    const known = (depleted: readonly (typeof small)[]) => soldOutOf(there, profileOf, { depleted }, NOW).problem;
    expect(known([small])).toBeUndefined();
    expect(known([small, { ...small, profile: 'other' }])).toContain('sold out');
  });

  it('are not taken from another place in the same region', () => {
    const spec: Partial<WorkerClusterSpec> = {
      mode: 'Managed',
      pools: [pool()],
      fallback: [{ machineTypes: ['gpu'] }],
    };
    const typesOf = (status: object) =>
      comesTo({ ...cluster(spec), ...status }, () => profile(), { depleted: [small] }, NOW).spec.machineTypes;
    expect(typesOf({})).toEqual(['gpu']);
    expect(typesOf({ status: { region: 'here' } })).toBeUndefined();
  });

  it('are counted per zone', () => {
    const regions = [{ name: 'here', zones: [{ name: 'here-a' }, { name: 'here-b' }] }];
    const zones = ['here-a', 'here-b'].map((zone) => ({ ...small, zone }));
    expect(soldOut({ pools: [pool()] }, zones.slice(1), NOW, { regions }).problem).toBeUndefined();
    expect(soldOut({ pools: [pool()] }, zones, NOW, { regions }).problem).toMatch(/in here-a, here-b is sold out/);
  });

  it('exclude reclaimed spot offers, which are used when no other offer takes the work', () => {
    const spec = { pools: [pool({ spot: true })] };
    const spot = { ...small, spot: true };
    const now = (depleted: readonly object[]) =>
      offeredNow(offer(spec), cluster(spec), () => profile(), { depleted: depleted as (typeof small)[] }, NOW);
    const said = 'its cloud took spot small of pool a in here away a moment ago, so others are preferred';
    expect(now([{ ...spot, interrupted: true }])).toMatchObject({
      problem: undefined,
      offer: { pools: [{ name: 'a' }] },
      steady: { problem: `${said} until 2026-11-23T12:01:00Z`, offer: { pools: [{ most: 1 }] } },
    });
    expect(now([{ ...small, interrupted: true }])).not.toHaveProperty('steady');
    expect(now([spot])).toMatchObject({ problem: `spot ${why}` });
    expect(now([spot])).not.toHaveProperty('steady');
  });

  it('include reclaimed spot offers at a fallback place: only sold-out offers cause a fallback', () => {
    const spec: Partial<WorkerClusterSpec> = {
      mode: 'Managed',
      pools: [pool({ spot: true })],
      fallback: [{ region: 'there' }],
    };
    const spot = { ...small, spot: true };
    const steady = (depleted: readonly object[]) =>
      offeredNow(offer(spec), cluster(spec), () => profile(), { depleted: depleted as (typeof small)[] }, NOW).steady;
    const taken = { ...spot, interrupted: true };
    expect(steady([taken])?.problem).toMatch(/^its cloud took spot small of pool a in here away/);
    expect(steady([{ ...taken, region: 'there' }])).toBeUndefined();
    expect(steady([spot, { ...taken, region: 'there' }])?.problem).toMatch(/in there away/);
    expect(steady([spot])).toBeUndefined();
  });

  it('make the offer have no nodes, while the maximum of autoscalers still counts', () => {
    const spec = {
      pools: [pool({ minimum: 0, autoscale: 'Coppice' }), pool({ name: 'b', machineType: 'gpu', minimum: 2 })],
    };
    const left = withoutSoldOut(offer(spec), soldOut(spec, [small]));
    expect(left.pools.map(({ most }) => most)).toEqual([0, 5]);
    expect(countedNodes(left, new Map())).toBe(5 + 2);
  });
});

describe('the offered price of a cluster', () => {
  it('contains nodes and fee; a budget counts the maximum of autoscalers', () => {
    expect(price({ pools: [pool()] })).toEqual({ hourly: 200_000n, most: 200_000n });
    expect(price({ pools: [pool({ spot: true })] })).toEqual({ hourly: 80_000n, most: 80_000n });
    expect(price({ pools: [pool({ autoscale: 'Coppice' })] })).toEqual({ hourly: 200_000n, most: 500_000n });
    expect(price({ mode: 'Managed', pools: [pool()] })).toEqual({ hourly: 300_000n, most: 600_000n });
    expect(price({ mode: 'Managed', pools: [pool({ autoscale: 'None' })] })).toEqual({
      hourly: 300_000n,
      most: 300_000n,
    });
  });

  it('states how many nodes autoscalers may add, which a policy counts', () => {
    const most = (spec: Partial<WorkerClusterSpec>) => {
      const offered = offer(spec);
      return countedNodes(offered, new Map([['a', 2]]));
    };
    expect(most({ pools: [pool()] })).toBe(2);
    expect(most({ pools: [pool({ autoscale: 'Coppice' })] })).toBe(5);
    expect(most({ mode: 'Managed', pools: [pool()] })).toBe(5);
    expect(most({ mode: 'Managed', pools: [pool({ autoscale: 'None' })] })).toBe(2);
    expect(most({ pools: [pool(), { ...pool(), name: 'b', minimum: 3 }] })).toBe(5);
  });

  it('states the billing rule of the profile, and the share of a hosted control plane', () => {
    const billing = { machines: { step: '1h' }, controlPlane: { step: '1s', minimum: '1m' } };
    const shared = { billing, hostedControlPlaneFee: { hourly: '0.03', currency: 'USD' } };
    const hour = { stepMs: 3_600_000, minimumMs: 0 };
    const priced = (mode: 'Hosted' | 'Managed') => {
      const inputs = { cluster: cluster({ mode, pools: [pool({ autoscale: 'None' })] }), profile: profile(shared) };
      const member = { name: 'new', labels: {}, zones: [] };
      return clusterOfferOf({ ...inputs, member, reserve: 'none', currency: 'USD' }).price(new Map([['a', 2]]));
    };
    expect(priced('Hosted')).toEqual({
      hourly: 230_000n,
      most: 230_000n,
      billing: { machines: hour, controlPlane: undefined, fee: 30_000n },
    });
    expect(priced('Managed')).toMatchObject({
      hourly: 300_000n,
      billing: { machines: hour, controlPlane: { stepMs: 1000, minimumMs: 60_000 }, fee: 100_000n },
    });
  });

  it('is unknown without a price in the profile, unless the policy sets an assumed price', () => {
    const free = { pools: [pool({ machineType: 'free' })] };
    expect(price(free)).toMatch(/has no price of machine type free.*assumedHourly/);
    expect(price(free, { assumedHourly: '0.5' })).toEqual({ hourly: 500_000n, most: 500_000n });
    expect(price({ pools: [pool()] }, { currency: 'EUR' })).toMatch(/has no prices in EUR/);
    expect(price({ region: 'elsewhere', pools: [pool()] })).toMatch(
      /no price of machine type small in region elsewhere/,
    );
  });
});

describe('the offered nodes of a cluster', () => {
  it('are as many as the work needs, in pools without a fixed size', () => {
    expect(withNodes(cluster({ pools: [pool()] }).spec, { a: 3 }).pools).toEqual([pool({ minimum: 3 })]);
    expect(withNodes(cluster({ pools: [pool({ minimum: 4 })] }).spec, { a: 3 }).pools).toEqual([pool({ minimum: 4 })]);
    const fixed = cluster({ pools: [pool()], dataPlaneNodes: 2 }).spec;
    expect(withNodes(fixed, { a: 3 })).toEqual(fixed);
    expect(offer({ pools: [pool()] }).pools).toMatchObject([{ minimum: 1, most: 5 }]);
    expect(offer({ pools: [pool()], dataPlaneNodes: 2 }).pools).toMatchObject([{ minimum: 2, most: 2 }]);
    expect(offer({ dataPlaneNodes: 3 }).pools).toMatchObject([{ minimum: 3, most: 3 }]);
  });

  it('lose their minimum once the cluster is settled and Coppice may remove and re-add them; one node stays', () => {
    const released = (pools: ReturnType<typeof pool>[], nodes: Record<string, number>, made = pools) => {
      const bought = cluster(withNodes(cluster({ pools: made }).spec, made === pools ? nodes : {}));
      const released = withMinimumsOf(
        bought.spec,
        { cluster: bought, profile: profile() },
        cluster({ pools }).spec,
        nodes,
      );
      return released?.pools?.map(({ minimum }) => minimum);
    };
    const sized = pool({ autoscale: 'Coppice' });
    const none = pool({ autoscale: 'Coppice', minimum: 0 });
    expect(released([sized], { a: 3 })).toEqual([1]);
    expect(released([none], { a: 3 })).toEqual([1]);
    expect(released([none, { ...sized, name: 'b' }], { a: 3, b: 2 })).toEqual([0, 1]);
    // Of no pool one has to stay: the cheapest keeps it, of those that have any.
    const spot = { ...none, name: 'spot', spot: true };
    expect(released([none, spot], { a: 3, spot: 2 })).toEqual([0, 1]);
    expect(released([none, spot], { a: 3, spot: 0 })).toEqual([1, 0]);
    // What the cluster keeps counts, and not what its template would have now.
    const others = pool({ name: 'b', minimum: 0 });
    expect(released([none, others], { a: 3, b: 2 })).toEqual([0, 2]);
    const old = withNodes(cluster({ pools: [none] }).spec, { a: 3 });
    const now = cluster({ pools: [none, pool({ name: 'b' })] }).spec;
    const kept = withMinimumsOf(old, { cluster: cluster(old), profile: profile() }, now, { a: 3 });
    expect(kept?.pools).toEqual([{ ...none, minimum: 1 }]);
    // What it costs where it is counts; what it is to have elsewhere stays written down.
    const gpu = { ...none, machineTypes: ['gpu'] };
    const { spec } = cluster({ pools: [gpu, { ...none, name: 'b' }], fallback: [{ machineTypes: ['small'] }] });
    const made = withNodes(spec, { a: 3, b: 2 });
    const there = { cluster: atPlace(cluster(made), 1), profile: profile() };
    expect(withMinimumsOf(made, there, spec, { a: 3, b: 2 })?.pools).toEqual([
      { ...gpu, minimum: 1 },
      { ...none, name: 'b' },
    ]);
    // Somebody else takes nodes away; they are no more than its own minimum; somebody has said how many.
    expect(released([pool()], { a: 3 })).toBeUndefined();
    expect(released([sized], { a: 1 })).toBeUndefined();
    expect(released([sized], { a: 3 }, [pool({ autoscale: 'Coppice', minimum: 2 })])).toBeUndefined();
  });

  it("are modelled before they exist, without the system's reserve", () => {
    const inputs = {
      cluster: cluster({ pools: [pool({ minimum: 2 })] }),
      profile: profile(),
      reserve: 'none' as const,
    };
    const [planned] = offeredNodesOf({ ...inputs, member: { name: 'new', labels: {}, zones: [] } });
    expect(planned).toMatchObject({ count: 2, template: { allocatable: { cpu: 1900, pods: 109 } } });
    // A profile that nobody can read, or without the type, offers nothing.
    const broken = profile({ machineTypes: [{ name: 'small', cpu: 'two', gpu: '0', memory: '8Gi' }] });
    const [none] = offeredNodesOf({ ...inputs, profile: broken, member: { name: 'new', labels: {}, zones: [] } });
    expect(none!.template.allocatable).toMatchObject({ cpu: 0, pods: 0 });
    expect(offer({ pools: [pool({ machineType: 'unknown' })] }).pools).toEqual([]);
  });
});

describe('the receipt of a policy', () => {
  const START = Date.parse('2026-11-30T22:00:00Z');
  const HOUR = 3_600_000;
  const buy = (receipt: BurstReceipt, hourly: bigint, now: number) =>
    buyCluster(
      receipt,
      {
        kind: 'cluster',
        candidate: 'aws',
        nodes: {},
        price: { hourly, most: hourly },
        sources: [],
        why: 'w',
        alternatives: [],
      },
      now,
    );
  const empty = emptyReceipt({ namespace: 'shop', name: 'peak', uid: 'uid' });

  it('keeps monthly spending of deleted clusters', () => {
    const one = buy(empty, 1_000_000n, START);
    const [{ name }] = clustersIn(one) as [ClusterPurchase];
    const dearer = setRate(one, name, '2', START + HOUR);
    const left = forgetCluster(dearer, name, START + 4 * HOUR);
    expect(left).toMatchObject({ purchases: [], spent: { '2026-11': '3', '2026-12': '4' } });
    expect(spentUntil(dearer, START + 4 * HOUR)).toBe(4_000_000n);
  });

  it('counts started hours of deleted clusters and machines, once they were seen to exist', () => {
    const hour = { stepMs: HOUR, minimumMs: 0 };
    const second = { stepMs: 1000, minimumMs: 0 };
    const price = {
      hourly: 2_100_000n,
      most: 2_100_000n,
      billing: { machines: hour, controlPlane: second, fee: 100_000n },
    };
    const one = buyCluster(
      empty,
      { kind: 'cluster', candidate: 'aws', nodes: {}, price, sources: [], why: 'w', alternatives: [] },
      START,
    );
    const [{ name }] = clustersIn(one) as [ClusterPurchase];
    const seen = withCluster(one, name, (bought) => seeCluster(bought, 'made'));
    expect(forgetCluster(seen, name, START + HOUR / 2).spent).toEqual({ '2026-11': '2.05' });
    expect(forgetCluster(seen, name, START + HOUR).spent).toEqual({ '2026-11': '2.1' });
    const machinesFirst = setRate(seen, name, '0.1', START + HOUR / 2);
    expect(forgetCluster(machinesFirst, name, START + HOUR).spent).toEqual({ '2026-11': '2.1' });
    expect(forgetCluster(one, name, START + HOUR / 2).spent).toEqual({ '2026-11': '1.05' });
    // As a receipt is kept.
    expect(
      forgetCluster(readReceipt(JSON.parse(JSON.stringify(storedReceipt(seen)))), name, START + HOUR / 2).spent,
    ).toEqual({ '2026-11': '2.05' });
  });

  it('keeps the latest startup times of a limited number of candidates', () => {
    let receipt = empty;
    expect(measuredStartupMs(receipt, 'aws')).toBeUndefined();
    for (const seconds of [600, 900, 700]) receipt = noteStartup(receipt, 'aws', seconds * 1000);
    expect(measuredStartupMs(receipt, 'aws')).toBe(700_000);
    for (let time = 0; time < 9; time++) receipt = noteStartup(receipt, 'aws', 60_000);
    expect(receipt.startups!.aws).toHaveLength(9);
    expect(measuredStartupMs(receipt, 'aws')).toBe(60_000);
    for (let time = 0; time < 50; time++) receipt = noteStartup(receipt, `c${time}`, 1000);
    expect(Object.keys(receipt.startups!)).toHaveLength(16);
    expect(measuredStartupMs(receipt, 'c49')).toBe(1000);
  });

  it('never reuses a name, and is unchanged without news', () => {
    const two = buy(buy(empty, 1n, START), 1n, START);
    expect(new Set(clustersIn(two).map(({ name }) => name)).size).toBe(2);
    const [{ name }] = clustersIn(two) as [ClusterPurchase];
    const seen = withCluster(two, name, (one) => seeCluster(one, 'made'));
    const third = buy(forgetCluster(two, name, START), 1n, START);
    expect(clustersIn(third).map((one) => one.number)).toEqual([2, 3]);
    expect(withCluster(seen, name, (one) => seeCluster(one, 'made'))).toBe(seen);
    expect(endRest(two, 'aws')).toBe(two);
  });

  it('fits into a Secret with any number of cooled-down and grown pools and long workload names', () => {
    const sources = Array.from({ length: 30 }, (_, index) => `ResourceBinding ${'x'.repeat(490)}-${index}`);
    const at = new Date(START).toISOString();
    let receipt = empty;
    for (let index = 0; index < 1000; index++) {
      const cluster = `shop/peak-${index}`;
      const growth = {
        kind: 'nodes',
        entry: 'own',
        cluster,
        pool: 'a',
        nodes: 1,
        each: 1n,
        sources,
        why: 'w'.repeat(2000),
      } as const;
      receipt = addNodes(receipt, growth, 'uid', 1, START);
      receipt = withNodesFacts(receipt, () => ({ count: 2, present: 2, isSoldOut: false }), START);
      receipt = restCandidate(receipt, `${cluster}/a`, { why: 'w'.repeat(500), at }, START + index);
    }
    expect(JSON.stringify(storedReceipt(receipt)).length).toBeLessThan(2 ** 20);
    expect(nodesIn(receipt)).toHaveLength(1000);
    expect(nodesIn(receipt).at(-1)!.sources).toEqual(sources.slice(0, 3));
    expect(Object.keys(receipt.rests)).toHaveLength(100);
    expect(receipt.rests['shop/peak-999/a']).toBeDefined();
  });

  it('doubles the cool-down of a failing candidate, to at most a day, until it succeeds', () => {
    let receipt = empty;
    const lengths: number[] = [];
    for (let time = 0, now = START; time < 11; time++) {
      receipt = restCandidate(receipt, 'aws', { why: 'sold out', at: new Date(now).toISOString() }, now);
      const until = Date.parse(receipt.rests.aws!.until);
      lengths.push((until - now) / 60_000);
      now = until + 1000;
    }
    expect(lengths).toEqual([5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]);
    expect(endRest(receipt, 'aws').rests).toEqual({});
  });

  it('starts one cool-down for clusters that were bought together and all failed', () => {
    const three = buy(buy(buy(empty, 1n, START), 1n, START), 1n, START);
    const fail = (receipt: BurstReceipt, index: number, now: number) =>
      returnCluster(receipt, { name: clustersIn(three)[index]!.name, why: 'sold out', isFailure: true }, now);
    const at = (minutes: number) => START + minutes * 60_000;
    const restOf = ({ rests: { aws } }: BurstReceipt) => [aws!.failures, (Date.parse(aws!.until) - START) / 60_000];
    const both = fail(fail(three, 0, at(2)), 1, at(2));
    expect(restOf(both)).toEqual([1, 7]);
    // It fails still when the last of them does; that is no second time either.
    expect(restOf(fail(both, 2, at(4)))).toEqual([1, 9]);
    const next = buy(both, 1n, at(8));
    const again = { name: clustersIn(next).at(-1)!.name, why: 'sold out', isFailure: true };
    expect(restOf(returnCluster(next, again, at(9)))).toEqual([2, 19]);
  });

  it('keeps the cool-down when a cluster of an earlier template fails after one of the present template', () => {
    const fail = (receipt: BurstReceipt, revision: string, ordered: number) =>
      restCandidate(
        receipt,
        'aws',
        { why: revision, at: new Date(START + ordered).toISOString(), revision },
        START + 60_000,
      );
    const present = fail(empty, 'present', 1000);
    expect(fail(present, 'earlier', 0)).toBe(present);
    expect(fail(fail(empty, 'earlier', 0), 'present', 1000).rests.aws).toMatchObject({ why: 'present', failures: 1 });
  });

  it('keeps the last refusal for each source only, so that purchases are not pushed out', () => {
    let receipt = buy(empty, 1n, START);
    for (let count = 0; count < 50; count++)
      receipt = noteDecision(receipt, { at: 'now', action: 'Refuse', source: 'web', why: `for ${count} replicas` });
    expect(receipt.decisions.map(({ why }) => why)).toEqual(['for 49 replicas', 'w']);
    expect(noteDecision(receipt, { at: 'later', action: 'Refuse', source: 'web', why: 'for 49 replicas' })).toBe(
      receipt,
    );
  });

  holds(
    'loses no money, whatever happens when',
    (choose) => {
      let receipt = empty;
      let now = START;
      let expected = 0;
      for (let step = 0; step < 20; step++) {
        const passed = choose.integer(1, 100 * 3600) * 1000;
        expected += receipt.purchases.reduce((sum, { rate }) => sum + Number(parseMoney(rate)) * passed, 0) / HOUR;
        now += passed;
        const some = receipt.purchases.length > 0 ? choose.pick(clustersIn(receipt)) : undefined;
        if (!some || choose.chance(0.4)) receipt = buy(receipt, BigInt(choose.integer(0, 5_000_000)), now);
        else if (choose.chance(0.5)) receipt = setRate(receipt, some.name, `${choose.integer(0, 9)}.5`, now);
        else receipt = forgetCluster(receipt, some.name, now);
      }
      for (const { name } of clustersIn(receipt)) receipt = forgetCluster(receipt, name, now);
      const spent = Object.values(receipt.spent).reduce((sum, amount) => sum + Number(parseMoney(amount)), 0);
      // A part is rounded down for each piece of time.
      expect(Math.abs(spent - expected)).toBeLessThan(500);
    },
    { runs: 50 },
  );
});

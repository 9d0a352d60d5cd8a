import { describe, expect } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { StoredReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import { parseMoney } from '../../../operator/cost/money.ts';
import { BurstFleet, NODE_PRICE, nodesOf, type Region } from '../../kit/burst/fleet.ts';
import { MINUTE, SECOND } from '../../kit/burst/testbed.ts';
import { casesUpTo } from '../../kit/cases.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { profile, quota } from '../cost/objects.ts';

type StoredCluster = StoredReceipt['purchases'][number];

type CloudProfileSpec = CloudProfile['spec'];

const HOUR = 60 * MINUTE;
/** What holds where a policy says nothing. */
const MINIMUM_LIFE = 30 * MINUTE;
const COOLDOWN = { out: MINUTE, in: 10 * MINUTE };

/** How the cloud bills a life. */
interface Bill {
  readonly spec: Partial<CloudProfileSpec>;
  billed(life: number): number;
}
const BY_THE_HOUR: Bill = {
  spec: { billing: { machines: { step: '1h' } } },
  billed: (life) => Math.ceil(life / HOUR) * HOUR,
};
const BILLS: readonly Bill[] = [
  { spec: {}, billed: (life) => life },
  // By the second, as clouds mostly do, once more.
  { spec: { billing: { machines: { step: '1s' } } }, billed: (life) => Math.ceil(life / SECOND) * SECOND },
  BY_THE_HOUR,
  {
    spec: { billing: { machines: { step: '1m', minimum: '40m' } } },
    billed: (life) => Math.max(40 * MINUTE, Math.ceil(life / MINUTE) * MINUTE),
  },
];

/** What a history is held against, besides what happens in it. */
interface Limits {
  readonly minimum: number;
  readonly maximum: number;
  readonly nodes: number;
  /** In millionths. */
  readonly hourly: bigint;
  readonly monthly: number | undefined;
  /** Clusters that the project may have, the one that was there counted. */
  readonly quota: number | undefined;
}

/** A fleet whose steps are looked at one by one. */
class Watched {
  readonly fleet: BurstFleet;
  limits: Limits;
  readonly #bill: Bill;
  /** Nodes that a cluster may have, by region. */
  readonly #most: Record<Region, number>;
  /** What all clusters have cost that are gone, in millionths. */
  #spent = 0;
  #lastOut = Number.NEGATIVE_INFINITY;

  constructor(choose: Draw, more: Partial<Limits> & { bill?: Bill | undefined } = {}) {
    this.#bill = more.bill ?? choose.pick(BILLS);
    const most = choose.integer(1, 4);
    this.limits = {
      minimum: choose.chance(0.5) ? choose.integer(1, Math.min(2, most)) : 0,
      maximum: most,
      nodes: choose.chance(0.6) ? choose.integer(2, 6) : Number.POSITIVE_INFINITY,
      hourly: BigInt(choose.integer(1, 20)) * 100_000n,
      monthly: choose.chance(0.5) ? choose.integer(1, 15) * 100_000 : undefined,
      quota: choose.chance(0.4) ? choose.integer(1, 4) : undefined,
      ...more,
    };
    const { minimum, maximum, nodes, hourly, monthly } = this.limits;
    const money = (micros: bigint | number) => String(Number(micros) / 1e6);
    this.#most = { here: choose.integer(1, 6), there: choose.chance(0.4) ? 0 : choose.integer(1, 8) };
    this.fleet = new BurstFleet(
      {
        ...(minimum > 0 && { minimumClusters: minimum }),
        minimumPriority: 0,
        maximumClusters: maximum,
        ...(Number.isFinite(nodes) && { maximumNodes: nodes }),
        budget: { hourly: money(hourly), currency: 'USD', ...(monthly !== undefined && { monthly: money(monthly) }) },
        candidates: [
          { name: 'cloud', template: templateOf({}, this.#most.here) },
          ...(this.#most.there > 0
            ? [{ name: 'there', template: templateOf({ region: 'there' }, this.#most.there) }]
            : []),
        ],
      },
      choose.integer(0, 3),
    );
    this.fleet.profile = profile(this.#bill.spec);
    this.fleet.cpu = choose.pick([500, 900, 1800]);
    this.fleet.startMs = choose.integer(0, 8) * MINUTE;
    this.fleet.leaveMs = choose.integer(0, 3) * MINUTE;
    if (this.limits.quota !== undefined) this.fleet.objects.put(quota({ clusters: this.limits.quota }));
  }

  async step(during: number): Promise<void> {
    const { fleet, limits } = this;
    await fleet.step(during);
    const { receipt: before, room } = fleet.before;
    const after = fleet.receipt();
    const fresh = (after?.purchases ?? []).filter(({ number }) => number >= (before?.next ?? 1));
    if (fresh.length > 0) this.#checkPurchases(fresh, room);
    const staying = after?.purchases.filter(({ leaving }) => !leaving).length ?? 0;
    const removed = (after?.decisions ?? []).filter(
      ({ action, at }) => action === 'Remove' && Date.parse(at) === fleet.now,
    );
    if (removed.length > 0) expect(staying, 'minimum').toBeGreaterThanOrEqual(limits.minimum);
    for (const { number, leaving } of before?.purchases ?? [])
      if (!leaving) this.#checkRemoval(after?.purchases.find((one) => one.number === number));
    for (const purchase of before?.purchases ?? [])
      if (!after?.purchases.some(({ number }) => number === purchase.number))
        this.#spent += this.#costUntilNow(purchase);
    expect(fleet.killed, 'work was killed').toEqual([]);
    expect(new Set(fleet.made).size, 'made twice').toBe(fleet.made.length);
    expect(fleet.bought().length).toBeLessThanOrEqual(limits.maximum);
    expect(this.#nodes(), 'nodes').toBeLessThanOrEqual(limits.nodes);
    if (limits.quota !== undefined && fleet.bought().length > 0)
      expect(fleet.clusters().length, 'quota').toBeLessThanOrEqual(limits.quota);
  }

  /** Nothing is to stay any more. */
  async end(): Promise<void> {
    if (this.limits.minimum === 0) return;
    const policy = this.fleet.policy()!;
    this.limits = { ...this.limits, minimum: 0 };
    this.fleet.objects.put({ ...policy, spec: { ...policy.spec, minimumClusters: 0 } });
    await this.pass(2 * HOUR);
  }

  async pass(during: number, every = during > 20 * MINUTE ? MINUTE : 10 * SECOND): Promise<void> {
    for (let past = 0; past < during; past += every) await this.step(every);
  }

  #checkPurchases(fresh: readonly StoredCluster[], room: number): void {
    const { fleet, limits } = this;
    const { purchases } = fleet.receipt()!;
    const isForWork = !fresh.some(({ sources }) => sources.includes('minimumClusters'));
    if (isForWork) expect(fleet.now - this.#lastOut, 'cool-down').toBeGreaterThanOrEqual(COOLDOWN.out);
    this.#lastOut = fleet.now;
    expect(purchases.length, 'maximum').toBeLessThanOrEqual(limits.maximum);
    const hourly = purchases.reduce((sum, { most }) => sum + parseMoney(most), 0n);
    expect(hourly, 'budget of an hour').toBeLessThanOrEqual(limits.hourly);
    if (limits.monthly !== undefined) {
      const running = purchases.reduce((sum, one) => sum + this.#cost(one, this.#age(one) + MINIMUM_LIFE), 0);
      expect(this.#spent + running, 'budget of the month').toBeLessThanOrEqual(limits.monthly + 10);
    }
    if (!isForWork) return;
    // For what fits on what is there, or on its way, nothing is bought; nor more than is needed.
    for (const { sources } of fresh)
      expect(
        sources.filter((name) => fleet.low.has(name)),
        'low',
      ).toEqual([]);
    expect(fleet.waitingAbove, 'fits').toBeGreaterThan(room);
    const slots = fresh.reduce((sum, { nodes }) => sum + nodes.a! - 1, 0) * fleet.slots;
    expect(slots, 'needless nodes').toBeLessThan(fleet.waitingAbove);
  }

  /** One that is given back though it has come: it is old enough, and nothing was bought a moment ago. An order: its work is gone, or has room. */
  #checkRemoval(purchase: StoredCluster | undefined): void {
    if (!purchase?.leaving) return;
    const { receipt, now } = { receipt: this.fleet.receipt()!, now: this.fleet.now };
    const decision = receipt.decisions.find(({ cluster, action }) => cluster === purchase.name && action !== 'Buy');
    if (decision?.action !== 'Remove') return;
    const age = this.#age(purchase);
    if (purchase.joinedAt === undefined) {
      const { wanted, placed } = this.fleet;
      const waits = purchase.sources.filter((name) => wanted.has(name) && !placed.has(name));
      const needed = waits.reduce((sum, name) => sum + (wanted.get(name) ?? 0), 0);
      expect(needed, 'cancelled under its work').toBeLessThanOrEqual(this.#roomWithout(purchase));
      return;
    }
    expect(age, 'minimum life').toBeGreaterThanOrEqual(MINIMUM_LIFE);
    expect(this.#bill.billed(age) - age, 'paid for and thrown away').toBeLessThanOrEqual(5 * MINUTE);
    expect(now - this.#lastOut, 'cool-down').toBeGreaterThanOrEqual(COOLDOWN.in);
  }

  /** Replicas that clusters take which are there, and those that are on their way, but for this one. */
  #roomWithout({ number }: StoredCluster): number {
    const { fleet } = this;
    const coming = fleet.receipt()!.purchases.filter((one) => !one.leaving && one.number !== number && !one.worked);
    return Math.max(fleet.free, fleet.before.room) + coming.reduce((sum, { nodes }) => sum + nodes.a! * fleet.slots, 0);
  }

  /** Work that one more cluster would serve, and nothing forbids that. */
  servable(): string[] {
    const { fleet, limits } = this;
    const { purchases = [] } = fleet.receipt() ?? {};
    if (purchases.length >= limits.maximum || limits.monthly !== undefined) return [];
    if (limits.quota !== undefined && fleet.clusters().length >= limits.quota) return [];
    const left = limits.hourly - purchases.reduce((sum, { most }) => sum + parseMoney(most), 0n);
    return [...fleet.wanted].flatMap(([name, count]) => {
      const nodes = Math.ceil((count - fleet.free) / fleet.slots);
      const fits = this.#nodes() + nodes <= limits.nodes;
      const serves = (region: Region) =>
        fits && nodes <= this.#most[region] && NODE_PRICE[region] * BigInt(nodes) <= left;
      return !fleet.placed.has(name) && !fleet.low.has(name) && (serves('here') || serves('there')) ? [name] : [];
    });
  }

  /** Whether it has as many clusters as it always is to have, or nothing allows one more. */
  hasMinimum(): boolean {
    const { fleet, limits } = this;
    const { purchases = [] } = fleet.receipt() ?? {};
    if (purchases.length >= limits.minimum || limits.monthly !== undefined) return true;
    if (limits.quota !== undefined && fleet.clusters().length >= limits.quota) return true;
    const left = limits.hourly - purchases.reduce((sum, { most }) => sum + parseMoney(most), 0n);
    return left < NODE_PRICE.here || this.#nodes() >= limits.nodes;
  }

  /** Nodes that all of it is bought with. */
  #nodes(): number {
    return (this.fleet.receipt()?.purchases ?? []).reduce((sum, { nodes }) => sum + nodes.a!, 0);
  }

  #age({ at }: StoredCluster): number {
    return this.fleet.now - Date.parse(at);
  }

  #cost({ nodes, candidate }: StoredCluster, life: number): number {
    const price = NODE_PRICE[candidate === 'there' ? 'there' : 'here'] * BigInt(nodes.a!);
    return (Number(price) * this.#bill.billed(life)) / HOUR;
  }

  /** In whole seconds, as times are written. */
  #costUntilNow(purchase: StoredCluster): number {
    return this.#cost(purchase, this.#age(purchase));
  }

  /** Millionths that the receipt says were spent, and those that were. */
  money(): { said: number; spent: number } {
    const { spent = {} } = this.fleet.receipt() ?? {};
    return {
      said: Object.values(spent).reduce((sum, amount) => sum + Number(parseMoney(amount)), 0),
      spent: this.#spent,
    };
  }
}

/** Work comes and goes, machines are sold out or never come, the hub is silent, caches are behind, the operator is killed. */
async function live(choose: Draw): Promise<Watched> {
  const one = new Watched(choose);
  const { fleet } = one;
  if (choose.chance(0.5)) fleet.low.add('jobs');
  for (let turn = 0; turn < 16; turn++) {
    const what = choose.random();
    if (what < 0.5) fleet.scale(choose.pick(['web', 'api', 'jobs']), choose.chance(0.4) ? 0 : choose.integer(1, 12));
    else if (what < 0.6) fleet.lives = choose.integer(1, 6);
    else if (what < 0.7) fleet.soldOut.add(choose.pick(['here', 'there']));
    else if (what < 0.75) fleet.broken.add(choose.pick(['here', 'there']));
    else if (what < 0.8) fleet.isSilent = !fleet.isSilent;
    else if (what < 0.9) fleet.stale = fleet.stale ? undefined : new Map(fleet.objects.objects);
    else {
      fleet.soldOut.clear();
      fleet.broken.clear();
      fleet.stale = undefined;
    }
    await one.pass(choose.chance(0.4) ? 20 * SECOND : choose.integer(1, 10) * MINUTE, 20 * SECOND);
  }
  fleet.soldOut.clear();
  fleet.broken.clear();
  fleet.stale = undefined;
  fleet.isSilent = false;
  fleet.restart();
  return one;
}

const templateOf = (region: object, maximum: number) => ({
  spec: {
    cloudProvider: 'cloud',
    controlPlaneNodes: 1 as const,
    ...region,
    pools: [{ name: 'a', minimum: 1, maximum }],
  },
});
/** One cluster of the cheaper is often too small. */
const twoSizes = [
  { name: 'cloud', template: templateOf({}, 2) },
  { name: 'there', template: templateOf({ region: 'there' }, 6) },
];

describe('whatever happens to a fleet', () => {
  holds(
    'never more than maximums, budgets and quota, never fewer than minimum, nothing for low priority or for what fits, nothing twice, no work killed; and it comes to rest',
    async (choose) => {
      const one = await live(choose);
      const { fleet } = one;
      await one.pass(4 * HOUR);
      const settled = fleet.history.length;
      fleet.objects.writes.length = 0;
      await one.pass(2 * HOUR);
      expect(fleet.history.slice(settled), 'comes to rest').toEqual([]);
      // What runs uses up the budget of a month, and from some time on that is why nothing is bought.
      if (one.limits.monthly === undefined) expect(fleet.objects.writes).toEqual([]);
      expect(one.servable(), 'waits for ever').toEqual([]);
      for (const name of [...fleet.wanted.keys()]) fleet.scale(name, 0);
      await one.pass(3 * HOUR);
      expect(fleet.bought().length, 'minimum').toBeLessThanOrEqual(one.limits.minimum);
      expect(one.hasMinimum(), 'minimum').toBe(true);
      await one.end();
      expect(fleet.bought()).toEqual([]);
      expect(fleet.receipt()?.purchases ?? []).toEqual([]);
      const { said, spent } = one.money();
      expect(Math.abs(said - spent), `${said} for ${spent}`).toBeLessThan(1000);
    },
    { runs: 6 },
  );

  holds(
    'no more than the budget of a month is promised, also of hours that have begun',
    async (choose) => {
      const monthly = choose.integer(20, 100) * 10_000;
      const limits = {
        monthly,
        hourly: 2_000_000n,
        minimum: 0,
        maximum: 4,
        nodes: Number.POSITIVE_INFINITY,
        quota: undefined,
      };
      const one = new Watched(choose, { bill: BY_THE_HOUR, ...limits });
      one.fleet.cpu = 1800;
      for (let turn = 0; turn < 12; turn++) {
        one.fleet.scale(choose.pick(['web', 'api', 'jobs']), choose.integer(0, 3));
        await one.pass(choose.integer(5, 30) * MINUTE, 40 * SECOND);
      }
    },
    { runs: 6 },
  );

  holds(
    'load that grows in small steps is bought for once in a cool-down',
    async (choose) => {
      const fleet = new BurstFleet({ maximumClusters: 40, budget: { hourly: '100', currency: 'USD' } }, 0);
      for (let turn = 0; turn < 20; turn++) {
        fleet.scale(`web-${turn}`, choose.integer(1, 4));
        await fleet.pass(choose.integer(1, 4) * 10 * SECOND);
      }
      const times = [...new Set(fleet.receipt()!.purchases.map(({ at }) => Date.parse(at)))];
      expect(times.length).toBeGreaterThan(3);
      for (const [index, time] of times.slice(1).entries())
        expect(time - times[index]!).toBeGreaterThanOrEqual(COOLDOWN.out);
    },
    { runs: 4 },
  );

  holds(
    'load that comes again before a cluster is idle for long enough is bought for once',
    async (choose) => {
      const fleet = new BurstFleet({}, 0);
      fleet.cpu = 1800;
      const count = choose.integer(1, 8);
      for (let turn = 0; turn < 10; turn++) {
        fleet.scale('web', count);
        await fleet.pass(choose.integer(4, 40) * MINUTE, 30 * SECOND);
        fleet.scale('web', 0);
        await fleet.pass(choose.integer(1, 9) * MINUTE, 30 * SECOND);
      }
      expect(fleet.history.map((line) => line.split(' ')[1])).toEqual(['make']);
    },
    { runs: 5 },
  );

  holds(
    'a hub that goes on for minutes to say what its clusters have taken has nothing more bought than one that does not',
    async (choose) => {
      const steps = ['web', 'api', 'jobs'].map((name) => ({
        name,
        count: choose.integer(1, 6),
        pause: choose.integer(0, 6) * MINUTE,
      }));
      const cpu = choose.pick([500, 900, 1800]);
      const startMs = choose.integer(0, 4) * MINUTE;
      const made = async (repeatsMs: number) => {
        const fleet = new BurstFleet({ maximumClusters: 40, budget: { hourly: '100', currency: 'USD' } }, 0);
        Object.assign(fleet, { cpu, startMs, repeatsMs });
        for (const { name, count, pause } of steps) {
          fleet.scale(name, count);
          await fleet.pass(pause);
        }
        await fleet.pass(15 * MINUTE);
        expect(fleet.waiting).toBe(0);
        return fleet.history;
      };
      expect(await made(choose.integer(1, 4) * MINUTE)).toEqual(await made(0));
    },
    { runs: 8 },
  );

  holds(
    'a cluster is emptied only where its work fits elsewhere; none is lost, none is bought again for the same load, and it comes to rest',
    async (choose) => {
      const scaleIn = { consolidationPolicy: 'WhenEmptyOrUnderutilized', utilizationThreshold: 60 } as const;
      const minimumClusters = choose.integer(0, 2);
      const spec = { scaleIn, candidates: twoSizes, minimumClusters, maximumClusters: 6 };
      const fleet = new BurstFleet(spec, choose.integer(1, 3));
      Object.assign(fleet, { cpu: choose.pick([500, 900]), startMs: choose.integer(0, 3) * MINUTE });
      /** Nobody has asked for more since the last cluster was emptied. */
      let isSame = false;
      fleet.onEmptying = (name, replicas, room) => {
        expect(replicas, `${name} has work`).toBeGreaterThan(0);
        expect(room, `${name} fits elsewhere, and one more`).toBeGreaterThan(replicas);
        isSame = true;
      };
      const pass = async (during: number) => {
        for (let past = 0; past < during; past += MINUTE) {
          const made = fleet.made.length;
          await fleet.step(MINUTE);
          const { purchases = [], decisions = [] } = fleet.receipt() ?? {};
          const staying = purchases.filter(({ leaving }) => !leaving).length;
          if (decisions.some(({ action, at }) => action === 'Remove' && Date.parse(at) === fleet.now))
            expect(staying, 'minimum').toBeGreaterThanOrEqual(minimumClusters);
          expect(isSame && fleet.made.length > made, 'bought again').toBe(false);
          expect(fleet.killed, 'work was killed').toEqual([]);
          const pods = [...fleet.open.values()].reduce((sum, one) => sum + one.pods.length, 0);
          const asked = [...fleet.wanted].reduce((sum, [name, count]) => sum + (fleet.placed.has(name) ? count : 0), 0);
          expect(pods, 'replicas that run').toBe(asked);
        }
      };
      for (let turn = 0; turn < 4; turn++) {
        for (const name of ['web', 'api', 'jobs']) {
          const before = fleet.wanted.get(name) ?? 0;
          if (turn % 2 === 1 && before > 1) fleet.shrink(name, choose.integer(1, before));
          else if (before < 4) {
            isSame = false;
            fleet.scale(name, choose.integer(before + 1, 9));
          }
        }
        fleet.isStuck = choose.chance(0.2);
        if (choose.chance(0.3)) fleet.lives = choose.integer(1, 6);
        await pass((turn % 2 === 1 ? choose.integer(20, 60) : choose.integer(5, 30)) * MINUTE);
      }
      fleet.isStuck = false;
      fleet.restart();
      await pass(80 * MINUTE);
      const settled = [fleet.history.length, fleet.receipt()?.decisions.length];
      fleet.objects.writes.length = 0;
      await pass(15 * MINUTE);
      expect([fleet.history.length, fleet.receipt()?.decisions.length], 'comes to rest').toEqual(settled);
      expect(fleet.objects.writes).toEqual([]);
    },
    { runs: 3 },
  );

  holds(
    'the same is bought, once, wherever the operator is killed between two of its writes',
    async (choose) => {
      const [count, more, startMs] = [choose.integer(3, 12), choose.integer(1, 4), choose.integer(0, 4) * MINUTE];
      const begin = (lives: number) => {
        const fleet = new BurstFleet({ candidates: twoSizes, maximumClusters: 6 }, 1);
        Object.assign(fleet, { cpu: 900, startMs, lives });
        fleet.scale('web', count);
        return fleet;
      };
      const peak = async (lives: number) => {
        const fleet = begin(lives);
        await fleet.pass(startMs + 3 * MINUTE);
        expect(fleet.waiting).toBe(0);
        fleet.scale('api', more);
        await fleet.pass(startMs + 3 * MINUTE);
        expect(fleet.waiting).toBe(0);
        const made = fleet.bought().map((one) => `${one.metadata.name} ${nodesOf(one)}`);
        for (const name of ['web', 'api']) fleet.scale(name, 0);
        await ends(fleet);
        return { made, ever: fleet.made, writes: fleet.objects.writes.length };
      };
      const ends = async (fleet: BurstFleet) => {
        await fleet.pass(HOUR);
        expect(fleet.bought()).toEqual([]);
        expect(fleet.receipt()?.purchases ?? []).toEqual([]);
      };
      const { made, ever, writes } = await peak(Number.POSITIVE_INFINITY);
      for (const lives of casesUpTo(writes))
        expect(await peak(lives), `killed after write ${lives}`).toMatchObject({ made, ever });
      // Who comes after it finds other work: what was begun is known, and goes.
      for (const lives of casesUpTo(8)) {
        const fleet = begin(lives);
        fleet.onKilled = () => fleet.scale('web', 0);
        await fleet.pass(3 * MINUTE);
        fleet.scale('web', 0);
        await ends(fleet);
      }
    },
    { runs: 1 },
  );
});

import { describe, expect } from 'vitest';
import type { CloudProfileSpec } from '../../../operator/api/cloudprofile.ts';
import type { KeptPurchase } from '../../../operator/burst/clusters/record.ts';
import { parseMoney } from '../../../operator/cost/money.ts';
import { BurstFleet, NODE_PRICE } from '../../kit/burst/fleet.ts';
import { MINUTE, SECOND } from '../../kit/burst/scene.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { profile, quota } from '../cost/objects.ts';

const HOUR = 60 * MINUTE;
const MAXIMUM_LIFE = { minimumLife: 30 * MINUTE, idle: 10 * MINUTE };

/** How the cloud bills a life. */
interface Bill {
  readonly spec: Partial<CloudProfileSpec>;
  billed(life: number): number;
}
const BILLS: readonly Bill[] = [
  { spec: {}, billed: (life) => life },
  { spec: { billing: { machines: { step: '1h' } } }, billed: (life) => Math.ceil(life / HOUR) * HOUR },
  {
    spec: { billing: { machines: { step: '1m', minimum: '40m' } } },
    billed: (life) => Math.max(40 * MINUTE, Math.ceil(life / MINUTE) * MINUTE),
  },
];

/** What a history is held against, besides what happens in it. */
interface Limits {
  readonly maximum: number;
  /** In millionths. */
  readonly hourly: bigint;
  readonly monthly: number | undefined;
  /** Clusters that the project may have, the one that was there counted. */
  readonly quota: number | undefined;
}

/** A fleet whose steps are looked at one by one. */
class Watched {
  readonly fleet: BurstFleet;
  readonly limits: Limits;
  readonly #bill: Bill;
  /** What all clusters have cost that are gone, in millionths. */
  #spent = 0;

  constructor(choose: Draw) {
    this.#bill = choose.pick(BILLS);
    this.limits = {
      maximum: choose.integer(1, 4),
      hourly: BigInt(choose.integer(1, 20)) * 100_000n,
      monthly: choose.chance(0.3) ? choose.integer(1, 60) * 100_000 : undefined,
      quota: choose.chance(0.4) ? choose.integer(1, 4) : undefined,
    };
    const { maximum, hourly, monthly } = this.limits;
    const money = (micros: bigint | number) => String(Number(micros) / 1e6);
    const pool = (maximum: number) => [{ name: 'a', minimum: 1, maximum }];
    const template = (region: object, most: number) => ({
      spec: { cloudProvider: 'cloud', controlPlaneNodes: 1 as const, ...region, pools: pool(most) },
    });
    this.fleet = new BurstFleet(
      {
        maximumClusters: maximum,
        budget: { hourly: money(hourly), currency: 'USD', ...(monthly !== undefined && { monthly: money(monthly) }) },
        candidates: [
          { name: 'cloud', template: template({}, choose.integer(1, 6)) },
          { name: 'there', template: template({ region: 'there' }, choose.integer(1, 8)) },
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
    const { record: before, room } = fleet.before;
    const after = fleet.record();
    const fresh = (after?.purchases ?? []).filter(({ number }) => number >= (before?.next ?? 1));
    if (fresh.length > 0) this.#checkPurchases(fresh, room);
    for (const purchase of before?.purchases ?? [])
      if (!after?.purchases.some(({ number }) => number === purchase.number))
        this.#spent += this.#costUntilNow(purchase);
    expect(fleet.killed, 'work was killed').toEqual([]);
    expect(new Set(fleet.made).size, 'made twice').toBe(fleet.made.length);
    expect(fleet.bought().length).toBeLessThanOrEqual(limits.maximum);
    if (limits.quota !== undefined && fleet.bought().length > 0)
      expect(fleet.clusters().length, 'quota').toBeLessThanOrEqual(limits.quota);
  }

  async pass(during: number, every = during > 20 * MINUTE ? MINUTE : 10 * SECOND): Promise<void> {
    for (let past = 0; past < during; past += every) await this.step(every);
  }

  #checkPurchases(fresh: readonly KeptPurchase[], room: number): void {
    const { fleet, limits } = this;
    const { purchases } = fleet.record()!;
    expect(purchases.length, 'maximum').toBeLessThanOrEqual(limits.maximum);
    const hourly = purchases.reduce((sum, { most }) => sum + parseMoney(most), 0n);
    expect(hourly, 'budget of an hour').toBeLessThanOrEqual(limits.hourly);
    if (limits.monthly !== undefined) {
      const running = purchases.reduce(
        (sum, one) => sum + this.#cost(one, this.#age(one) + MAXIMUM_LIFE.minimumLife),
        0,
      );
      expect(this.#spent + running, 'budget of the month').toBeLessThanOrEqual(limits.monthly + 10);
    }
    // For what fits on what is there, or on its way, nothing is bought; nor more than is needed.
    expect(fleet.waiting, 'fits').toBeGreaterThan(room);
    const slots = fresh.reduce((sum, { nodes }) => sum + nodes.a! - 1, 0) * fleet.slots;
    expect(slots, 'needless nodes').toBeLessThan(fleet.waiting);
  }

  #age({ at }: KeptPurchase): number {
    return this.fleet.now - Date.parse(at);
  }

  #cost({ nodes, candidate }: KeptPurchase, life: number): number {
    const price = NODE_PRICE[candidate === 'there' ? 'there' : 'here'] * BigInt(nodes.a!);
    return (Number(price) * this.#bill.billed(life)) / HOUR;
  }

  /** In whole seconds, as times are written. */
  #costUntilNow(purchase: KeptPurchase): number {
    return this.#cost(purchase, this.#age(purchase));
  }

  /** Millionths that the record says were spent, and those that were. */
  money(): { said: number; spent: number } {
    const { spent = {} } = this.fleet.record() ?? {};
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
  for (let turn = 0; turn < 12; turn++) {
    const what = choose.random();
    if (what < 0.5) fleet.scale(choose.pick(['web', 'api', 'jobs']), choose.integer(0, 12));
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
    await one.pass(choose.integer(1, 10) * MINUTE, 20 * SECOND);
  }
  fleet.soldOut.clear();
  fleet.broken.clear();
  fleet.stale = undefined;
  fleet.isSilent = false;
  fleet.restart();
  return one;
}

describe('whatever happens to a fleet', () => {
  holds(
    'never more than maximum, budgets and quota, nothing for what fits, nothing twice, no work killed; and it comes to rest',
    async (choose) => {
      const one = await live(choose);
      const { fleet, limits } = one;
      await one.pass(4 * HOUR);
      const settled = fleet.history.length;
      fleet.objects.writes.length = 0;
      await one.pass(2 * HOUR);
      expect(fleet.history.slice(settled), 'comes to rest').toEqual([]);
      expect(fleet.objects.writes).toEqual([]);
      // What waits still is what may not be bought for.
      const isFree = limits.quota === undefined && limits.monthly === undefined && limits.maximum >= 4;
      if (isFree && limits.hourly === 2_000_000n) expect(fleet.waiting).toBe(0);
      for (const name of [...fleet.wanted.keys()]) fleet.scale(name, 0);
      await one.pass(3 * HOUR);
      expect(fleet.bought()).toEqual([]);
      expect(fleet.record()?.purchases ?? []).toEqual([]);
      const { said, spent } = one.money();
      expect(Math.abs(said - spent), `${said} for ${spent}`).toBeLessThan(1000);
    },
    { runs: 12 },
  );
});

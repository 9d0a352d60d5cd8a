import { describe, expect } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { mustSleep } from '../../../operator/burst/clusters/purchases.ts';
import { clustersIn } from '../../../operator/burst/clusters/receipt.ts';
import { spentUntil } from '../../../operator/burst/clusters/spend.ts';
import { readReceipt } from '../../../operator/burst/clusters/stored-receipt.ts';
import { parseMoney } from '../../../operator/cost/money.ts';
import { BurstFleet, NODE_PRICE, nodesOf } from '../../kit/burst/fleet.ts';
import { MINUTE, SECOND } from '../../kit/burst/testbed.ts';
import { type Draw, holds } from '../../kit/property.ts';

const HOUR = 60 * MINUTE;
/** The testbed begins at 12:00. */
const NOON = Date.parse('2026-11-23T12:00:00Z');

const candidate = (name: string, more: object, region: object = {}) => ({
  name,
  ...more,
  template: {
    spec: {
      cloudProvider: 'cloud',
      controlPlaneNodes: 1 as const,
      ...region,
      pools: [{ name: 'a', minimum: 1, maximum: 6 }],
    },
  },
});

/** A fleet of a policy whose clusters wait warm and asleep, each step of which is looked at. */
class Watched {
  readonly fleet: BurstFleet;
  readonly maximum: number;
  readonly hourly: bigint;
  readonly monthly: bigint | undefined;
  readonly warm: number;
  readonly asleep: number;

  constructor(choose: Draw, more: Partial<BurstPolicySpec> = {}, ownNodes = choose.integer(0, 2)) {
    this.maximum = more.maximumClusters ?? choose.integer(2, 5);
    this.hourly = more.budget ? parseMoney(more.budget.hourly) : BigInt(choose.integer(1, 10)) * 100_000n;
    this.monthly = more.budget?.monthly === undefined ? undefined : parseMoney(more.budget.monthly);
    this.warm = choose.integer(0, Math.min(2, this.maximum));
    this.asleep = choose.integer(0, Math.min(2, this.maximum));
    const waits = {
      ...(this.warm && { warmClusters: this.warm }),
      ...(this.asleep && { sleepingClusters: this.asleep }),
    };
    const others = choose.chance(0.5) ? [candidate('there', {}, { region: 'there' })] : [];
    this.fleet = new BurstFleet(
      {
        maximumClusters: this.maximum,
        budget: { hourly: String(Number(this.hourly) / 1e6), currency: 'USD' },
        candidates: [candidate('cloud', waits), ...others],
        ...more,
      },
      ownNodes,
    );
    Object.assign(this.fleet, { cpu: choose.pick([900, 1800]), startMs: choose.integer(0, 4) * MINUTE });
  }

  /** What budgets count an hour of all of it with, in millionths: what sleeps as what it costs so. */
  get counted(): bigint {
    const receipt = this.fleet.receipt();
    return (receipt ? clustersIn(readReceipt(receipt)) : []).reduce((sum, one) => {
      const [most, rate] = [parseMoney(one.most), parseMoney(one.rate)];
      return sum + (mustSleep(one) || rate > most ? rate : most);
    }, 0n);
  }

  async step(during: number): Promise<void> {
    const { fleet } = this;
    const known = new Set(fleet.receipt()?.decisions.map((one) => `${one.at} ${one.action} ${one.cluster}`));
    const before = this.counted;
    await fleet.step(during);
    const spends = (fleet.receipt()?.decisions ?? []).filter(
      ({ at, action, cluster }) => ['Buy', 'Wake'].includes(action) && !known.has(`${at} ${action} ${cluster}`),
    );
    // What was there may have become dearer by itself; what is bought or woken stays within the budget.
    if (spends.length > 0 && this.counted > before)
      expect(this.counted, 'budget of an hour').toBeLessThanOrEqual(this.hourly);
    if (spends.length > 0 && this.monthly !== undefined) {
      // All of it lives for half an hour at least.
      const promised = this.counted / 2n + spentUntil(readReceipt(fleet.receipt()!), fleet.now);
      expect(promised, 'budget of the month').toBeLessThanOrEqual(this.monthly);
    }
    expect(fleet.receipt()?.purchases.length ?? 0, 'maximum').toBeLessThanOrEqual(this.maximum);
    expect(fleet.bought().length, 'maximum').toBeLessThanOrEqual(this.maximum);
    expect(new Set(fleet.made).size, 'made twice').toBe(fleet.made.length);
    expect(fleet.killed, 'work was killed').toEqual([]);
  }

  async pass(during: number, every = during > 20 * MINUTE ? MINUTE : 20 * SECOND): Promise<void> {
    for (let past = 0; past < during; past += every) await this.step(every);
  }

  /** It does nothing more, and writes nothing. */
  async rests(during: number): Promise<void> {
    const { fleet } = this;
    const settled = fleet.history.length;
    fleet.objects.writes.length = 0;
    await this.pass(during);
    expect(fleet.history.slice(settled), 'comes to rest').toEqual([]);
    expect(fleet.objects.writes).toEqual([]);
  }

  phases(): Record<string, number> {
    const all = (this.fleet.policy()?.status?.clusters ?? []).map(({ phase }) => phase as string);
    return Object.fromEntries([...new Set(all)].map((one) => [one, all.filter((phase) => phase === one).length]));
  }
}

describe('whatever happens to a fleet with clusters that wait, and with peaks', () => {
  holds(
    'never more than maximum and budget, nothing made twice, no work killed; it comes to rest, and what is to wait waits',
    async (choose) => {
      const start = `${choose.integer(0, 59)} ${choose.integer(12, 13)} * * *`;
      const clusters = 1;
      const schedule = [{ name: 'sale', start, duration: '1h', clusters }];
      const one = new Watched(choose, choose.chance(0.6) ? { schedule } : {});
      const { fleet } = one;
      for (let turn = 0; turn < 14; turn++) {
        const what = choose.random();
        if (what < 0.6) fleet.scale(choose.pick(['web', 'api', 'jobs']), choose.chance(0.4) ? 0 : choose.integer(1, 8));
        else if (what < 0.72) fleet.lives = choose.integer(1, 6);
        else if (what < 0.8) fleet.soldOut.add(choose.pick(['here', 'there']));
        else if (what < 0.85) fleet.isSilent = !fleet.isSilent;
        else fleet.soldOut.clear();
        await one.pass(choose.integer(1, 10) * MINUTE);
      }
      fleet.soldOut.clear();
      fleet.isSilent = false;
      fleet.restart();
      // No rest is longer than that after so few failures.
      await one.pass(4 * HOUR - (fleet.now - NOON));
      await one.rests(40 * MINUTE);
      for (const name of [...fleet.wanted.keys()]) fleet.scale(name, 0);
      await one.pass(80 * MINUTE);
      await one.rests(40 * MINUTE);
      const phases = one.phases();
      expect(phases.Joined ?? 0, 'idle ones go').toBe(0);
      expect(Object.keys(phases).filter((phase) => phase !== 'Warm' && phase !== 'Asleep')).toEqual([]);
      const waits = (phases.Warm ?? 0) + (phases.Asleep ?? 0);
      const hasRoom = waits < one.maximum && one.counted + NODE_PRICE.here <= one.hourly;
      expect(phases.Warm ?? 0).toBeLessThanOrEqual(one.warm);
      expect(phases.Asleep ?? 0).toBeLessThanOrEqual(one.asleep);
      if (hasRoom) expect(waits, 'all that are to wait').toBe(one.warm + one.asleep);
    },
    { runs: 3 },
  );

  holds(
    'a peak has its clusters from its start until its end, as far as maximum and budget allow, and they go once after it',
    async (choose) => {
      const clusters = choose.integer(1, 3);
      const schedule = [{ name: 'sale', start: '0 13 * * *', leadTime: '20m', duration: '1h', clusters }];
      const one = new Watched(choose, { maximumClusters: 5, schedule, candidates: [candidate('cloud', {})] });
      await one.pass(HOUR - MINUTE);
      const wanted = Math.min(clusters, Number(one.hourly / NODE_PRICE.here));
      for (let minute = 0; minute < 60; minute++) {
        await one.step(MINUTE);
        expect(one.phases().Joined ?? 0, `at minute ${minute} of the peak`).toBe(wanted);
        // Work on them comes and goes, and buys nothing beside them that they have room for.
        if (choose.chance(0.2)) one.fleet.scale('web', choose.integer(0, 1));
      }
      one.fleet.scale('web', 0);
      await one.pass(HOUR);
      expect(one.fleet.bought()).toEqual([]);
      expect(one.fleet.made).toHaveLength(wanted);
      await one.rests(HOUR);
      expect(one.fleet.bought().map(nodesOf)).toEqual([]);
    },
    { runs: 4 },
  );

  holds(
    'as many are woken as the budget of an hour allows awake, and no more; of a month no more than is left of it',
    async (choose) => {
      const [asleep, most] = [choose.integer(2, 3), choose.integer(1, 3)];
      const monthly = choose.chance(0.5) ? String(choose.integer(3, 9) / 20) : undefined;
      const budget = { hourly: String(most / 10), currency: 'USD', ...(monthly !== undefined && { monthly }) };
      const candidates = [candidate('cloud', { sleepingClusters: asleep })];
      const one = new Watched(choose, { candidates, maximumClusters: asleep, budget }, 0);
      const { fleet } = one;
      // One replica to a cluster.
      fleet.cpu = 1800;
      await one.pass(HOUR);
      if (monthly === undefined) expect(one.phases()).toEqual({ Asleep: asleep });
      const names = ['web', 'api', 'jobs'];
      for (let turn = 0; turn < 4; turn++) {
        const wanted = choose.integer(0, 3);
        for (const [index, name] of names.entries()) fleet.scale(name, index < wanted ? 1 : 0);
        await one.pass(HOUR);
        const awake = one.phases().Joined ?? 0;
        expect(awake, 'awake at once').toBeLessThanOrEqual(most);
        if (monthly === undefined) expect(awake, 'as many as are needed').toBe(Math.min(wanted, most, asleep));
      }
    },
    { runs: 6 },
  );

  holds(
    'load that comes and goes wakes the same clusters again, and makes no others',
    async (choose) => {
      const sleeping = [candidate('cloud', { sleepingClusters: 1 })];
      const one = new Watched(choose, { candidates: sleeping, maximumClusters: 3 }, 0);
      const { fleet } = one;
      // One replica to a node, of which its cluster has one.
      fleet.cpu = 1800;
      await one.pass(30 * MINUTE);
      for (let turn = 0; turn < 3; turn++) {
        fleet.scale('web', 1);
        await one.pass(choose.integer(35, 60) * MINUTE);
        expect(fleet.waiting).toBe(0);
        fleet.scale('web', 0);
        await one.pass(choose.integer(15, 40) * MINUTE);
      }
      expect(fleet.made).toHaveLength(1);
      const turns = fleet.history.map((line) => line.split(' ')[1]);
      expect(turns).toEqual(['make', 'sleep', ...Array.from({ length: 3 }, () => ['wake', 'sleep']).flat()]);
    },
    { runs: 3 },
  );
});

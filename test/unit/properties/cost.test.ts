import { describe, expect } from 'vitest';
import type { ClusterSize } from '../../../operator/api/cost.ts';
import { planScaleIn } from '../../../operator/controllers/shoot/machines/scale-in.ts';
import { admit, type Claimant, nextInLine } from '../../../operator/cost/admission.ts';
import { priceOf } from '../../../operator/cost/price.ts';
import { isLarger, settledSize } from '../../../operator/cost/size.ts';
import { usageOf } from '../../../operator/cost/usage.ts';
import type { Machine, MachinePhase } from '../../../providers/contract.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { profile, quota } from '../cost/objects.ts';

const PROFILE = profile();
const POOLS = ['p0', 'p1', 'p2'];

const TYPES: Record<string, string> = { p0: 'small', p1: 'gpu', p2: 'small' };

const sizeOf = (choose: Draw): ClusterSize => ({
  region: 'here',
  mode: choose.pick(['Hosted', 'Managed']),
  pools: choose.some(POOLS).map((name) => ({ name, machineType: TYPES[name]!, count: choose.integer(0, 6) })),
});
/** A size that is nowhere smaller: who gives something back while others wait changes what is left for them. */
const grown = (choose: Draw, size = sizeOf(choose)): ClusterSize => ({
  ...size,
  pools: size.pools.map((pool) => ({ ...pool, count: pool.count + choose.integer(0, 3) })),
});
const countIn = (size: ClusterSize | undefined) => (size?.pools ?? []).reduce((sum, { count }) => sum + count, 0);

describe('quotas', () => {
  holds('grant the same to the same clusters, in whatever order these are looked at', (choose) => {
    const quotas = [
      quota({ nodes: choose.integer(3, 25), cpu: choose.integer(5, 70) }),
      quota({ gpu: choose.integer(0, 4), clusters: choose.integer(1, 6) }, {}, 'second'),
    ];
    const asking = choose.many(8, (index): Claimant => {
      const held = choose.chance(0.3) ? sizeOf(choose) : undefined;
      const asked = choose.chance(0.8) ? grown(choose, held) : undefined;
      const createdAt = `2026-11-21T00:00:0${choose.integer(0, 4)}Z`;
      return { key: `shop/c${index}`, createdAt, profile: PROFILE, held, asked };
    });
    /** Looks at each again and again until nobody is granted anything more. */
    const settle = (order: readonly Claimant[]): [string, boolean][] => {
      let all = [...asking];
      for (let granted = true; granted; ) {
        granted = false;
        for (const { key } of order) {
          const one = all.find((other) => other.key === key)!;
          const others = all.filter((other) => other !== one);
          if (!one.asked || admit(one, others, quotas).length > 0) continue;
          all = [...others, { ...one, held: settledSize(one.asked, one.held, undefined), asked: undefined }];
          granted = true;
        }
      }
      return all
        .map(({ key, asked }): [string, boolean] => [key, asked === undefined])
        .sort(([a], [b]) => (a < b ? -1 : 1));
    };
    expect(settle(choose.shuffled(asking))).toEqual(settle(choose.shuffled(asking)));
  });

  holds('put in line only who may have what they ask for', (choose) => {
    const quotas = [quota({ nodes: choose.integer(3, 25) })];
    const claimants = choose.many(
      8,
      (index): Claimant => ({
        key: `shop/c${index}`,
        createdAt: `2026-11-21T00:00:0${choose.integer(0, 4)}Z`,
        profile: PROFILE,
        held: undefined,
        asked: sizeOf(choose),
      }),
    );
    const line = nextInLine(claimants, quotas);
    for (const one of claimants) {
      const refusals = admit(
        one,
        claimants.filter((other) => other !== one),
        quotas,
      );
      expect(refusals.length === 0, one.key).toBe(line.includes(one));
    }
  });
});

describe('what a cluster holds', () => {
  holds('is what it asks for and what has not gone yet, and becomes the former when all has gone', (choose) => {
    const [asked, before] = [sizeOf(choose), sizeOf(choose)];
    const held = settledSize(asked, before, undefined);
    const alike = (size: ClusterSize, pool: ClusterSize['pools'][number]) =>
      size.pools.find((other) => other.name === pool.name && other.machineType === pool.machineType)?.count ?? 0;
    for (const pool of asked.pools) expect(alike(held, pool)).toBeGreaterThanOrEqual(pool.count);
    expect(countIn(held)).toBeLessThanOrEqual(countIn(asked) + countIn(before));
    // Nobody else gets the room of machines that are still there, and nothing is held for ever.
    const someLeft = { ...held, pools: held.pools.map((pool) => ({ ...pool, count: choose.integer(0, pool.count) })) };
    const later = settledSize(asked, held, someLeft);
    expect(isLarger(later, held)).toBe(false);
    expect(settledSize(asked, later, asked)).toEqual(asked);
  });

  holds('costs and uses as much as its parts, and nothing that shrinks costs more', (choose) => {
    const size = sizeOf(choose);
    const price = (one: ClusterSize) => priceOf(one, PROFILE).hourly ?? 0n;
    const hosted: ClusterSize = { ...size, mode: 'Hosted' };
    const parts = hosted.pools.map((pool) => price({ ...hosted, pools: [pool] }));
    expect(price(hosted)).toBe(parts.reduce((sum, part) => sum + part, 0n));
    const smaller = {
      ...hosted,
      pools: hosted.pools.map((pool) => ({ ...pool, count: choose.integer(0, pool.count) })),
    };
    expect(price(smaller)).toBeLessThanOrEqual(price(hosted));
    const [less, more] = [usageOf(smaller, PROFILE, 'USD').amounts, usageOf(hosted, PROFILE, 'USD').amounts];
    for (const [metric, amount] of Object.entries(less))
      expect(amount <= more[metric as keyof typeof more], metric).toBe(true);
    expect(more.nodes).toBe(BigInt(countIn(hosted)));
  });
});

describe('scaling in', () => {
  holds('takes as many machines as are too many, each once and of its own pool, and then none', (choose) => {
    const machines = choose.many(
      choose.integer(0, 15),
      (index): Machine => ({
        name: `machine-${index}`,
        pool: choose.pick(POOLS),
        nodeName: `machine-${index}`,
        phase: choose.pick<MachinePhase>(['Running', 'Running', 'Running', 'Pending', 'Failed', 'Terminating']),
        ready: choose.chance(0.8),
        createdAt: `2026-11-21T00:00:${String(choose.integer(0, 59)).padStart(2, '0')}Z`,
      }),
    );
    const wanted = choose.some(POOLS, 0.8).map((name) => ({ name, count: choose.integer(0, 6) }));
    const plans = planScaleIn(wanted, choose.shuffled(machines), new Map(), new Map());
    const alive = (pool: string, all: readonly Machine[]) =>
      all.filter((one) => one.pool === pool && one.phase !== 'Terminating');
    const victims = plans.flatMap((plan) => plan.victims);
    expect(new Set(victims.map(({ name }) => name)).size).toBe(victims.length);
    for (const { name, count } of wanted) {
      const plan = plans.find(({ pool }) => pool === name);
      const there = alive(name, machines).length;
      expect(plan?.victims.length ?? 0).toBe(Math.max(0, there - count));
      for (const victim of plan?.victims ?? []) expect(alive(name, machines)).toContain(victim);
    }
    // Whoever asks in another order takes the same ones.
    expect(planScaleIn(wanted, choose.shuffled(machines), new Map(), new Map())).toEqual(plans);
    const left = machines.filter((one) => !victims.includes(one));
    expect(planScaleIn(wanted, left, new Map(), new Map())).toEqual([]);
  });
});

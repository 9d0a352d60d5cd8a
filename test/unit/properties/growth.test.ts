import { describe, expect } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { capacityOf } from '../../../providers/machine-types.ts';
import { type Account, added, NO_USAGE } from '../../../providers/simulated/cloud-model.ts';
import { growPool } from '../../../providers/simulated/growth.ts';
import { type Draw, holds } from '../../kit/property.ts';
import { profile as plain, pool } from '../providers/fixtures.ts';

type Growth = Parameters<typeof growPool>[0];

const ZONES = ['north-a', 'north-b'];
const TYPES = ['m', 'odd', 'gpu'];
const HOUR = 3_600_000;

/** A cloud that is short of one thing or another. */
function cloud(choose: Draw): CloudProfile {
  const simulation = {
    seed: choose.integer(1, 1000),
    machines: { failureRate: choose.pick([0, 0.2, 0.6]), creation: { p50: '40s', p95: '90s' } },
    ...(choose.chance(0.5) && { quota: { nodes: choose.integer(0, 30), cpu: choose.integer(0, 60) } }),
    ...(choose.chance(0.3) && { capacity: { depletionRate: choose.pick([0.3, 0.9]), window: '10m' } }),
    ...(choose.chance(0.3) && { capacity: { depleted: [{ zone: choose.pick(ZONES) }] } }),
    ...(choose.chance(0.3) && {
      throttling: {
        requestsPerSecond: choose.pick([0.5, 5]),
        burst: 3,
        ...(choose.chance(0.5) && { giveUpAfter: '10s' }),
      },
    }),
  };
  return { ...plain, spec: { ...plain.spec, providerConfig: { simulation } } } as CloudProfile;
}

const asked = (choose: Draw, profile: CloudProfile, account: Account, taken: ReadonlySet<number>): Growth => ({
  profile,
  region: 'north',
  cluster: choose.pick(['team/one', 'team/two']),
  pool: pool({ machineType: choose.pick(TYPES), zones: choose.shuffled(ZONES), spot: choose.chance(0.3) }),
  missing: choose.integer(0, 12),
  isTaken: (index) => taken.has(index),
  sequence: choose.integer(0, 50),
  account,
});

describe('growth in a simulated cloud', () => {
  holds('makes no machine twice, none that was not asked for, and says how many are short', (choose) => {
    const taken = new Set(choose.some([0, 1, 2, 3, 4, 5, 6, 7]));
    const growth = asked(choose, cloud(choose), { usage: NO_USAGE }, taken);
    const now = choose.integer(0, 10 * HOUR);
    const grown = growPool(growth, now);
    const numbers = grown.machines.map(({ index }) => index);
    expect(new Set(numbers).size).toBe(numbers.length);
    expect(numbers.filter((index) => taken.has(index))).toEqual([]);
    expect(numbers.length + grown.short).toBe(growth.missing);
    expect(grown.refusal === undefined).toBe(grown.short === 0);
    // The lowest that are free: names are used again, and none runs away.
    for (const index of numbers) expect(index).toBeLessThan(growth.missing + taken.size);
    for (const { zone, readyAfterMs, lostAfterMs } of grown.machines) {
      expect(growth.pool.zones).toContain(zone);
      expect(readyAfterMs).toBeGreaterThanOrEqual(0);
      if (lostAfterMs !== undefined) expect(growth.pool.spot && lostAfterMs > 0).toBe(true);
    }
    const capacity = capacityOf(growth.profile, growth.pool.machineType);
    expect(grown.account.usage).toEqual(added(NO_USAGE, capacity, grown.machines.length));
    expect(growPool(growth, now), 'the same of the same').toEqual(grown);
  });

  holds('never overshoots a quota, in whatever order clusters come and go', (choose) => {
    const profile = cloud(choose);
    const { quota = {} } = (profile.spec.providerConfig as { simulation: { quota?: { nodes?: number; cpu?: number } } })
      .simulation;
    let account: Account = { usage: NO_USAGE };
    const running: string[] = [];
    for (let step = 0; step < 30; step++) {
      if (choose.chance(0.3) && running.length > 0) {
        const [type] = running.splice(choose.integer(0, running.length - 1), 1);
        account = { ...account, usage: added(account.usage, capacityOf(profile, type!), -1) };
        continue;
      }
      const growth = asked(choose, profile, account, new Set());
      const grown = growPool(growth, step * HOUR);
      account = grown.account;
      running.push(...grown.machines.map(() => growth.pool.machineType));
      expect(account.usage.nodes).toBeLessThanOrEqual(quota.nodes ?? Number.POSITIVE_INFINITY);
      expect(account.usage.millicores).toBeLessThanOrEqual((quota.cpu ?? Number.POSITIVE_INFINITY) * 1000);
      expect(account.usage.nodes).toBe(running.length);
    }
  });

  holds(
    'reaches what is asked for in the end, and then asks for nothing, when nothing stands against it for good',
    (choose) => {
      const simulation = {
        machines: { failureRate: 0.5 },
        capacity: { depletionRate: 0.5, window: '10m' },
        throttling: { requestsPerSecond: 1, burst: 5, giveUpAfter: '5s' },
      };
      const profile = { ...plain, spec: { ...plain.spec, providerConfig: { simulation } } } as CloudProfile;
      const wanted = choose.integer(1, 20);
      const taken = new Set<number>();
      let account: Account = { usage: NO_USAGE };
      let sequence = 0;
      for (let round = 0; round < 100 && taken.size < wanted; round++) {
        const growth = {
          ...asked(choose, profile, account, taken),
          cluster: 'team/one',
          missing: wanted - taken.size,
          sequence,
        };
        const grown = growPool(growth, round * HOUR);
        for (const { index } of grown.machines) taken.add(index);
        ({ account, sequence } = grown);
      }
      expect([...taken].sort((a, b) => a - b)).toEqual(choose.many(wanted, (index) => index));
      const settled = growPool({ ...asked(choose, profile, account, taken), missing: 0, sequence }, 101 * HOUR);
      expect(settled).toMatchObject({ machines: [], short: 0, sequence });
    },
  );
});

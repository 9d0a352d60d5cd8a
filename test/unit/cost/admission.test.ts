import { describe, expect, it } from 'vitest';
import type { ClusterSize } from '../../../operator/api/cost.ts';
import type { Quota } from '../../../operator/api/quota.ts';
import { admit, type Claimant, quotaLimitsOf, usageTogether } from '../../../operator/cost/admission.ts';
import { formatAmount, usageOf } from '../../../operator/cost/usage.ts';
import { pick, seeded } from '../../kit/seeded.ts';
import { profile, quota, size } from './objects.ts';

const claimant = (name: string, held: ClusterSize | undefined, asked?: ClusterSize, second = 0): Claimant => ({
  key: `shop/${name}`,
  createdAt: `2026-11-21T00:00:${String(second).padStart(2, '0')}Z`,
  profile: profile(),
  held,
  asked,
});
const here = (...machines: string[]) => size('here', 'Hosted', ...machines);

describe('usageOf', () => {
  it("counts machines' capacity, and a month as 730 hours", () => {
    const { amounts } = usageOf(here('small*3', 'gpu*1'), profile(), 'USD');
    const shown = Object.entries(amounts).map(([metric, amount]) => formatAmount(metric as 'cpu', amount));
    expect(shown).toEqual(['1', '4', '10', '40Gi', '1', '1.300001', '949.00073']);
  });
  it('excludes and reports resources of unknown size', () => {
    const usage = usageOf(here('small*1', 'gone*2'), profile(), 'USD');
    expect(usage.amounts).toMatchObject({ nodes: 3n, cpu: 2000n });
    expect(usage.unknown.join()).toContain('pool p1: its CloudProfile does not say how large gone is');
  });
  it('tolerates a machine type that cannot be parsed', () => {
    const broken = profile({ machineTypes: [{ name: 'small', cpu: 'many', gpu: '0', memory: '8Gi' }] });
    expect(usageOf(here('small*1'), broken, 'USD').amounts).toMatchObject({ nodes: 1n, cpu: 0n });
  });
});

describe('admit', () => {
  const cases: [string, Quota['spec']['metrics'], ClusterSize | undefined, ClusterSize, string | undefined][] = [
    ['what fits exactly', { nodes: 10 }, undefined, here('small*4'), undefined],
    ['one node too many', { nodes: 10 }, undefined, here('small*5'), 'nodes 10: 6 used, 5 more requested, 4 left'],
    ['cpu', { cpu: '21' }, undefined, here('small*5'), 'cpu 21: 12 used, 10 more requested, 9 left'],
    ['cpu in parts', { cpu: '12500m' }, undefined, here('small*1'), 'cpu 12500m: 12 used, 2 more requested, 500m left'],
    ['memory', { memory: '55Gi' }, undefined, here('small*1'), 'memory 55Gi: 48Gi used, 8Gi more requested, 7Gi left'],
    ['gpu', { gpu: 0 }, undefined, here('gpu*1'), 'gpu 0: 0 used, 1 more requested, 0 left'],
    ['clusters', { clusters: 2 }, undefined, here(), 'clusters 2: 2 used, 1 more requested, 0 left'],
    [
      'money an hour',
      { 'cost.hourly': '0.7' },
      undefined,
      here('small*2'),
      'cost.hourly 0.7 USD: 0.6 USD used, 0.2 USD more requested, 0.1 USD left',
    ],
    ['money an hour, to the last millionth', { 'cost.hourly': '0.8' }, undefined, here('small*2'), undefined],
    [
      'money a month',
      { 'cost.monthly': '500' },
      undefined,
      here('small*1'),
      'cost.monthly 500 USD: 438 USD used, 73 USD more requested, 62 USD left',
    ],
    ['a scale-out', { nodes: 10 }, here('small*3'), here('small*5'), 'nodes 10: 9 used, 2 more requested, 1 left'],
    ['a scale-out that fits', { nodes: 10 }, here('small*3'), here('small*4'), undefined],
    ['shrinking above a lowered quota', { nodes: 1 }, here('small*3'), here('small*2'), undefined],
    ['staying above a lowered quota', { nodes: 1 }, here('small*3'), here('small*3'), undefined],
    [
      'growing in one thing while another is above its limit',
      { nodes: 1, cpu: 100 },
      here('small*3'),
      here('gpu*3'),
      undefined,
    ],
    ['a metric nobody acts on', { 'storage.standard': 0 }, undefined, here('small*1'), undefined],
    ['machines without a price, while money is not limited', { nodes: 10 }, undefined, here('free*1'), undefined],
  ];
  it.each(cases)('decides: %s', (_what, metrics, held, asked, words) => {
    const others = [claimant('b', here('small*4')), claimant('c', here('small*2'))];
    const refusals = admit(claimant('a', held, asked), others, [quota(metrics)]);
    expect(refusals.map(({ code }) => code)).toEqual(words ? ['ERR_INFRA_QUOTA_EXCEEDED'] : []);
    if (words) expect(refusals[0]?.message).toContain(`quota "team" allows ${words}`);
  });

  it('admits clusters without a quota, or with one of another scope only', () => {
    const secret = quota({ nodes: 0 }, { scope: { kind: 'Secret' } });
    expect(admit(claimant('a', undefined, here('small*9')), [], [])).toEqual([]);
    expect(admit(claimant('a', undefined, here('small*9')), [], [secret])).toEqual([]);
  });

  it('names every exceeded limit of every quota', () => {
    const quotas = [quota({ nodes: 1, cpu: 1 }), quota({ clusters: 0 }, {}, 'second')];
    const refusals = admit(claimant('a', undefined, here('small*2')), [], quotas);
    const advice = 'Ask for less, delete something, or have the quota raised; Coppice then continues by itself';
    expect(refusals.map(({ message }) => message)).toEqual([
      `quota "team" allows nodes 1: 0 used, 2 more requested, 1 left, and cpu 1: 0 used, 4 more requested, 1 left. ${advice}`,
      `quota "second" allows clusters 0: 0 used, 1 more requested, 0 left. ${advice}`,
    ]);
  });

  const unpriced: [string, ClusterSize | undefined, ClusterSize, string, boolean][] = [
    ['a type without a price', undefined, here('free*1'), 'USD', true],
    ['more of it', here('free*1'), here('free*2'), 'USD', true],
    ['as much of it as there is', here('free*2'), here('free*2'), 'USD', false],
    ['a managed control plane in another currency', undefined, size('here', 'Managed', 'small*1'), 'EUR', true],
    ['another currency', undefined, here('small*1'), 'EUR', true],
  ];
  it.each(unpriced)('requires a price for a limit of money: %s', (_what, held, asked, currency, refused) => {
    const refusals = admit(claimant('a', held, asked), [], [quota({ 'cost.hourly': 1000 }, { currency })]);
    expect(refusals.map(({ code }) => code)).toEqual(refused ? ['ERR_CONFIGURATION_PROBLEM'] : []);
    if (refused) expect(refusals[0]?.message).toContain(`have no price in ${currency}`);
  });
});

describe('the order of admission', () => {
  const ten = [quota({ nodes: 10 })];
  const older = claimant('older', undefined, here('small*6'), 1);
  const younger = claimant('younger', undefined, here('small*6'), 2);

  it('does not depend on the order of evaluation', () => {
    expect(admit(older, [younger], ten)).toEqual([]);
    expect(admit(younger, [older], ten)[0]?.message).toContain(
      '6 used (6 of it promised to clusters that are older), 6 more requested, 4 left',
    );
  });
  it('is by name for clusters of the same second', () => {
    const [a, b] = [claimant('a', undefined, here('small*6')), claimant('b', undefined, here('small*6'))];
    expect([admit(a, [b], ten).length, admit(b, [a], ten).length]).toEqual([0, 1]);
  });
  it('does not block clusters behind a large one that does not fit', () => {
    expect(admit(younger, [claimant('older', undefined, here('small*11'), 1)], ten)).toEqual([]);
  });
  it('reserves room for an older growing cluster', () => {
    expect(admit(younger, [claimant('older', here('small*1'), here('small*5'), 1)], ten)).toHaveLength(1);
  });

  it('never exceeds the quota in any order of decisions, and admits what fits', () => {
    for (let seed = 1; seed <= 50; seed++) {
      const random = seeded(seed);
      const quotas = [
        quota({ nodes: 5 + Math.floor(random() * 20), cpu: 10 + Math.floor(random() * 60) }),
        quota({ 'cost.hourly': (1 + random() * 4).toFixed(4), gpu: 2, clusters: 8 }, {}, 'second'),
      ];
      let all = Array.from({ length: 12 }, (_, index) =>
        claimant(`c${index}`, undefined, undefined, Math.floor(random() * 5)),
      );
      const decide = (one: Claimant): boolean => {
        const others = all.filter((other) => other !== one);
        if (admit(one, others, quotas).length > 0) return false;
        all = [...others, { ...one, held: one.asked, asked: undefined }];
        return true;
      };
      for (let step = 0; step < 60; step++) {
        const one = pick(random, all);
        const kind = random();
        const wish = here(
          `small*${Math.floor(random() * 6)}`,
          `gpu*${Math.floor(random() * 2)}`,
          `small*${Math.floor(random() * 3)}*spot`,
        );
        const next = kind < 0.2 ? { ...one, held: undefined, asked: undefined } : { ...one, asked: wish };
        all = all.map((other) => (other === one ? next : other));
        if (kind > 0.5 && next.asked) decide(next);
        const above = quotas.flatMap((one) => {
          const used = usageTogether(all, one.spec.currency).amounts;
          return quotaLimitsOf(one).filter(({ metric, limit }) => used[metric] > limit);
        });
        if (above.length > 0) expect.fail(`seed ${seed}, step ${step}: above ${above.map(({ metric }) => metric)}`);
      }
      // Everybody who waits is looked at until nobody passes any more: then nobody who waits would fit.
      while (all.some((one) => one.asked !== undefined && decide(one)));
      for (const one of all.filter(({ asked }) => asked)) {
        const alone = all
          .map((other) => (other === one ? one : { ...other, asked: undefined }))
          .filter((o) => o !== one);
        expect(admit(one, alone, quotas).length, `seed ${seed}`).toBeGreaterThan(0);
      }
    }
  });
});

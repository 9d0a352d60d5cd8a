import { describe, expect, it } from 'vitest';
import type { ClusterCost } from '../../../operator/api/cost.ts';
import { accrue, accruedUntil } from '../../../operator/cost/accrual.ts';
import { formatMoney, parseMoney } from '../../../operator/cost/money.ts';
import type { HourlyPrice } from '../../../operator/cost/price.ts';
import { pick, seeded } from '../../kit/seeded.ts';

const START = Date.parse('2026-11-21T00:00:00Z');
const at = (seconds: number): Date => new Date(START + seconds * 1000);
const rate = (hourly: string | undefined, currency = 'USD', unpriced: string[] = []): HourlyPrice => ({
  hourly: hourly === undefined ? undefined : parseMoney(hourly),
  currency,
  unpriced,
  unpricedCount: unpriced.length,
});

describe('accrue', () => {
  it('is undefined for a cluster without cost', () => {
    expect(accrue(undefined, at(0), rate('0'))).toBeUndefined();
  });

  it('begins with the first machine', () => {
    expect(accrue(undefined, at(0), rate('1.92'))).toEqual({
      hourly: '1.92',
      accrued: '0',
      currency: 'USD',
      asOf: '2026-11-21T00:00:00Z',
    });
  });

  it('sums at the rate that held, from change to change', () => {
    let cost = accrue(undefined, at(0), rate('2'));
    cost = accrue(cost, at(1800), rate('4'));
    expect(cost).toMatchObject({ accrued: '1', hourly: '4', asOf: '2026-11-21T00:30:00Z' });
    cost = accrue(cost, at(5400), rate('0'));
    expect(cost).toMatchObject({ accrued: '5', hourly: '0' });
    expect(formatMoney(accruedUntil(cost!, at(1_000_000)))).toBe('5');
  });

  it('returns equal figures while nothing changes, so that nothing is written', () => {
    const cost = accrue(undefined, at(0), rate('0.0416'));
    expect(accrue(cost, at(86_400), rate('0.0416'))).toEqual(cost);
    expect(formatMoney(accruedUntil(cost!, at(86_400)))).toBe('0.9984');
  });

  it('counts no second twice, however often a new process continues from the status', () => {
    const cost = accrue(undefined, at(0), rate('3.6'))!;
    const written = JSON.parse(JSON.stringify(accrue(cost, at(100), rate('7.2')))) as ClusterCost;
    // The same change is found again by a process that did not see its own write, and by one that did.
    expect(accrue(cost, at(100), rate('7.2'))).toEqual(written);
    expect(accrue(written, at(100), rate('7.2'))).toEqual(written);
    expect(formatMoney(accruedUntil(written, at(200)))).toBe('0.3');
  });

  it('reduces nothing when the clock is set back, and does not count that time again', () => {
    const cost = accrue(undefined, at(1000), rate('3.6'))!;
    const back = accrue(cost, at(400), rate('7.2'))!;
    expect(back).toMatchObject({ accrued: '0', asOf: cost.asOf });
    expect(formatMoney(accruedUntil(back, at(700)))).toBe('0');
    expect(formatMoney(accruedUntil(back, at(1100)))).toBe('0.2');
  });

  it('restarts in another currency, and keeps the sum while nothing has a price', () => {
    const cost = accrue(undefined, at(0), rate('2'));
    expect(accrue(cost, at(3600), rate('1', 'EUR'))).toMatchObject({ accrued: '0', currency: 'EUR' });
    const unknown = accrue(cost, at(3600), rate(undefined, 'USD', ['pool a: no price']))!;
    expect(unknown).toMatchObject({ accrued: '2', unpriced: ['pool a: no price'] });
    expect(unknown).not.toHaveProperty('hourly');
    expect(formatMoney(accruedUntil(unknown, at(7200)))).toBe('2');
  });

  it('keeps the sum when the profile loses all its prices', () => {
    const cost = accrue(undefined, at(0), rate('2'));
    const none = { hourly: undefined, currency: undefined, unpriced: ['pool a: no price'], unpricedCount: 1 };
    expect(accrue(cost, at(3600), none)).toMatchObject({ accrued: '2', currency: 'USD' });
    expect(accrue(undefined, at(0), none)).toEqual({ unpriced: ['pool a: no price'] });
  });

  it('is the exact integral of the rate over any sequence of changes', () => {
    const rates = ['0', '0.000001', '0.0416', '0.086336', '1', '5.672', '999.999999'];
    for (let seed = 1; seed <= 100; seed++) {
      const random = seeded(seed);
      let cost: ClusterCost | undefined;
      let now = 0;
      let integral = 0n;
      let current = 0n;
      for (let step = 0; step < 50; step++) {
        const seconds = Math.floor(random() ** 4 * 400_000);
        now += seconds;
        integral += current * BigInt(seconds);
        const next = pick(random, rates);
        cost = accrue(cost, at(now + 0.999 * random()), rate(next)) ?? cost;
        current = parseMoney(next);
        // What is written is all that a new process knows.
        cost = cost && (JSON.parse(JSON.stringify(cost)) as ClusterCost);
      }
      const parts = parseMoney(cost?.accrued ?? '0') * 3600n + BigInt(cost?.remainder ?? 0);
      const open = cost ? current * BigInt(now - (Date.parse(cost.asOf!) - START) / 1000) : 0n;
      expect(parts + open, `seed ${seed}`).toBe(integral);
    }
  });
});

import { describe, expect, it, test } from 'vitest';
import {
  billedMs,
  billingOf,
  type ClusterBilling,
  clusterBilling,
  costOver,
  paidAheadMs,
} from '../../../operator/cost/billing.ts';
import { profile, size } from './objects.ts';

/** Each millisecond is billed, and no more. */
const EXACT = { stepMs: 1, minimumMs: 0 };

const MINUTE = 60_000;
const HOURLY = { stepMs: 60 * MINUTE, minimumMs: 0 };
const BY_THE_SECOND = { stepMs: 1000, minimumMs: MINUTE };
const billing = (more: Partial<ClusterBilling> = {}): ClusterBilling => ({
  machines: HOURLY,
  controlPlane: undefined,
  fee: 0n,
  ...more,
});

describe('the billing rule of a profile', () => {
  test.each([
    ['an hour that has begun', 12 * MINUTE, HOURLY, 60 * MINUTE],
    ['a whole hour', 60 * MINUTE, HOURLY, 60 * MINUTE],
    ['the next hour', 60 * MINUTE + 1, HOURLY, 120 * MINUTE],
    ['less than the minimum', 5000, BY_THE_SECOND, MINUTE],
    ['more than the minimum', 61_500, BY_THE_SECOND, 62_000],
    ['where nothing is known', 1234, EXACT, 1234],
  ])('%s', (_, life, how, billed) => {
    expect(billedMs(life, how)).toBe(billed);
  });

  it('is parsed separately for machines and control plane', () => {
    const known = profile({ billing: { machines: { step: '1h', minimum: '2h' }, controlPlane: { step: '1s' } } });
    expect(billingOf(known, 'machines')).toEqual({ stepMs: 60 * MINUTE, minimumMs: 120 * MINUTE });
    expect(billingOf(profile(), 'machines')).toEqual(EXACT);
    expect(clusterBilling(size('here', 'Managed'), known)).toMatchObject({
      fee: 100_000n,
      controlPlane: { stepMs: 1000 },
    });
    expect(clusterBilling(size('here', 'Hosted'), known)).toMatchObject({ fee: 0n, controlPlane: undefined });
    expect(clusterBilling(size('here', 'Hosted'), profile())).toBeUndefined();
  });
});

describe('the cost of a lifetime', () => {
  it('counts started steps of each part, and excludes what is already paid', () => {
    expect(costOver(1_000_000n, 30 * MINUTE, undefined)).toBe(500_000n);
    expect(costOver(1_000_000n, 30 * MINUTE, billing())).toBe(1_000_000n);
    expect(costOver(1_000_000n, 90 * MINUTE, billing({ fee: 400_000n }))).toBe(1_800_000n);
    expect(costOver(1_000_000n, 90 * MINUTE, billing(), 30 * MINUTE)).toBe(1_500_000n);
    expect(costOver(1n, 1, undefined)).toBe(1n);
  });

  it('is constant until the next step of a part that a cloud bills', () => {
    expect(paidAheadMs(12 * MINUTE, 1_000_000n, billing())).toBe(48 * MINUTE);
    // Its share of a seed ends nothing: the seed runs on.
    expect(paidAheadMs(12 * MINUTE, 1_000_000n, billing({ fee: 400_000n }))).toBe(48 * MINUTE);
    expect(paidAheadMs(12 * MINUTE, 1_000_000n, billing({ fee: 400_000n, controlPlane: EXACT }))).toBe(0);
    expect(paidAheadMs(12 * MINUTE, 400_000n, billing({ fee: 400_000n, controlPlane: EXACT }))).toBe(0);
    expect(paidAheadMs(12 * MINUTE, 0n, billing())).toBe(0);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { cloudProfileSpec } from '../../../operator/api/cloudprofile.ts';
import type { ClusterSize } from '../../../operator/api/cost.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { startupMs } from '../../../operator/capacity/startup-times.ts';
import { billingOf } from '../../../operator/cost/billing.ts';
import { formatMoney, parseMoney, roundMoney } from '../../../operator/cost/money.ts';
import { priceOf } from '../../../operator/cost/price.ts';
import { profile, size } from './objects.ts';

describe('money', () => {
  test.each([
    ['0.096', 96_000n, '0.096'],
    ['60', 60_000_000n, '60'],
    ['0.0000001', 1n, '0.000001'],
    ['123456789012.345678', 123_456_789_012_345_678n, '123456789012.345678'],
    ['0', 0n, '0'],
  ])('is parsed and formatted: %s', (text, micros, written) => {
    expect(parseMoney(text)).toBe(micros);
    expect(formatMoney(micros)).toBe(written);
  });

  test.each([
    ['1.005', 2, '1.01'],
    ['0.004999', 2, '0.00'],
    ['999.995', 2, '1000.00'],
    ['1.5', 0, '2'],
    ['0.086336', 4, '0.0863'],
  ])('%s rounded to %i decimals is %s', (text, decimals, written) => {
    expect(roundMoney(parseMoney(text), decimals)).toBe(written);
  });

  it('sums exactly where floating point does not', () => {
    expect(formatMoney(parseMoney('0.1') + parseMoney('0.2'))).toBe('0.3');
  });
});

describe('priceOf', () => {
  const priced: [string, ClusterSize, string][] = [
    ['machines in the region of the price', size('here', 'Hosted', 'small*3'), '0.3'],
    ['machines in a region with its own price', size('there', 'Hosted', 'small*3'), '0.36'],
    ['spot machines', size('here', 'Hosted', 'small*3*spot', 'small*1'), '0.22'],
    ['a price that is the same everywhere', size('elsewhere', 'Hosted', 'gpu*2'), '2.000002'],
    ['a managed control plane', size('here', 'Managed', 'small*1'), '0.2'],
    ['no machines', size('here', 'Hosted'), '0'],
    ['a pool at zero of a type without a price', size('here', 'Hosted', 'free*0'), '0'],
    ['five thousand machines', size('here', 'Hosted', 'gpu*5000'), '5000.005'],
  ];
  it.each(priced)('%s', (_what, of, hourly) => {
    const price = priceOf(of, profile());
    expect(price.unpriced).toEqual([]);
    expect(price.currency).toBe('USD');
    expect(formatMoney(price.hourly!)).toBe(hourly);
  });

  const unpriced: [string, ClusterSize, string, string | undefined, number][] = [
    ['a region nobody priced', size('elsewhere', 'Hosted', 'small*3'), 'small in region elsewhere', undefined, 3],
    [
      'a spot price nobody knows',
      size('there', 'Hosted', 'small*3*spot'),
      'no spot price of machine type',
      undefined,
      3,
    ],
    ['a type without a price', size('here', 'Hosted', 'small*1', 'free*2'), 'pool p1', '0.1', 2],
    ['a type the profile lacks', size('here', 'Hosted', 'gone*2'), 'machine type gone', undefined, 2],
    ['another currency than the rest', size('here', 'Hosted', 'small*1', 'euro*4'), 'only in EUR', '0.1', 4],
  ];
  it.each(unpriced)('reports unknown prices: %s', (_what, of, words, hourly, count) => {
    const price = priceOf(of, profile());
    expect(price.unpriced.join()).toContain(words);
    expect(price.unpricedCount).toBe(count);
    expect(price.hourly === undefined ? undefined : formatMoney(price.hourly)).toBe(hourly);
  });

  it('assumes no fee for a managed control plane', () => {
    const { controlPlaneFee: _, ...spec } = profile().spec;
    const price = priceOf(size('here', 'Managed', 'small*1'), { ...profile(), spec });
    expect(price.unpriced).toEqual(['control plane: CloudProfile cloud has no controlPlaneFee']);
  });

  it('counts the share of a hosted control plane in its seed, where the profile states one', () => {
    const shared = profile({ hostedControlPlaneFee: { hourly: '0.03', currency: 'USD' } });
    expect(priceOf(size('here', 'Hosted', 'small*1'), shared).hourly).toBe(130_000n);
    expect(priceOf(size('here', 'Managed', 'small*1'), shared).hourly).toBe(200_000n);
    expect(priceOf(size('here', 'SelfManaged', 'small*1'), shared).hourly).toBe(100_000n);
    const foreign = profile({ hostedControlPlaneFee: { hourly: '0.03', currency: 'EUR' } });
    expect(priceOf(size('here', 'Hosted', 'small*1'), foreign)).toMatchObject({
      hourly: 100_000n,
      unpriced: ['control plane: CloudProfile cloud has no hostedControlPlaneFee in USD, only in EUR'],
    });
  });

  it('has no currency without any price', () => {
    const { controlPlaneFee: _, ...spec } = profile().spec;
    const bare = { ...profile(), spec: { ...spec, machineTypes: spec.machineTypes.slice(3) } };
    expect(priceOf(size('here', 'Hosted', 'free*2'), bare)).toMatchObject({ hourly: undefined, currency: undefined });
  });
});

const BY_THE_SECOND = { stepMs: 1000, minimumMs: 60_000 };

describe('the prices of shipped profiles', async () => {
  const clouds = (await profileManifests()).filter(({ metadata }) => ['aws', 'azure', 'gcp'].includes(metadata.name));
  test.each(clouds.map((each) => [each.metadata.name, each] as const))(
    '%s prices what clusters get by default',
    (_, each) => {
      const { defaults } = each.spec;
      const price = priceOf(size(defaults!.region!, 'Hosted', `${defaults!.machineType}*1`), each);
      expect(price).toMatchObject({ currency: 'USD', unpriced: [] });
      expect(price.hourly).toBeGreaterThan(0n);
    },
  );

  test.each(clouds.map((each) => [each.metadata.name, each] as const))(
    '%s prices no region twice, nor one it lacks',
    (_, each) => {
      const regions = each.spec.regions.map(({ name }) => name);
      for (const { name, price } of each.spec.machineTypes) {
        const named = [price?.region ?? '', ...(price?.regions ?? []).map((region) => region.name)];
        expect(new Set(named).size, name).toBe(named.length);
        for (const region of named.slice(1)) expect(regions, name).toContain(region);
        for (const at of [price!, ...(price?.regions ?? [])].filter(({ spot }) => spot))
          expect(parseMoney(at.spot!), name).toBeLessThan(parseMoney(at.hourly));
      }
    },
  );

  test.each(clouds.map((each) => [each.metadata.name, each] as const))(
    '%s is valid, and says how machines are billed and how long clusters take, with its sources',
    (name, each) => {
      expect(cloudProfileSpec.parse(each.spec)).toEqual(each.spec);
      const { minimumMs, stepMs } = billingOf(each, 'machines');
      expect({ stepMs, minimumMs }).toEqual(
        { aws: BY_THE_SECOND, gcp: BY_THE_SECOND, azure: { stepMs: 60_000, minimumMs: 0 } }[name],
      );
      expect(startupMs(each, undefined, 'cluster')).toBe({ aws: 736_000, gcp: 272_000, azure: 285_000 }[name]);
      expect(startupMs(each, 'Hosted', 'cluster')).toBeUndefined();
      const text = readFileSync(`profiles/${name}.yaml`, 'utf8');
      expect(text).toMatch(/^# - Billing \(.*2026-11-22/m);
      expect(text).toMatch(/^# - Times until clusters are there \(2026-11-22\)/m);
    },
  );
});

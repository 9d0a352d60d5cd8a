import { expect, it } from 'vitest';
import { ToldByHubs } from '../../../operator/controllers/burst/told.ts';
import type { Demand } from '../../../operator/hubs/contract.ts';

const demand = (more: Partial<Demand> = {}): Demand => ({
  source: 'ResourceBinding shop/web',
  uid: 'of-web',
  namespace: 'shop',
  count: 3,
  each: { cpu: '1' },
  since: '2026-11-23T12:00:00Z',
  ...more,
});
const job = demand({ source: 'Workload shop/web' });

it('a workload that two hubs of one API server cannot place is bought for once', () => {
  const told = new ToldByHubs();
  expect(told.once('karmada', 'server', [demand()], 0)).toEqual([demand()]);
  expect(told.once('kueue', 'server', [job], 1_000)).toEqual([]);
  expect(told.once('karmada', 'server', [demand()], 30_000)).toEqual([demand()]);
  expect(told.once('kueue', 'server', [job], 80_000)).toEqual([]);
  // The first hub has placed it, or is not asked any more.
  expect(told.once('kueue', 'server', [job], 91_000)).toEqual([job]);
  expect(told.once('karmada', 'server', [demand()], 92_000)).toEqual([]);
});

it('all demands of one hub for a workload are kept', () => {
  const parts = [job, { ...job, each: { cpu: '2' } }];
  expect(new ToldByHubs().once('kueue', 'server', parts, 0)).toEqual(parts);
});

it.each<[string, string, Demand]>([
  ['of another namespace, whose tenants may write what they like', 'server', demand({ namespace: 'other' })],
  ['of another API server', 'elsewhere', demand()],
  ['that says no UID', 'server', demand({ uid: undefined })],
])('takes no workload for the same %s', (_, server, other) => {
  const told = new ToldByHubs();
  told.once('karmada', 'server', [demand()], 0);
  expect(told.once('kueue', server, [other], 0)).toEqual([other]);
});

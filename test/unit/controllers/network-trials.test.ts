import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Seed } from '../../../operator/api/seed.ts';
import type { TrialResult } from '../../../operator/controllers/seed/network-trial.ts';
import { NetworkTrials } from '../../../operator/controllers/seed/network-trials.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { buildSeed } from '../../kit/builders/objects.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** A seed, as it is looked at; what is found out stands in its status from then on. */
function seedWith(results: TrialResult[]) {
  let now = Date.parse('2026-11-22T00:00:00Z');
  let tried = 0;
  const news: string[] = [];
  let seed = buildSeed({ metadata: { name: 'far', uid: 'u' }, status: {} });
  const trials = () =>
    new NetworkTrials({
      gardenID: 'ours',
      log: { info: () => {} } as never,
      now: () => new Date(now),
      news: (name) => news.push(name),
      attempt: async () => results[tried++]!,
    });
  let operator = trials();
  const look = async (afterMs = 0) => {
    now += afterMs;
    const found = operator.look(seed, {} as KubeClient, new AbortController().signal);
    const condition = { ...found.condition, lastTransitionTime: '' };
    seed = { ...seed, status: { ...seed.status, conditions: [condition], networkTriedAt: found.triedAt } } as Seed;
    await setImmediate();
    return found;
  };
  return { look, news, tried: () => tried, startAnew: () => (operator = trials()) };
}

it('a network trial runs half a minute after the seed is first seen, and reports nothing before', async () => {
  const { look, news, tried } = seedWith([{ enforced: true }]);
  const first = await look();
  expect([first.condition.status, first.condition.reason, first.requeueAfterMs]).toEqual([
    'Unknown',
    'NotTried',
    30_000,
  ]);
  await look(20_000);
  expect(tried()).toBe(0);
  await look(10_000);
  expect([tried(), news]).toEqual([1, ['far']]);
  expect((await look()).condition).toMatchObject({ status: 'True', reason: 'Enforced' });
});

it('a network trial is repeated once a day, also by another operator', async () => {
  const { look, tried, startAnew } = seedWith([{ enforced: true }, { enforced: false }]);
  await look();
  await look(MINUTE);
  await look(HOUR);
  startAnew();
  await look(HOUR);
  const before = await look(MINUTE);
  expect([tried(), before.condition.status]).toEqual([1, 'True']);
  await look(23 * HOUR);
  const after = await look();
  expect([tried(), after.condition.status, after.condition.reason]).toEqual([2, 'False', 'NotEnforced']);
});

it('a network trial reports why it was impossible, without a guess, and is retried soon, later hourly', async () => {
  const cannot: TrialResult = { enforced: 'Unknown', because: 'no image' };
  const { look, tried } = seedWith([cannot, cannot, cannot, cannot, { enforced: true }]);
  await look();
  await look(MINUTE);
  const { condition } = await look();
  expect(condition).toMatchObject({ status: 'Unknown', reason: 'CouldNotTry' });
  expect(condition.message).toContain('no image');
  for (const [at, minutes] of [1, 3, 9].entries()) {
    await look((minutes - 0.5) * MINUTE);
    expect(tried()).toBe(at + 1);
    await look(MINUTE / 2);
    await look();
    expect(tried()).toBe(at + 2);
  }
  await look(HOUR - MINUTE);
  expect(tried()).toBe(4);
  await look(MINUTE);
  expect([tried(), (await look()).condition.status]).toEqual([5, 'True']);
});

import { expect, it } from 'vitest';
import { KubeApiError } from '../../../../operator/kube/errors.ts';
import type { ProviderContext } from '../../../../providers/contract.ts';
import { KnownMachines } from '../../../../providers/machines/known.ts';
import { context, FakeCluster } from '../fixtures.ts';
import { MemoryCloud } from './memory-cloud.ts';

interface Kept {
  applied: string;
}

/** What is remembered of a shoot by an operator that has just started, in a seed whose reads can be held up. */
function testbed() {
  const seed = new FakeCluster();
  const { client } = seed;
  let held: Promise<void> | undefined;
  let lost = false;
  const slow = Object.assign(Object.create(client) as typeof client, {
    getOrUndefined: async (...asked: Parameters<typeof client.getOrUndefined>) => {
      const found = await client.getOrUndefined(...asked);
      await held;
      return found;
    },
    apply: async (...asked: Parameters<typeof client.apply>) => {
      const done = await client.apply(...asked);
      if (lost) throw new KubeApiError('PATCH', 504, { reason: 'Timeout' });
      return done;
    },
  });
  const known = () => new KnownMachines<Kept>(new MemoryCloud().cloud);
  const at = (seedClient: object): ProviderContext => context({ seed: seedClient as ProviderContext['seed'] });
  return {
    known,
    quick: at(client),
    slow: at(slow),
    hold: (until: Promise<void> | undefined) => {
      held = until;
    },
    loseAnswers: (isLost: boolean) => {
      lost = isLost;
    },
  };
}

it('a read that began before a write is not cached after it', async () => {
  const { known, quick, slow, hold } = testbed();
  const first = { applied: 'first' };
  await known().save(quick, first, undefined);
  const one = known();
  const { promise, resolve } = Promise.withResolvers<void>();
  hold(promise);
  // Who tells of machines has begun to read when who makes them writes.
  const reading = one.receipt(slow);
  await one.save(quick, { applied: 'second' }, first);
  resolve();
  expect(await reading).toEqual({ applied: 'second' });
  expect(await one.receipt(quick)).toEqual({ applied: 'second' });
});

it('a read is repeated if the outcome of a write is unknown', async () => {
  const { known, quick, slow, loseAnswers } = testbed();
  const one = known();
  const first = { applied: 'first' };
  await one.save(quick, first, undefined);
  loseAnswers(true);
  const writing = one.save(slow, { applied: 'second' }, first);
  await one.receipt(quick);
  await expect(writing).rejects.toThrow();
  expect(await one.receipt(quick)).toEqual({ applied: 'second' });
});

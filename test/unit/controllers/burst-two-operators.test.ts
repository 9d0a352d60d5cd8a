import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { reconcileBurst } from '../../../operator/controllers/burst/controller.ts';
import { gardenWorld } from '../../../operator/controllers/burst/garden-world.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';

import { BurstTestbed, demand, policyNamed } from '../../kit/burst/testbed.ts';

const SECOND = 1000;

it('two operators that are active at once buy no cluster twice, and forget none', async () => {
  const bed = new BurstTestbed();
  bed.objects.put(policyNamed('peak'));
  const memory = new BurstMemory();
  const { signal } = new AbortController();
  const work = (count: number) => Array.from({ length: count }, (_, at) => demand(`ResourceBinding shop/w${at}`, 3));
  let contested = 0;
  for (let looks = 0; looks < 30; looks++) {
    bed.now += 10 * SECOND;
    bed.demands = work(Math.min(3, looks));
    const { deps } = bed;
    const { receipts } = deps;
    const first = Promise.withResolvers<void>();
    // The other operator reads what was decided, and goes on only when the first one has decided something more.
    const late = {
      ...deps,
      hear: async () => ({ demands: looks > 0 ? [demand('ResourceBinding shop/late', 3)] : [] }),
      receipts: {
        madeFrom: receipts.madeFrom.bind(receipts),
        save: receipts.save.bind(receipts),
        read: async (key: string) => {
          const kept = await receipts.read(key);
          await first.promise;
          return kept;
        },
      },
    };
    const before = bed.receipt();
    const other = reconcileBurst(gardenWorld(late as never), memory, 'production', signal);
    await reconcileBurst(gardenWorld(deps), bed.memory, 'production', signal).finally(first.resolve);
    const decided = bed.receipt();
    await Promise.allSettled([other]);
    // Where the first one has written something down, the other one has looked at what is no longer so.
    if (!isDeepStrictEqual(before, decided)) {
      contested++;
      expect(bed.receipt()).toEqual(decided);
    }
    const known = bed.receipt()?.purchases.map(({ name }) => name) ?? [];
    expect(new Set(known).size).toBe(known.length);
    for (const { metadata } of bed.clusters()) expect(known).toContain(metadata.name);
  }
  expect([contested, bed.clusters().length]).not.toContain(0);
});

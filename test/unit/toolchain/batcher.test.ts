import { expect, test } from 'vitest';
import { Batcher } from '../../../operator/garden/toolchain/batcher.ts';

const collect = (patienceMs: number) => {
  const batches: string[][] = [];
  const batcher = new Batcher<string>({
    take: (pending) => pending.filter((job) => job[0] === [...pending].sort()[0]![0]),
    run: async (jobs) => {
      batches.push(jobs);
      if (jobs.includes('bad')) throw new Error('bad batch');
    },
    patienceMs,
  });
  return { batches, batcher };
};

test('the batcher waits for all expected jobs, then runs batch by batch', async () => {
  const { batches, batcher } = collect(10_000);
  for (let i = 0; i < 4; i++) batcher.expect();
  const jobs = [batcher.submit('z1'), batcher.submit('a1'), batcher.submit('a2')];
  expect(batches).toEqual([]);
  batcher.dismiss();
  await Promise.all(jobs);
  expect(batches).toEqual([['a1', 'a2'], ['z1']]);
});

test('the batcher does not wait longer than its patience', async () => {
  const { batches, batcher } = collect(20);
  batcher.expect();
  batcher.expect();
  await batcher.submit('a');
  expect(batches).toEqual([['a']]);
});

test('a failing batch fails its jobs only', async () => {
  const { batcher } = collect(20);
  batcher.expect();
  batcher.expect();
  const [bad, good] = await Promise.allSettled([batcher.submit('bad'), batcher.submit('good')]);
  expect(bad.status).toBe('rejected');
  expect(good.status).toBe('fulfilled');
});

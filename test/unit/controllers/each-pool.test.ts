import { expect, it } from 'vitest';
import { CoppiceError } from '../../../operator/api/errors.ts';
import { eachPool } from '../../../operator/controllers/shoot/machines/each-pool.ts';

const pools = ['a', 'b', 'c'].map((name) => ({ name }));
const soldOut = (pool: string) =>
  new CoppiceError('ERR_INFRA_RESOURCES_DEPLETED', `pool ${pool} is sold out`, { shortages: [{ pool }] });

/** Works on all pools, of which these fail. @returns the pools that were worked on, and what was thrown */
async function run(errors: Record<string, Error>) {
  const done: string[] = [];
  const error: unknown = await eachPool(pools, async ({ name }) => {
    if (errors[name]) throw errors[name];
    done.push(name);
  }).catch((thrown: unknown) => thrown);
  return { done, error };
}

it('a failing pool does not block the others, and its error is passed on unchanged', async () => {
  const refused = new Error('taints[1]: Duplicate value');
  expect(await run({ a: refused })).toEqual({ done: ['b', 'c'], error: refused });
  expect(await run({})).toEqual({ done: pools.map(({ name }) => name), error: undefined });
});

it('errors of several pools name each pool, and everything that is sold out', async () => {
  const { error } = await run({ a: new Error('Duplicate value'), b: soldOut('b'), c: soldOut('c') });
  expect(error).toMatchObject({
    message: 'pool a: Duplicate value; pool b is sold out; pool c is sold out',
    code: 'ERR_INFRA_RESOURCES_DEPLETED',
    shortages: [{ pool: 'b' }, { pool: 'c' }],
  });
  expect((await run({ a: new Error('one'), b: new Error('two') })).error).toMatchObject({
    message: 'pool a: one; pool b: two',
  });
});

it('work on pools ends once the operation is cancelled', async () => {
  const over = new AbortController();
  const done: string[] = [];
  const work = async ({ name }: { name: string }) => {
    done.push(name);
    over.abort(new Error('the shoot was changed'));
  };
  await expect(eachPool(pools, work, over.signal)).rejects.toThrow('the shoot was changed');
  expect(done).toEqual(['a']);
});

import { expect, it } from 'vitest';
import { eachPage } from '../../../providers/pages.ts';

const pagesUntil = async (end: number, last?: string) => {
  const asked: (string | undefined)[] = [];
  await eachPage('numbers', async (mark) => (asked.push(mark) < end ? String(asked.length) : last));
  return asked;
};

it('a list is asked for until a page names no other', async () => {
  expect(await pagesUntil(3)).toEqual([undefined, '1', '2']);
  expect(await pagesUntil(1, '')).toEqual([undefined]);
  expect(await pagesUntil(1000)).toHaveLength(1000);
});

it('a list that does not end is an error, not a part of it nor a wait for ever', async () => {
  await expect(pagesUntil(Number.POSITIVE_INFINITY)).rejects.toMatchObject({
    code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    message: 'numbers: the list has more than 1000 pages, and no more of them are asked for',
  });
});

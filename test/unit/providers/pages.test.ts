import { expect, it } from 'vitest';
import { eachPage } from '../../../providers/pages.ts';

const pagesUntil = async (end: number, last?: string) => {
  const asked: (string | undefined)[] = [];
  await eachPage('numbers', async (mark) => (asked.push(mark) < end ? String(asked.length) : last));
  return asked;
};

it('eachPage reads until a page names no next one', async () => {
  expect(await pagesUntil(3)).toEqual([undefined, '1', '2']);
  expect(await pagesUntil(1, '')).toEqual([undefined]);
  expect(await pagesUntil(1000)).toHaveLength(1000);
});

it('eachPage rejects an endless list, and returns no part of it', async () => {
  await expect(pagesUntil(Number.POSITIVE_INFINITY)).rejects.toMatchObject({
    code: 'ERR_RETRYABLE_INFRA_DEPENDENCIES',
    message: 'numbers: the list has more than 1000 pages, and no more of them are asked for',
  });
});

import { describe, expect, it } from 'vitest';
import { isMet, summarize } from '../../bench/statistics.ts';

describe('summarize', () => {
  it('sorts by size, not by text', () => {
    expect(summarize([10, 9, 100])).toEqual({ count: 3, minimum: 9, median: 10, maximum: 100 });
  });
  it('takes the mean of the middle two of an even number of values', () => {
    expect(summarize([4, 1, 2, 3])?.median).toBe(2.5);
  });
  it('is undefined for no values', () => {
    expect(summarize([])).toBeUndefined();
  });
  it('does not change its argument', () => {
    const values = [3, 1, 2];
    summarize(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('isMet', () => {
  const summary = { count: 3, minimum: 1, median: 5, maximum: 10 };
  it.each([
    [{ median: 5 }, true],
    [{ median: 4.9 }, false],
    [{ median: 5, maximum: 9 }, false],
    [{ median: 5, maximum: 10 }, true],
  ])('for limit %o is %s', (bar, met) => {
    expect(isMet(summary, bar)).toBe(met);
  });
  it('is undefined without a limit or without values', () => {
    expect(isMet(summary, undefined)).toBeUndefined();
    expect(isMet(undefined, { median: 1 })).toBeUndefined();
  });
});

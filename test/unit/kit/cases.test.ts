import { afterEach, expect, it, vi } from 'vitest';
import { casesOf, casesUpTo, chooseCases, hasAllCases } from '../../kit/cases.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

it('casesOf returns all cases by default, and an eighth but at least one when few are wanted', () => {
  vi.stubEnv('COPPICE_TEST_CASES', '');
  expect(casesOf(200)).toBe(200);
  expect(hasAllCases()).toBe(true);
  chooseCases('few');
  expect(hasAllCases()).toBe(false);
  expect([200, 10, 1].map((all) => casesOf(all))).toEqual([25, 2, 1]);
  expect(casesOf(4000, 600)).toBe(600);
  expect([20, 6, 1, 0].map(casesUpTo)).toEqual([[1, 8, 15], [1], [1], []]);
  vi.stubEnv('COPPICE_TEST_CASES', 'all');
  expect(casesUpTo(3)).toEqual([1, 2, 3]);
});

it('casesOf keeps an earlier choice, and rejects an unknown one', () => {
  vi.stubEnv('COPPICE_TEST_CASES', 'all');
  chooseCases('few');
  expect(casesOf(200)).toBe(200);
  vi.stubEnv('COPPICE_TEST_CASES', 'most');
  expect(() => casesOf(200)).toThrow('COPPICE_TEST_CASES is "most": give "few" or "all"');
});

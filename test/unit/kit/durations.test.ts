import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { budgetSeconds, longestFirst } from '../../kit/durations.ts';

describe('the table of test durations', () => {
  it("gives a file a multiple of its time plus a margin, and an unknown file its tier's time", () => {
    const known = { 'test/e2e/a.test.ts': 100.5, 'test/unit/a.test.ts': 2.5 };
    expect(budgetSeconds('test/e2e/a.test.ts', known)).toBe(362);
    expect(budgetSeconds('test/unit/a.test.ts', known)).toBe(205);
    expect(['unit', 'integration', 'e2e'].map((tier) => budgetSeconds(`test/${tier}/b.test.ts`, known))).toEqual([
      300, 600, 900,
    ]);
  });

  it('starts the longest file first, and unknown ones by their tier', () => {
    const known = { 'test/unit/short.test.ts': 0.5, 'test/unit/long.test.ts': 9 };
    const files = ['test/unit/short.test.ts', 'test/unit/new.test.ts', 'test/unit/long.test.ts'];
    expect(longestFirst(files, (file) => file, known)).toEqual([
      'test/unit/long.test.ts',
      'test/unit/new.test.ts',
      'test/unit/short.test.ts',
    ]);
  });

  it('contains no deleted file', () => {
    const table = JSON.parse(readFileSync('test/durations.json', 'utf8')) as object;
    expect(Object.keys(table).filter((file) => !existsSync(file))).toEqual([]);
  });
});

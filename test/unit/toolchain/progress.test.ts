import { describe, expect, test } from 'vitest';
import { estimateRemaining, learnedSpeed } from '../../../operator/garden/toolchain/progress.ts';

describe('estimateRemaining', () => {
  test("uses weights at the machine's speed before the start", () => {
    expect(estimateRemaining([{ weight: 30 }, { weight: 210 }], 1)).toBe(240);
    expect(estimateRemaining([{ weight: 30 }, { weight: 210 }], 2)).toBe(480);
    expect(estimateRemaining([], 1)).toBe(0);
  });
  test('counts down without progress of a build', () => {
    expect(estimateRemaining([{ weight: 30, fraction: 0, elapsedSeconds: 10 }, { weight: 10 }], 1)).toBe(30);
  });
  test("trusts a build's progress increasingly", () => {
    const early = estimateRemaining([{ weight: 100, fraction: 0.1, elapsedSeconds: 20 }], 1);
    const late = estimateRemaining([{ weight: 100, fraction: 0.7, elapsedSeconds: 140 }], 1);
    expect(early).toBeGreaterThan(80);
    expect(early).toBeLessThan(180);
    expect(late).toBe(60);
  });
  test("applies a slow build's speed to the following ones", () => {
    const work = [{ weight: 100, fraction: 0.9, elapsedSeconds: 180 }, { weight: 50 }];
    expect(estimateRemaining(work, 1)).toBe(20 + 100);
  });
  test('is never negative', () => {
    expect(estimateRemaining([{ weight: 10, fraction: 0, elapsedSeconds: 500 }], 1)).toBe(0);
  });
});

test('learnedSpeed follows the machine', () => {
  expect(learnedSpeed(undefined, 100, 150)).toBe(1.5);
  expect(learnedSpeed(1, 100, 200)).toBe(1.5);
});

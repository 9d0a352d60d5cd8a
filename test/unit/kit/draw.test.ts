import { describe, expect, it } from 'vitest';
import { draw } from '../../kit/draw.ts';

describe('draws of successive seeds', () => {
  it.each([1, 2, 5])('do not differ by a constant (draw %i)', (choice) => {
    const numbers = Array.from({ length: 1000 }, (_, seed) => nth(seed + 1, choice));
    const steps = numbers.slice(1).map((number, index) => Math.floor(((number - numbers[index]! + 1) % 1) * 10));
    const seen = Array.from({ length: 10 }, (_, tenth) => steps.filter((step) => step === tenth).length);
    for (const count of seen) expect(count).toBeGreaterThan(60);
  });

  it('occur in all combinations', () => {
    const pairs = Array.from({ length: 2000 }, (_, seed) => {
      const { integer } = draw(seed + 1);
      return `${integer(0, 9)} ${integer(0, 9)}`;
    });
    expect(new Set(pairs).size).toBe(100);
  });

  it('are equal for equal seeds', () => {
    expect(nth(7, 3)).toBe(nth(7, 3));
  });
});

function nth(seed: number, choice: number): number {
  const { random } = draw(seed);
  let number = 0;
  for (let made = 0; made < choice; made++) number = random();
  return number;
}

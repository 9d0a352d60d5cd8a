import { afterEach, describe, expect, it, vi } from 'vitest';
import { hasTurn, rotates, rotationOf, rotationOfCommit } from '../../kit/rotation.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** A `describe` that notes what is declared by it. */
function noting() {
  const [run, skipped]: string[][] = [[], []];
  const declare = Object.assign((name: string, _body: () => void) => void run!.push(name), {
    skip: (name: string, _body: () => void) => void skipped!.push(name),
  });
  return { declare, run, skipped };
}

describe('what rotates', () => {
  it('runs in exactly one of as many turns as there are, whatever the commit is', () => {
    for (const commit of ['0000000abc', 'fffffff123', '7d34c02991']) {
      const rotation = rotationOfCommit(commit);
      expect([0, 1, 2, 3].filter((turn) => hasTurn(rotation, 4, [turn]))).toHaveLength(1);
    }
    expect([0, 1, 2, 3].every((turn) => hasTurn('all', 4, [turn]))).toBe(true);
  });

  it('is skipped in other turns, and its name says so', () => {
    const { declare, run, skipped } = noting();
    vi.stubEnv('COPPICE_TEST_ROTATION', '6');
    rotates(declare, { of: 4, turns: [2] })('mine', () => {});
    rotates(declare, { of: 4, turns: [0, 3] })('another', () => {});
    expect(run).toEqual(['mine']);
    expect(skipped).toEqual(['another [rotates: this run has turn 2, it has 0 and 3 of 4]']);
  });

  it('is all run by whoever chooses all, or nothing', () => {
    for (const chosen of ['all', '']) {
      const { declare, run } = noting();
      vi.stubEnv('COPPICE_TEST_ROTATION', chosen);
      for (const turn of [0, 1]) rotates(declare, { of: 2, turns: [turn] })(`${turn}`, () => {});
      expect(run).toEqual(['0', '1']);
    }
  });

  it('refuses a rotation that is none, and a turn that never comes', () => {
    expect(() => rotationOf('most')).toThrow('COPPICE_TEST_ROTATION is "most": give a whole number or "all"');
    expect(() => rotates(noting().declare, { of: 3, turns: [3] })).toThrow('there is no turn 3 of 3');
  });
});

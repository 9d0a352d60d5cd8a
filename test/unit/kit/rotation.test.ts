import { afterEach, describe, expect, it, vi } from 'vitest';
import { checkTurns, chosenRotation, hasTurn, LONGEST_WAIT, rotates, rotationOf } from '../../kit/rotation.ts';

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

describe('a rotating test', () => {
  it('runs in exactly one turn of a cycle', () => {
    for (const rotation of [0, 5, 268_435_455])
      expect([0, 1, 2, 3].filter((turn) => hasTurn(rotation, 4, [turn]))).toHaveLength(1);
    expect([0, 1, 2, 3].every((turn) => hasTurn('all', 4, [turn]))).toBe(true);
  });

  it.each([
    [1, [0]],
    [3, [2]],
    [4, [3]],
    [8, [0, 4]],
    [6, [0, 3, 4]],
  ])('runs at least once in four successive runs: of %i, turns %j', (of, turns) => {
    checkTurns({ of, turns });
    for (let first = 0; first < 3 * of; first++) {
      const four = Array.from({ length: LONGEST_WAIT }, (_, index) => first + index);
      expect(four.some((rotation) => hasTurn(rotation, of, turns))).toBe(true);
    }
  });

  it.each([
    [5, [0]],
    [16, [1]],
    [8, [0, 3]],
    [3, []],
  ])('is refused if four runs could pass without it: of %i, turns %j', (of, turns) => {
    expect(() => rotates(noting().declare, { of, turns })).toThrow('do not come in each 4 runs');
  });

  it("is chosen by the number of commits, or else the commit's name, and always runs without a commit", () => {
    vi.stubEnv('COPPICE_TEST_ROTATION', '');
    const git =
      (isShallow: boolean) =>
      (...args: string[]) =>
        ({ 'rev-parse HEAD': '00000ff123', 'rev-list --count HEAD': '17' })[args.join(' ')] ?? `${isShallow}`;
    expect(chosenRotation(git(false))).toEqual({ rotation: 17, why: 'by commit 00000ff' });
    expect(chosenRotation(git(true)).rotation).toBe(0xff);
    const without = () => {
      throw new Error('not a git repository');
    };
    expect(chosenRotation(without).rotation).toBe('all');
    vi.stubEnv('COPPICE_TEST_ROTATION', '3');
    expect(chosenRotation(without).rotation).toBe(3);
  });

  it('is skipped in other turns, and its name says so', () => {
    const { declare, run, skipped } = noting();
    vi.stubEnv('COPPICE_TEST_ROTATION', '6');
    rotates(declare, { of: 4, turns: [2] })('mine', () => {});
    rotates(declare, { of: 4, turns: [0, 3] })('another', () => {});
    expect(run).toEqual(['mine']);
    expect(skipped).toEqual(['another [rotates: this run has turn 2, it has 0 and 3 of 4]']);
  });

  it('always runs with rotation all or an empty one', () => {
    for (const chosen of ['all', '']) {
      const { declare, run } = noting();
      vi.stubEnv('COPPICE_TEST_ROTATION', chosen);
      for (const turn of [0, 1]) rotates(declare, { of: 2, turns: [turn] })(`${turn}`, () => {});
      expect(run).toEqual(['0', '1']);
    }
  });

  it('is refused for an invalid rotation, or for a turn that does not exist', () => {
    expect(() => rotationOf('most')).toThrow('COPPICE_TEST_ROTATION is "most": give a whole number or "all"');
    expect(() => rotates(noting().declare, { of: 3, turns: [3] })).toThrow('there is no turn 3 of 3');
  });
});

import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filesBeside, LANES, nextFile } from '../../kit/lanes.ts';

const BESIDE = { one: ['clouds', 'placement'], two: ['clouds'], three: ['placement'], four: [] };

/** What runs together from the first to the last file, when whatever was begun first ends first. */
function plan(files: string[]): string[][] {
  const seen: string[][] = [];
  let waiting = files;
  let running: string[] = [];
  while (waiting.length > 0 || running.length > 0) {
    for (let file = nextFile(waiting, running, BESIDE); file; file = nextFile(waiting, running, BESIDE)) {
      const begun = file;
      waiting = waiting.filter((one) => one !== begun);
      running = [...running, begun];
      seen.push(running);
    }
    running = running.slice(1);
  }
  return seen;
}

describe('end-to-end files in lanes', () => {
  it('begin in the order that is wanted, as far as they leave each other what is theirs', () => {
    expect(plan(['one', 'two', 'three', 'four'])).toEqual([
      ['one'],
      ['one', 'four'],
      ['four', 'two'],
      ['two', 'three'],
    ]);
  });

  it('are never more at once than there are lanes', () => {
    expect(
      nextFile(
        ['four'],
        Array.from({ length: LANES }, () => 'four'),
        BESIDE,
      ),
    ).toBeUndefined();
  });

  it('that nobody has classed run by themselves, after all others', () => {
    expect(plan(['kills', 'two', 'new', 'four'])).toEqual([['two'], ['two', 'four'], ['kills'], ['new']]);
  });

  it('exist', () => {
    expect(filesBeside().filter((file) => !existsSync(file))).toEqual([]);
  });
});

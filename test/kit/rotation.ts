import { execFileSync } from 'node:child_process';

/** Which part of what rotates this run has: a number, of which each rotation takes the remainder, or all of it. */
export type Rotation = number | 'all';

/** Names it: a number, or `all`. Absent: all, so that whoever runs one file by hand sees all of it. */
const VARIABLE = 'COPPICE_TEST_ROTATION';

/** Throws when the variable says something else than a whole number from 0 on, or `all`. */
export function rotationOf(text: string | undefined): Rotation {
  if (text === undefined || text === '' || text === 'all') return 'all';
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${VARIABLE} is "${text}": give a whole number or "all"`);
  return Number(text);
}

/**
 * The rotation of this run, and why it is that one. Where nobody chose, the commit decides, so that a failure comes back when its commit is
 * run again: by its count, so that four commits one after the other have four numbers one after the other. A clone without its history has
 * no such count, and takes the commit's name as the number.
 * @param git answers a command of git, or throws where there is no commit
 */
export function chosenRotation(git = askGit): { rotation: Rotation; why: string } {
  if (process.env[VARIABLE]) return { rotation: rotationOf(process.env[VARIABLE]), why: `by ${VARIABLE}` };
  try {
    const commit = git('rev-parse', 'HEAD').slice(0, 7);
    const isShallow = git('rev-parse', '--is-shallow-repository') === 'true';
    const rotation = isShallow ? Number.parseInt(commit, 16) : Number(git('rev-list', '--count', 'HEAD'));
    return { rotation, why: `by commit ${commit}` };
  } catch {
    return { rotation: 'all', why: 'because there is no commit to choose by' };
  }
}

const askGit = (...args: string[]): string =>
  execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/** Makes it the rotation of all processes that this one starts. */
export const tellRotation = (rotation: Rotation): void => {
  process.env[VARIABLE] = String(rotation);
};

/** In which runs something has a turn: where the remainder of the rotation by `of` is one of `turns`. */
export interface Turns {
  readonly of: number;
  readonly turns: readonly number[];
}

/** Among so many runs whose rotations follow each other, each thing that rotates has a turn. */
export const LONGEST_WAIT = 4;

/** Throws where a turn never comes, or comes later than after LONGEST_WAIT runs. */
export function checkTurns({ of, turns }: Turns): void {
  if (turns.some((turn) => turn >= of)) throw new Error(`there is no turn ${Math.max(...turns)} of ${of}`);
  const sorted = turns.toSorted((one, other) => one - other);
  const waits = sorted.map((turn, index) => (sorted[index + 1] ?? sorted[0]! + of) - turn);
  if (waits.length === 0 || Math.max(...waits) > LONGEST_WAIT)
    throw new Error(`turns ${turns.join(' and ')} of ${of} do not come in each ${LONGEST_WAIT} runs`);
}

/** Whether a run of this rotation has one of these turns of `of`. */
export const hasTurn = (rotation: Rotation, of: number, turns: readonly number[]): boolean =>
  rotation === 'all' || turns.includes(rotation % of);

interface Declares {
  skip: unknown;
}

/**
 * `describe` or `it` (or `e2e`) for what does not run every time: in these turns of `of`, counted from 0. In other turns it is skipped,
 * and its name says so. `npm run test:all` runs everything.
 * @example rotates(describe, { of: 3, turns: [0] })('AWS', () => { ... })
 */
export function rotates<Declare extends Declares>(declare: Declare, { of, turns }: Turns): Declare {
  checkTurns({ of, turns });
  const rotation = rotationOf(process.env[VARIABLE]);
  if (hasTurn(rotation, of, turns)) return declare;
  const skip = declare.skip as (name: string, ...rest: unknown[]) => unknown;
  const turn = (rotation as number) % of;
  return ((name: string, ...rest: unknown[]) =>
    skip(
      `${name} [rotates: this run has turn ${turn}, it has ${turns.join(' and ')} of ${of}]`,
      ...rest,
    )) as unknown as Declare;
}

/** Whether this run has all that rotates. */
export const isAll = (): boolean => rotationOf(process.env[VARIABLE]) === 'all';

/** Whether this run has one of these turns of `of`: for what is done one way in some runs, and another way in others. */
export function isTurn({ of, turns }: Turns): boolean {
  checkTurns({ of, turns });
  return hasTurn(rotationOf(process.env[VARIABLE]), of, turns);
}

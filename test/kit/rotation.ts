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

/** What `npm test` takes when nobody chose: the commit decides, so that a failure comes back when its commit is run again. */
export function rotationOfCommit(commit: string): number {
  return Number.parseInt(commit.slice(0, 7), 16);
}

/** The rotation of this run, and why it is that one. */
export function chosenRotation(): { rotation: Rotation; why: string } {
  if (process.env[VARIABLE]) return { rotation: rotationOf(process.env[VARIABLE]), why: `by ${VARIABLE}` };
  try {
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    return { rotation: rotationOfCommit(commit), why: `by commit ${commit.slice(0, 7)}` };
  } catch {
    return { rotation: 'all', why: 'because there is no commit to choose by' };
  }
}

/** Makes it the rotation of all processes that this one starts. */
export const tellRotation = (rotation: Rotation): void => {
  process.env[VARIABLE] = String(rotation);
};

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
export function rotates<Declare extends Declares>(
  declare: Declare,
  { of, turns }: { of: number; turns: readonly number[] },
): Declare {
  if (turns.some((turn) => turn >= of)) throw new Error(`there is no turn ${Math.max(...turns)} of ${of}`);
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
export const isTurn = ({ of, turns }: { of: number; turns: readonly number[] }): boolean =>
  hasTurn(rotationOf(process.env[VARIABLE]), of, turns);

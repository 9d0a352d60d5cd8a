/** How many cases are tried: `few` or `all`. Absent: all, so that whoever runs one file by hand sees all of it. */
const VARIABLE = 'COPPICE_TEST_CASES';
/** What part of its cases a property keeps in a run of few. */
const FEW = 1 / 8;

/** Has this process, and all that it starts, try so many cases, if the environment does not say it. */
export function chooseCases(cases: 'few' | 'all'): void {
  process.env[VARIABLE] ||= cases;
}

const areFew = (): boolean => {
  const { [VARIABLE]: chosen } = process.env;
  if (chosen && chosen !== 'few' && chosen !== 'all')
    throw new Error(`${VARIABLE} is "${chosen}": give "few" or "all"`);
  return chosen === 'few';
};

/** Whether this run tries all cases, and so may expect what only all of them together show. */
export const hasAllCases = (): boolean => !areFew();

/** How many cases this run tries of so many, or seconds it waits: a part of them where few are wanted. At least one. */
export const casesOf = (all: number, few = Math.ceil(all * FEW)): number => (areFew() ? few : all);

/** The numbers from 1 to `last` that this run tries, for example after which write a process is killed: all, or an eighth of them. */
export function casesUpTo(last: number): number[] {
  const step = hasAllCases() ? 1 : Math.ceil(last / casesOf(last));
  return Array.from({ length: Math.ceil(last / step) }, (_, index) => 1 + index * step);
}

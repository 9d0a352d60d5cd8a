/**
 * What an output of README and Getting started says differently in each run, and what stands in its place there. `npm run
 * generate:transcripts` writes outputs masked; the test of these pages masks what it sees, and compares.
 */
const MASKS: readonly (readonly [what: RegExp, instead: string])[] = [
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, '<time>'],
  [/\bin \d{4}-\d\d\b/g, 'in <month>'],
  [/\bmachines-([a-z]+)-[a-z0-9]{5}\b/g, 'machines-$1-<hash>'],
  [/\bpeak-([a-z]+)-[0-9a-f]{6}\b/g, 'peak-$1-<hash>'],
  [/\bweb-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b/g, 'web-<hash>'],
  [/\b\d+(\.\d+)? s\b/g, '<n> s'],
  [/\bhad work by then\b/g, 'had work <n> s later'],
  [/\bhas cost \d+(\.\d+)? USD/g, 'has cost <n> USD'],
  [/\bSpent: \d+(\.\d+)? USD/g, 'Spent: <n> USD'],
];
/** Columns whose cells are ages. */
const AGES: readonly string[] = ['AGE', 'SINCE', 'IDLE', 'WAITS'];
/** What a line of progress begins with: the time since the command began, `[  12s] ` or, to the second, `[   3m] `. */
export const PROGRESS = /^\[ *[\dhms]+\] /;
const BETWEEN = '   ';

/** An output without what differs from run to run: progress left out, values masked, columns as wide as what is left. */
export function maskOutput(output: string): string {
  const lines = output
    .replace(/\s+$/, '')
    .split('\n')
    .filter((line) => !PROGRESS.test(line));
  const masked: string[] = [];
  for (let at = 0; at < lines.length; ) {
    const starts = columnsOf(lines[at]!);
    let end = at + 1;
    if (starts) while (end < lines.length && isRow(lines[end]!, starts)) end++;
    masked.push(...(starts ? maskTable(lines.slice(at, end), starts) : [maskValues(lines[at]!)]));
    at = end;
  }
  return masked.map((line) => line.trimEnd()).join('\n');
}

const maskValues = (text: string): string =>
  MASKS.reduce((masked, [what, instead]) => masked.replace(what, instead), text);

/** Where columns begin, if this is the heading of a table: words in capitals with two spaces between them at least. */
function columnsOf(line: string): number[] | undefined {
  if (!/^[A-Z]/.test(line) || !/^[A-Z -]+$/.test(line)) return undefined;
  const starts = [...line.matchAll(/(?<=^|\s{2})\S/g)].map(({ index }) => index);
  return starts.length > 1 ? starts : undefined;
}

/** A row of a tree may be indented. */
const isRow = (line: string, [, ...starts]: readonly number[]): boolean =>
  /^(\S| *[│├└])/.test(line) &&
  starts.every((start) => line.length <= start || /^\s{2}$/.test(line.slice(start - 2, start)));

function maskTable(lines: readonly string[], starts: readonly number[]): string[] {
  const cells = lines.map((line) => starts.map((start, column) => line.slice(start, starts[column + 1]).trimEnd()));
  const [heading = [], ...rows] = cells;
  const masked = rows.map((row) =>
    row.map((cell, column) => (cell !== '' && AGES.includes(heading[column]!) ? '<age>' : maskValues(cell))),
  );
  const widths = heading.map((_, column) => Math.max(...[heading, ...masked].map((row) => row[column]!.length)));
  return [heading, ...masked].map((row) => row.map((cell, column) => cell.padEnd(widths[column]!)).join(BETWEEN));
}

import { createReadStream } from 'node:fs';
import { type CoppiceError, configurationProblem } from '../../api/errors.ts';

/** Longer lines are rejected unread, to bound memory. */
const LONGEST_LINE = 65_536;

/** Error for a line of a trace. */
export const traceProblem = (where: string, message: string, advice?: string): CoppiceError =>
  configurationProblem(`${where}: ${message}`, advice ?? 'Correct the trace.');

/** Lines with their numbers, without empty lines and comments (#). */
export async function* linesOf(file: string): AsyncGenerator<{ text: string; number: number }> {
  let rest = '';
  let number = 0;
  const one = (line: string) => {
    number++;
    if (line.length > LONGEST_LINE)
      throw traceProblem(`${file}:${number}`, `the line has more than ${LONGEST_LINE} characters`);
    const text = (number === 1 ? line.replace(/^\uFEFF/, '') : line).trim();
    return text === '' || text.startsWith('#') ? undefined : { text, number };
  };
  for await (const chunk of createReadStream(file, 'utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const found = one(line);
      if (found) yield found;
    }
    if (rest.length > LONGEST_LINE) one(rest);
  }
  const found = one(rest);
  if (found) yield found;
}

/** Cells of a CSV line (RFC 4180, without line breaks in cells). */
export function csvCells(where: string, text: string): string[] {
  if (!text.includes('"')) return text.split(',').map((cell) => cell.trim());
  const found: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(,|$)/gy)) {
    found.push((quoted?.replaceAll('""', '"') ?? plain ?? '').trim());
    if (end === '') return found;
  }
  throw traceProblem(where, 'a quotation mark is not closed, or stands in the middle of a cell');
}

import { oneLine } from '../errors.ts';

// Ranges that terminals draw two columns wide (East Asian wide, emoji) or not at all (combining marks, joiners).
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const ZERO = /[\p{Mn}\p{Me}\p{Cf}]/u;
// Escape is the control character that begins a colour sequence.
const COLOUR = /\p{Cc}\[[0-9;]*m/gu;

/** Columns of the text on a terminal; colour sequences have none. */
export function displayWidth(text: string): number {
  const plain = text.replace(COLOUR, '');
  if (/^[\u0020-\u007e]*$/.test(plain)) return plain.length;
  let width = 0;
  for (const character of plain) {
    if (ZERO.test(character)) continue;
    width += WIDE.test(character) ? 2 : 1;
  }
  return width;
}

/** The text cut to `width` columns, with an ellipsis at the cut. Plain text only: no colour sequences. */
export function truncate(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 0) return '';
  let cut = '';
  let used = 0;
  for (const character of text) {
    const size = displayWidth(character);
    if (used + size > width - 1) break;
    cut += character;
    used += size;
  }
  return `${cut.trimEnd()}…`;
}

/** The text padded with spaces to `width` columns. */
export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

/** Wraps plain text at spaces into lines of at most `width` columns. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`;
    if (displayWidth(longer) > width && line !== '') {
      lines.push(line);
      line = word;
    } else {
      line = longer;
    }
  }
  if (line !== '') lines.push(line);
  return lines;
}

/** A server's value as one cell: one line, no control characters. */
export function textCell(value: string | number | boolean | null | undefined): string {
  if (value === undefined || value === null) return '';
  return oneLine(String(value));
}

export type Tone = 'good' | 'bad' | 'busy' | 'dim' | 'strong' | 'loud';

const CODES: Record<Tone, string> = { good: '32', bad: '31', busy: '33', dim: '2', strong: '1', loud: '1;33' };

/** Colours text, or returns it unchanged. */
export type Paint = (tone: Tone | undefined, text: string) => string;

export const plain: Paint = (_tone, text) => text;

export const coloured: Paint = (tone, text) =>
  tone === undefined || text === '' ? text : `\u001b[${CODES[tone]}m${text}\u001b[0m`;

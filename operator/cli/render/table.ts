import { displayWidth, type Paint, padEnd, plain, type Tone, truncate } from './text.ts';

export interface Cell {
  text: string;
  tone?: Tone;
}

export interface TableOptions {
  /** Columns of the terminal; absent: as wide as it takes (pipes and files). */
  width?: number;
  paint?: Paint;
  header?: boolean;
}

const GAP = 3;
const SMALLEST_COLUMN = 8;

/**
 * Rows under a header, in aligned columns. When the terminal is too narrow the widest columns give way first;
 * the first column (the name) gives way last.
 */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly (Cell | string)[])[],
  options: TableOptions = {},
): string[] {
  const paint = options.paint ?? plain;
  const cells = rows.map((row) => row.map((value) => (typeof value === 'string' ? { text: value } : value)));
  const all: readonly (readonly Cell[])[] = options.header === false ? cells : [header.map((text) => ({ text })), ...cells];
  const widths = header.map((_, column) => Math.max(0, ...all.map((row) => displayWidth(row[column]?.text ?? ''))));
  if (options.width !== undefined) squeeze(widths, options.width, header);

  return all.map((row, index) => {
    const isHeader = options.header !== false && index === 0;
    const last = row.findLastIndex((value) => value.text !== '');
    return row
      .slice(0, last + 1)
      .map((value, column) => {
        const text = truncate(value.text, widths[column]!);
        const shown = paint(isHeader ? 'dim' : value.tone, text);
        return column === last ? shown : padEnd(shown, widths[column]! + GAP);
      })
      .join('');
  });
}

function squeeze(widths: number[], available: number, header: readonly string[]): void {
  const room = available - GAP * (widths.length - 1);
  const smallest = widths.map((width, column) => Math.min(width, Math.max(SMALLEST_COLUMN, displayWidth(header[column]!))));
  let excess = widths.reduce((sum, width) => sum + width, 0) - room;
  while (excess > 0) {
    let widest = -1;
    for (let column = 0; column < widths.length; column++) {
      if (widths[column]! <= smallest[column]!) continue;
      const better = widest === -1 || widths[column]! > widths[widest]! || (widest === 0 && column > 0);
      if (better && !(column === 0 && widest > 0)) widest = column;
    }
    if (widest === -1) return;
    widths[widest]!--;
    excess--;
  }
}

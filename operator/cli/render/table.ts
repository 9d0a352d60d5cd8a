import { displayWidth, type Paint, padEnd, plain, type Tone, truncate, wrap } from './text.ts';

export interface Cell {
  text: string;
  tone?: Tone;
}

export interface TableOptions {
  /** Columns of the terminal; absent: unlimited (pipes and files). */
  width?: number;
  paint?: Paint;
  header?: boolean;
}

export interface Row {
  cells: readonly (Cell | string)[];
  /** First column of continuation lines of a wrapped last cell; only with `wrapLast`. */
  below?: string;
}

const GAPS = [3, 2];
const SMALLEST = 8;
const SMALLEST_WRAPPED = 24;
/** Text that would get fewer columns than this goes below its row. */
const SMALLEST_BESIDE = 40;
const INDENT_BELOW = '    ';

/** Columns that are never cut: people copy them, and SIMULATED must be read. */
const WHOLE = new Set(['NAME', 'NAMESPACE', 'PROVIDER', 'STATUS', 'READY', 'NODES']);

/** Columns that a narrow terminal drops, in this order. `-o wide`, yaml and describe show them. */
const SPARED = ['AGE', 'MODE', 'CONTROL-PLANE', 'VERSION'];
/** A message that would get fewer columns than this goes below its row. */
const SMALLEST_MESSAGE = 24;
const MESSAGE = 'MESSAGE';

/**
 * Rows under a header, in aligned columns. On a narrow terminal the gaps shrink first, then the last column if it is free text, then the
 * widest of the others; names are never cut.
 */
export function renderTable(
  header: readonly string[],
  rows: readonly (readonly (Cell | string)[])[],
  options: TableOptions = {},
): string[] {
  const { width } = options;
  // Columns by index: titles may repeat or be empty.
  const columns = width === undefined ? [...header.keys()] : spared(header, rows, width);
  const shown = columns.map((column) => header[column]!);
  const lines = render(
    shown,
    rows.map((cells) => ({ cells: columns.map((column) => cells[column] ?? '') })),
    options,
    false,
  );
  if (width === undefined || header.at(-1) !== MESSAGE || shown.at(-1) === MESSAGE) return lines;
  const first = options.header === false ? 0 : 1;
  return lines.flatMap((line, index) => {
    const message = asCell(rows[index - first]?.[header.length - 1] ?? '').text;
    const below = index < first || message === '' ? [] : wrap(message, width - 2).map((text) => `  ${text}`);
    return [line, ...below];
  });
}

/** Indices of the columns that fit on a terminal of this width. */
function spared(
  header: readonly string[],
  rows: readonly (readonly (Cell | string)[])[],
  width: number,
): readonly number[] {
  const least = GAPS[GAPS.length - 1]!;
  const widthOf = (column: number): number =>
    header[column] === MESSAGE
      ? SMALLEST_MESSAGE
      : Math.max(displayWidth(header[column]!), ...rows.map((cells) => displayWidth(asCell(cells[column] ?? '').text)));
  const taken = (columns: readonly number[]) => columns.reduce((sum, column) => sum + widthOf(column) + least, -least);
  let shown = [...header.keys()];
  if (taken(shown) <= width) return shown;
  // Below its row a message has the whole width.
  shown = shown.filter((column) => header[column] !== MESSAGE);
  for (const title of SPARED) {
    if (taken(shown) <= width) break;
    shown = shown.filter((column) => header[column] !== title);
  }
  return shown;
}

/** Like renderTable, but wraps a last column of free text instead of cutting it. On a narrow terminal the text goes below its row. */
export function renderWrapped(header: readonly string[], rows: readonly Row[], options: TableOptions = {}): string[] {
  const { width } = options;
  if (width === undefined || isRoomBeside(header, rows, width)) return render(header, rows, options, true);
  const others = rows.map(({ cells }) => ({ cells: cells.slice(0, header.length - 1) }));
  const lines = render(header.slice(0, -1), others, options, false);
  const first = options.header === false ? 0 : 1;
  return lines.flatMap((line, index) => {
    const { cells, below = '' } = rows[index - first] ?? { cells: [] };
    const { text } = asCell(cells[header.length - 1] ?? '');
    const before = `${below}${INDENT_BELOW}`;
    return [line, ...wrap(text, width - displayWidth(before)).map((part) => `${before}${part}`)];
  });
}

/** Whether the last column fits, or has enough room beside the others. */
function isRoomBeside(header: readonly string[], rows: readonly Row[], width: number): boolean {
  const widthOf = (column: number) =>
    Math.max(displayWidth(header[column]!), ...rows.map(({ cells }) => displayWidth(asCell(cells[column] ?? '').text)));
  const columns = [...header.keys()];
  const last = columns.pop()!;
  const taken = columns.reduce((sum, column) => sum + widthOf(column) + GAPS[GAPS.length - 1]!, 0);
  return width - taken >= Math.min(SMALLEST_BESIDE, widthOf(last));
}

function render(header: readonly string[], rows: readonly Row[], options: TableOptions, wrapLast: boolean): string[] {
  const body = rows.map(({ cells, below }) => ({ cells: cells.map(asCell), below: below ?? '' }));
  const head = { cells: header.map((text): Cell => ({ text, tone: 'dim' })), below: '' };
  const all = options.header === false ? body : [head, ...body];
  const widths = header.map((_, column) =>
    Math.max(0, ...all.map(({ cells }) => displayWidth(cells[column]?.text ?? ''))),
  );
  const gap = squeeze(widths, options.width, header, wrapLast);
  const paint = options.paint ?? plain;
  return all.flatMap(({ cells, below }) => {
    const lastText = cells[header.length - 1]?.text ?? '';
    const lines = wrapLast && lastText !== '' ? wrap(lastText, widths[header.length - 1]!) : [lastText];
    return lines.map((text, line) => {
      const shown =
        line === 0
          ? cells.map((value, column) => (column === header.length - 1 ? { ...value, text } : value))
          : [{ text: below }, ...header.slice(2).map(() => ({ text: '' })), { text }];
      return drawLine(shown, widths, gap, paint, wrapLast);
    });
  });
}

function drawLine(
  cells: readonly Cell[],
  widths: readonly number[],
  gap: number,
  paint: Paint,
  wrapLast: boolean,
): string {
  const last = cells.findLastIndex((value) => value.text !== '');
  return cells
    .slice(0, last + 1)
    .map(({ text, tone }, column) => {
      const whole = wrapLast && column === widths.length - 1;
      const shown = paint(tone, whole ? text : truncate(text, widths[column]!));
      return column === last ? shown : padEnd(shown, widths[column]! + gap);
    })
    .join('')
    .trimEnd();
}

/** Shrinks `widths` to fit, and returns the gap between columns. */
function squeeze(widths: number[], width: number | undefined, header: readonly string[], wrapLast: boolean): number {
  const last = widths.length - 1;
  const taken = (gap: number) => widths.reduce((sum, column) => sum + column, 0) + gap * last;
  const gap = GAPS.find((candidate) => width === undefined || taken(candidate) <= width) ?? GAPS[GAPS.length - 1]!;
  if (width === undefined) return gap;

  const smallest = widths.map((column, index) => {
    if (WHOLE.has(header[index]!)) return column;
    const least = wrapLast && index === last ? SMALLEST_WRAPPED : SMALLEST;
    return Math.min(column, Math.max(least, displayWidth(header[index]!)));
  });
  const cut = (column: number) => {
    widths[column] = Math.max(smallest[column]!, widths[column]! - Math.max(0, taken(gap) - width));
  };
  cut(last);
  while (taken(gap) > width) {
    let widest = -1;
    for (let column = 0; column < widths.length; column++) {
      if (widths[column]! > smallest[column]! && (widest === -1 || widths[column]! > widths[widest]!)) widest = column;
    }
    if (widest === -1) break;
    widths[widest]!--;
  }
  return gap;
}

const asCell = (value: Cell | string): Cell => (typeof value === 'string' ? { text: value } : value);

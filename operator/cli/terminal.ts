import { coloured, type Paint, plain } from './render/text.ts';

/** Output of a command: results on standard output, progress and remarks on standard error. */
export interface Terminal {
  /** Writes lines to standard output. */
  print(...lines: string[]): void;
  /** Writes lines to standard error. */
  note(...lines: string[]): void;
  /** Columns of standard output; absent if it is not a terminal. */
  readonly width: number | undefined;
  readonly paint: Paint;
  readonly notePaint: Paint;
  /** A region of standard error that is redrawn in place. Not on a terminal: prints changed lines. */
  live(): LiveRegion;
  /** Shows the cursor again if a live region hid it; called on exit. */
  restore(): void;
}

export interface LiveRegion {
  /** Whether the region is redrawn. False: printed line by line. */
  readonly animated: boolean;
  readonly width: number;
  /** Replaces the region. Not on a terminal: prints only lines that changed. */
  update(lines: readonly string[]): void;
  /** Keeps the region on screen and continues below it. */
  finish(): void;
}

interface Output {
  isTTY?: boolean;
  columns?: number;
  write(text: string): unknown;
}

interface TerminalOptions {
  out: Output;
  err: Output;
  env: Record<string, string | undefined>;
}

const DEFAULT_WIDTH = 80;
const SHOW_CURSOR = '\u001b[?25h';

/** A terminal over two streams. Colours only on a TTY, and not when NO_COLOR is set or TERM is `dumb`. */
export function createTerminal({ out, err, env }: TerminalOptions): Terminal {
  const dumb = env.TERM === 'dumb';
  const colours = (stream: Output) => {
    if (env.NO_COLOR) return false;
    if (env.FORCE_COLOR && env.FORCE_COLOR !== '0') return true;
    return stream.isTTY === true && !dumb;
  };
  const cursor = { hidden: false };
  return {
    print: (...lines) => out.write(lines.map((line) => `${line}\n`).join('')),
    note: (...lines) => err.write(lines.map((line) => `${line}\n`).join('')),
    get width() {
      return out.isTTY ? out.columns || DEFAULT_WIDTH : undefined;
    },
    paint: colours(out) ? coloured : plain,
    notePaint: colours(err) ? coloured : plain,
    live: () => (err.isTTY && !dumb ? redrawn(err, cursor) : printed(err)),
    restore: () => {
      if (cursor.hidden) err.write(SHOW_CURSOR);
      cursor.hidden = false;
    },
  };
}

function redrawn(stream: Output, cursor: { hidden: boolean }): LiveRegion {
  let drawn = 0;
  let finished = false;
  return {
    animated: true,
    get width() {
      // Leave the last column free: a terminal that wraps there would put the next redraw one line too low.
      return (stream.columns || DEFAULT_WIDTH) - 1;
    },
    update(lines) {
      if (finished) return;
      const up = drawn > 0 ? `\u001b[${drawn}A` : '';
      const body = lines.map((line) => `\u001b[2K${line}\n`).join('');
      cursor.hidden = true;
      stream.write(`\u001b[?25l${up}\r${body}\u001b[0J`);
      drawn = lines.length;
    },
    finish() {
      if (!finished && cursor.hidden) stream.write(SHOW_CURSOR);
      cursor.hidden = false;
      finished = true;
    },
  };
}

function printed(stream: Output): LiveRegion {
  let last = new Set<string>();
  return {
    animated: false,
    width: 400,
    update(lines) {
      for (const line of lines) if (!last.has(line)) stream.write(`${line}\n`);
      last = new Set(lines);
    },
    finish() {},
  };
}

import type { Terminal } from './terminal.ts';

/** What a running command gets. */
export interface Context {
  options: Options;
  positionals: readonly string[];
  terminal: Terminal;
  env: Record<string, string | undefined>;
  /** Aborted by the first Ctrl-C. */
  signal: AbortSignal;
  /** How the person calls the program: `coppice` or `kubectl coppice`. */
  program: string;
}

export type OptionValue = string | number | boolean | string[];

/** Typed access to parsed options. */
export class Options {
  readonly #values: Readonly<Record<string, OptionValue>>;

  constructor(values: Readonly<Record<string, OptionValue>>) {
    this.#values = values;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  /** An integer, or a duration in milliseconds. */
  number(name: string): number | undefined {
    const value = this.#values[name];
    return typeof value === 'number' ? value : undefined;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  list(name: string): string[] {
    const value = this.#values[name];
    return Array.isArray(value) ? value : [];
  }
}

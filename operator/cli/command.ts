import type { Context } from './context.ts';

export interface OptionSpec {
  name: string;
  short?: string;
  /** What the value is called in help; an option without it is a switch. */
  value?: string;
  type?: 'integer' | 'duration';
  choices?: readonly string[];
  repeatable?: boolean;
  hidden?: boolean;
  /** What a word too many on the command line is taken to be a value of, for the hint. */
  isForExtraWord?: boolean;
  summary: string;
}

interface PositionalSpec {
  name: string;
  required?: boolean;
  repeatable?: boolean;
  /** What completion offers in this place. */
  complete?: 'kind' | 'name' | 'command' | readonly string[];
}

export interface CommandSpec {
  name: string;
  summary: string;
  /** Longer text for `coppice help COMMAND`. */
  description?: string;
  positionals: readonly PositionalSpec[];
  options: readonly OptionSpec[];
  examples?: readonly string[];
  hidden?: boolean;
  /** It sees to Ctrl-C and --timeout itself, because it has something to put away or to report first. */
  endsItself?: boolean;
  load: () => Promise<CommandModule>;
}

export interface CommandModule {
  /** Does the work; a number is the exit code, nothing is 0. */
  run(context: Context): Promise<number | undefined>;
}

/** All that can stand on a command line. */
export interface CommandTable {
  /** In the order that help shows them. */
  readonly commands: readonly CommandSpec[];
  /** Options that every command takes. */
  readonly globals: readonly OptionSpec[];
}

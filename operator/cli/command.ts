import type { Context } from './context.ts';

export interface OptionSpec {
  name: string;
  short?: string;
  /** Name of the value in help. An option without it is a switch. */
  value?: string;
  type?: 'integer' | 'duration';
  choices?: readonly string[];
  repeatable?: boolean;
  hidden?: boolean;
  /** If the command line has one word too many, the hint proposes this option for it. */
  isForExtraWord?: boolean;
  summary: string;
}

interface PositionalSpec {
  name: string;
  required?: boolean;
  repeatable?: boolean;
  /** What shell completion offers for this argument. */
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
  /** The command handles Ctrl-C and --timeout itself, because it must clean up or report first. */
  endsItself?: boolean;
  load: () => Promise<CommandModule>;
}

export interface CommandModule {
  /** Runs the command. Resolves with the exit code; undefined means 0. */
  run(context: Context): Promise<number | undefined>;
}

/** All commands and options. */
export interface CommandTable {
  /** In the order that help shows them. */
  readonly commands: readonly CommandSpec[];
  /** Options that every command takes. */
  readonly globals: readonly OptionSpec[];
}

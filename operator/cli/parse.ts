import type { CommandSpec, OptionSpec } from './command.ts';
import type { OptionValue } from './context.ts';
import { UsageError } from './errors.ts';
import { didYouMean } from './suggest.ts';

export interface ParsedCommand {
  command: CommandSpec | undefined;
  options: Record<string, OptionValue>;
  positionals: string[];
  help: boolean;
}

/**
 * Parses a command line. Options may stand anywhere; `--` ends them. Durations become milliseconds.
 * Throws UsageError.
 */
export function parse(
  argv: readonly string[],
  commands: readonly CommandSpec[],
  globals: readonly OptionSpec[],
): ParsedCommand {
  // The valid options depend on the command, and an option with a value may precede the command: find the command first.
  const command = findCommand(argv, commands, globals);
  const known = [...(command?.options ?? []), ...globals];
  const options: Record<string, OptionValue> = {};
  const words: string[] = [];
  let help = false;

  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    if (argument === '--') {
      words.push(...argv.slice(index + 1));
      break;
    }
    if (argument === '--help' || argument === '-h') {
      help = true;
      continue;
    }
    if (!argument.startsWith('-') || argument === '-') {
      words.push(argument);
      continue;
    }

    for (const { spec, shown, inline } of splitOption(argument, known, command, commands)) {
      if (spec.value === undefined) {
        if (inline !== undefined && inline !== 'true' && inline !== 'false') {
          throw new UsageError(`${shown} takes no value, but got "${inline}"`);
        }
        options[spec.name] = inline !== 'false';
        continue;
      }
      const text = inline ?? argv[++index];
      if (text === undefined) throw new UsageError(`${shown} needs a value`, `write ${shown} ${spec.value}`);
      const value = readValue(spec, shown, text);
      if (spec.repeatable) {
        const list = (options[spec.name] as string[] | undefined) ?? [];
        options[spec.name] = [...list, String(value)];
      } else {
        options[spec.name] = value;
      }
    }
  }

  const positionals = command === undefined ? words : words.slice(1);
  if (command === undefined && words.length > 0) {
    const names = commands.filter((spec) => !spec.hidden).map((spec) => spec.name);
    const hint = OTHER_WORDS[words[0]!] ?? didYouMean(words[0]!, names) ?? 'see "coppice help"';
    throw new UsageError(`unknown command "${words[0]}"`, hint);
  }
  if (command !== undefined && !help) checkPositionals(command, positionals);
  return { command, options, positionals, help };
}

/** Words of other CLIs for our commands. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  create: 'run "coppice apply -f FILE"',
  edit: 'change the file and run "coppice apply -f FILE", or use "kubectl edit"',
  explain: 'see docs/reference, or use "kubectl explain"',
  list: 'run "coppice get"',
  ls: 'run "coppice get"',
  rm: 'run "coppice delete NAME"',
  remove: 'run "coppice delete NAME"',
  destroy: 'run "coppice delete NAME" for a cluster, "coppice down" for the garden',
  sleep: 'run "coppice hibernate NAME"',
  resume: 'run "coppice wake NAME"',
  login: 'run "coppice kubeconfig NAME --merge"',
};

/** Milliseconds of `90s`, `5m`, `1h30m`, `500ms` or a bare number of seconds; undefined for any other text. */
export function parseCliDuration(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  const units = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    total += Number(amount) * units[unit as keyof typeof units];
  }
  return total;
}

/** Positional arguments of a command in usage notation: `NAME`, `[KIND]`, `FILE...`. */
export const positionalWords = ({ positionals }: CommandSpec): string[] =>
  positionals.map((positional) => {
    const name = positional.repeatable ? `${positional.name}...` : positional.name;
    return positional.required ? name : `[${name}]`;
  });

/** Usage line of a command, e.g. `coppice get [KIND] [NAME] [options]`. */
export function usageLine(command: CommandSpec, program = 'coppice'): string {
  const words = positionalWords(command);
  if (command.options.some((option) => !option.hidden)) words.push('[options]');
  return [program, command.name, ...words].join(' ');
}

function findCommand(
  argv: readonly string[],
  commands: readonly CommandSpec[],
  globals: readonly OptionSpec[],
): CommandSpec | undefined {
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    if (argument === '--') return undefined;
    if (!argument.startsWith('-')) return commands.find((spec) => spec.name === argument);
    const takesNext = globals.some(
      (spec) => spec.value !== undefined && (argument === `--${spec.name}` || argument === `-${spec.short}`),
    );
    if (takesNext) index++;
  }
  return undefined;
}

interface FoundOption {
  spec: OptionSpec;
  shown: string;
  inline: string | undefined;
}

function splitOption(
  argument: string,
  known: readonly OptionSpec[],
  command: CommandSpec | undefined,
  commands: readonly CommandSpec[],
): FoundOption[] {
  const where = command === undefined ? 'coppice' : `coppice ${command.name}`;
  if (argument.startsWith('--')) {
    const [name, ...rest] = argument.slice(2).split('=');
    const spec = known.find((option) => option.name === name);
    if (spec === undefined) {
      const names = known.filter((option) => !option.hidden).map((option) => `--${option.name}`);
      throw new UsageError(
        `unknown option "--${name}"`,
        // Many CLIs have --version.
        command === undefined && commands.some((other) => other.name === name)
          ? `run "coppice ${name}"`
          : (didYouMean(`--${name}`, [...names, '--help']) ?? `see "${where} --help"`),
      );
    }
    return [{ spec, shown: `--${name}`, inline: rest.length > 0 ? rest.join('=') : undefined }];
  }

  const found: FoundOption[] = [];
  for (let at = 1; at < argument.length; at++) {
    const letter = argument[at]!;
    const spec = known.find((option) => option.short === letter);
    if (spec === undefined) throw new UsageError(`unknown option "-${letter}"`, `see "${where} --help"`);
    if (spec.value === undefined) {
      found.push({ spec, shown: `-${letter}`, inline: undefined });
      continue;
    }
    const rest = argument.slice(at + 1);
    found.push({ spec, shown: `-${letter}`, inline: rest === '' ? undefined : rest.replace(/^=/, '') });
    break;
  }
  return found;
}

function readValue(spec: OptionSpec, shown: string, text: string): string | number {
  if (spec.choices !== undefined && !spec.choices.includes(text)) {
    const hint = didYouMean(text, spec.choices) ?? `choose one of ${spec.choices.join(', ')}`;
    throw new UsageError(`${shown} does not know "${text}"`, hint);
  }
  if (spec.type === 'integer') {
    if (!/^-?\d{1,15}$/.test(text)) throw new UsageError(`${shown} needs a whole number, but got "${text}"`);
    return Number(text);
  }
  if (spec.type === 'duration') {
    const duration = parseCliDuration(text);
    if (duration === undefined) {
      throw new UsageError(`${shown} needs a duration, but got "${text}"`, 'write it like 90s, 5m or 1h30m');
    }
    return duration;
  }
  return text;
}

function checkPositionals(command: CommandSpec, positionals: readonly string[]): void {
  const required = command.positionals.filter((positional) => positional.required);
  const missing = required[positionals.length];
  if (missing !== undefined && positionals.length < required.length) {
    throw new UsageError(`${command.name} needs ${missing.name}`, `usage: ${usageLine(command)}`);
  }
  const unlimited = command.positionals.some((positional) => positional.repeatable);
  if (!unlimited && positionals.length > command.positionals.length) {
    const extra = positionals[command.positionals.length];
    throw new UsageError(`${command.name} does not take "${extra}"`, hintForExtra(command, positionals));
  }
}

/** The corrected command line, if an option takes the word that is too many. */
function hintForExtra(command: CommandSpec, positionals: readonly string[]): string {
  const usage = `usage: ${usageLine(command)}`;
  const option = command.options.find(({ isForExtraWord }) => isForExtraWord);
  const taken = command.positionals.length;
  if (option === undefined || positionals.length > taken + 1) return usage;
  const [own, extra] = [positionals.slice(0, taken), positionals[taken]!];
  try {
    readValue(option, '', extra);
  } catch {
    return usage;
  }
  const shown = option.short === undefined ? `--${option.name}` : `-${option.short}`;
  return `run "${['coppice', command.name, ...own, shown, extra].join(' ')}"`;
}

import type { CommandSpec, OptionSpec } from './command.ts';
import { CLI_KINDS, type CliKind, kindOf, kindWords, WORKER_CLUSTER_KIND } from './kinds.ts';

type Wanted =
  | { what: 'words'; words: string[] }
  | { what: 'names'; kind: CliKind; words: string[] }
  | { what: 'namespaces' }
  | { what: 'files' };

/** Completions for the word that is being typed. `words`: the words after the program's name. */
export function completionsFor(
  words: readonly string[],
  commands: readonly CommandSpec[],
  globals: readonly OptionSpec[],
): Wanted {
  const current = words[words.length - 1] ?? '';
  const before = words.slice(0, -1);
  const visible = commands.filter((command) => !command.hidden);
  const { command, positionals, pending } = readBefore(before, visible, globals);
  if (pending !== undefined) return valuesOf(pending);
  if (current.startsWith('-')) {
    const options = [...(command?.options ?? []), ...globals].filter((option) => !option.hidden);
    return { what: 'words', words: [...options.map((option) => `--${option.name}`), '--help'] };
  }
  if (command === undefined) {
    return { what: 'words', words: positionals.length > 0 ? [] : visible.map((spec) => spec.name) };
  }

  const last = command.positionals[command.positionals.length - 1];
  const place = command.positionals[positionals.length] ?? (last?.repeatable ? last : undefined);
  const complete = place?.complete;
  if (complete === undefined) return { what: 'words', words: [] };
  if (Array.isArray(complete)) return { what: 'words', words: [...complete] };
  if (complete === 'command') return { what: 'words', words: visible.map((spec) => spec.name) };
  if (complete === 'name') {
    const kind = positionals[0] === undefined ? undefined : kindOf(positionals[0]);
    return { what: 'names', kind: kind ?? WORKER_CLUSTER_KIND, words: [] };
  }
  const kinds = CLI_KINDS.map(({ resource }) => resource.plural);
  // `describe NAME` defaults to WorkerClusters: its first argument is a kind or a name.
  if (command.name === 'describe') return { what: 'names', kind: WORKER_CLUSTER_KIND, words: kinds };
  return { what: 'words', words: current === '' ? [...kinds, 'all'] : [...kindWords(), 'all'] };
}

function valuesOf(option: OptionSpec): Wanted {
  if (option.choices !== undefined) return { what: 'words', words: [...option.choices] };
  if (option.name === 'namespace') return { what: 'namespaces' };
  if (option.value === 'FILE') return { what: 'files' };
  return { what: 'words', words: [] };
}

function readBefore(before: readonly string[], commands: readonly CommandSpec[], globals: readonly OptionSpec[]) {
  let command: CommandSpec | undefined;
  const positionals: string[] = [];
  let pending: OptionSpec | undefined;
  for (const word of before) {
    if (pending !== undefined) {
      pending = undefined;
      continue;
    }
    if (word.startsWith('-') && word !== '-') {
      const known = [...(command?.options ?? []), ...globals];
      const option = known.find(({ name, short }) => word === `--${name}` || word === `-${short}`);
      if (option?.value !== undefined) pending = option;
      continue;
    }
    if (command === undefined && positionals.length === 0) {
      command = commands.find((spec) => spec.name === word);
      if (command !== undefined) continue;
    }
    positionals.push(word);
  }
  return { command, positionals, pending };
}

import type { CommandModule, CommandSpec, CommandTable, OptionSpec } from '../command.ts';
import type { Context } from '../context.ts';
import { EXIT_MEANINGS, UsageError } from '../errors.ts';
import { usageLine } from '../parse.ts';
import { padEnd, wrap } from '../render/text.ts';
import { didYouMean } from '../suggest.ts';

const TEXT_WIDTH = 100;

/** `coppice help [COMMAND]`. */
export const helpOn = (table: CommandTable): CommandModule => ({
  async run(context) {
    const [name] = context.positionals;
    if (name === undefined) return showHelp(undefined, context, table);
    const command = table.commands.find((spec) => spec.name === name);
    if (command === undefined) {
      const names = visible(table).map((spec) => spec.name);
      throw new UsageError(`there is no command "${name}"`, didYouMean(name, names) ?? 'see "coppice help"');
    }
    return showHelp(command, context, table);
  },
});

/** Prints help for one command, or the overview. */
export function showHelp(
  command: CommandSpec | undefined,
  { terminal, program }: Context,
  table: CommandTable,
): undefined {
  const width = Math.min(terminal.width ?? TEXT_WIDTH, TEXT_WIDTH);
  const lines = command ? commandHelp(command, table, program, width) : overview(table, program, width);
  terminal.print(...lines);
}

const visible = ({ commands }: CommandTable): CommandSpec[] => commands.filter((spec) => !spec.hidden);

/** The lines of `coppice help`. */
function overview(table: CommandTable, program: string, width: number): string[] {
  return [
    ...wrap('Coppice: a Kubernetes cluster as a Kubernetes resource.', width),
    '',
    `Usage: ${program} COMMAND [options]`,
    '',
    'Commands:',
    ...definitions(
      visible(table).map((spec) => [spec.name, spec.summary]),
      width,
    ),
    '',
    'Options of every command:',
    ...optionLines(table.globals, width),
    '',
    ...wrap(
      'Without --kubeconfig it uses the API server of $COPPICE_KUBECONFIG, else of the embedded garden, else of ' +
        '$KUBECONFIG or ~/.kube/config. Once "coppice down" has deleted a garden here, the last two need --context.',
      width,
    ),
    '',
    'Exit codes:',
    ...definitions(
      EXIT_MEANINGS.map(([code, meaning]) => [String(code), meaning]),
      width,
    ),
    '',
    `"${program} help COMMAND" shows the help of one command. It is also a kubectl plugin: kubectl coppice COMMAND.`,
  ];
}

/** The lines of `coppice help COMMAND`. */
function commandHelp(command: CommandSpec, { globals }: CommandTable, program: string, width: number): string[] {
  const sentence = command.summary[0]!.toUpperCase() + command.summary.slice(1);
  const options = command.options.filter((option) => !option.hidden);
  return [
    ...wrap(`${sentence}.`, width),
    '',
    `Usage: ${usageLine(command, program)}`,
    ...(command.description === undefined ? [] : ['', ...wrap(command.description, width)]),
    ...(options.length === 0 ? [] : ['', 'Options:', ...optionLines(options, width)]),
    '',
    'Options of every command:',
    ...optionLines(globals, width),
    ...(command.examples === undefined ? [] : ['', 'Examples:', ...command.examples.map((example) => `  ${example}`)]),
    '',
    `Exit codes: ${EXIT_MEANINGS.map(([code, meaning]) => `${code} ${meaning}`).join('; ')}.`,
  ].flatMap((line) => (line.startsWith('Exit codes:') ? wrap(line, width) : [line]));
}

function optionLines(options: readonly OptionSpec[], width: number): string[] {
  return definitions(
    options
      .filter((option) => !option.hidden)
      .map((option) => {
        const short = option.short === undefined ? '    ' : `-${option.short}, `;
        return [`${short}--${option.name}${option.value === undefined ? '' : ` ${option.value}`}`, option.summary];
      }),
    width,
  );
}

function definitions(rows: string[][], width: number): string[] {
  const left = Math.min(36, Math.max(...rows.map(([term]) => term!.length))) + 2;
  return rows.flatMap(([term, meaning]) => {
    const lines = wrap(meaning!, Math.max(20, width - left - 2));
    const first =
      term!.length + 2 > left
        ? [`  ${term}`, `  ${' '.repeat(left)}${lines[0]}`]
        : [`  ${padEnd(term!, left)}${lines[0]}`];
    return [...first, ...lines.slice(1).map((line) => `  ${' '.repeat(left)}${line}`)];
  });
}

import { readdir, readFile } from 'node:fs/promises';
import type { Context } from '../context.ts';
import { CliError, EXIT, oneLine, UsageError } from '../errors.ts';
import { gardenDirectory } from '../garden.ts';
import { didYouMean } from '../suggest.ts';

const ENDING = '.log';

/** `coppice logs [PROCESS]`: logs of this machine's garden. Logs of pods: kubectl. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, env } = context;
  const name = positionals[0] ?? 'operator';
  const lines = options.number('lines') ?? 200;
  if (lines < 1) throw new UsageError(`logs cannot print ${lines} lines`, 'give a number from 1 up');
  const directory = gardenDirectory(env);
  const files = await readdir(directory.path('log')).catch(() => [] as string[]);
  const names = files.filter((file) => file.endsWith(ENDING)).map((file) => file.slice(0, -ENDING.length));
  if (!names.includes(name)) {
    const near =
      didYouMean(name, names) ?? (names.length > 0 ? `there are: ${names.sort().join(', ')}` : 'run "coppice up"');
    const what = names.length > 0 ? `the garden has no log of "${name}"` : 'there is no garden here';
    throw new CliError(what, { exitCode: EXIT.notFound, advice: near });
  }
  const text = await readFile(directory.logFile(name), 'utf8');
  // A log must not control the terminal.
  for (const line of text.trimEnd().split('\n').slice(-lines)) terminal.print(oneLine(line));
}

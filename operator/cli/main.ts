#!/usr/bin/env node
import { basename } from 'node:path';
import { COMMAND_TABLE } from './commands.ts';
import { type Context, Options } from './context.ts';
import { CliError, EXIT, explain, InterruptedError } from './errors.ts';
import { type ParsedCommand, parse } from './parse.ts';
import { createTerminal, type Terminal } from './terminal.ts';

/** Runs one command line and returns its exit code. Never throws. */
export async function main(
  argv: readonly string[],
  terminal: Terminal,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
): Promise<number> {
  try {
    const parsed = parse(argv, COMMAND_TABLE.commands, COMMAND_TABLE.globals);
    return await dispatch(parsed, terminal, env, signal);
  } catch (error) {
    const reason = signal.aborted && !(error instanceof CliError) ? signal.reason : error;
    const { message, exitCode } = explain(reason);
    terminal.note(`${terminal.notePaint('bad', 'error:')} ${message}`);
    if (env.COPPICE_DEBUG === '1' && error instanceof Error) terminal.note(error.stack ?? '');
    return exitCode;
  }
}

async function dispatch(
  parsed: ParsedCommand,
  terminal: Terminal,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
): Promise<number> {
  const { command } = parsed;
  const program =
    env.COPPICE_PROGRAM || (basename(process.argv[1] ?? '') === 'kubectl-coppice' ? 'kubectl coppice' : 'coppice');
  const context: Context = {
    options: new Options(parsed.options),
    positionals: parsed.positionals,
    terminal,
    env,
    signal,
    program,
  };
  if (command === undefined || parsed.help) {
    const { showHelp } = await import('./commands/help.ts');
    showHelp(command, context, COMMAND_TABLE);
    return EXIT.ok;
  }

  const module = await command.load();
  if (command.endsItself) return (await module.run(context)) ?? EXIT.ok;

  const timeout = context.options.number('timeout');
  const deadline = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  const combined = deadline === undefined ? signal : AbortSignal.any([signal, deadline]);
  const stopped = new Promise<never>((_, reject) => {
    combined.addEventListener('abort', () => {
      if (signal.aborted) reject(new InterruptedError());
      else reject(new CliError(`${command.name} did not finish within --timeout`, { exitCode: EXIT.timedOut }));
    });
  });
  const work = module.run({ ...context, signal: combined });
  return (await Promise.race([work, stopped])) ?? EXIT.ok;
}

async function start(): Promise<void> {
  const interrupt = new AbortController();
  let asked = 0;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      asked++;
      // Who asks three times wants out, whatever is still being put away.
      if (asked >= 3) process.exit(EXIT.interrupted);
      interrupt.abort(new InterruptedError());
    });
  }
  // A reader that goes away (`coppice get | head`) is not an error worth a word.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed));
  }
  const terminal = createTerminal({ out: process.stdout, err: process.stderr, env: process.env });
  process.on('exit', () => terminal.restore());
  process.exitCode = await main(process.argv.slice(2), terminal, process.env, interrupt.signal);
  // Open connections must not hold the process; what was written is flushed first.
  await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))));
  process.exit();
}

if (import.meta.main) await start();

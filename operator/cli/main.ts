#!/usr/bin/env node
import { basename } from 'node:path';
import { COMMAND_TABLE } from './commands.ts';
import { type Context, Options } from './context.ts';
import { CliError, EXIT, type Explained, explain, InterruptedError } from './errors.ts';
import { Interruptions } from './interruptions.ts';
import { type ParsedCommand, parse } from './parse.ts';
import { createTerminal, type Terminal } from './terminal.ts';

const STILL_ENDING = 'Still stopping; press Ctrl-C again to exit now, and then "coppice stop" to stop the rest.';

/**
 * Runs one command line and returns its exit code. Never throws.
 * @param onEndsItself called before a command runs that handles Ctrl-C itself
 */
export async function main(
  argv: readonly string[],
  terminal: Terminal,
  env: Record<string, string | undefined>,
  signal: AbortSignal,
  onEndsItself: () => void = () => {},
): Promise<number> {
  let asked: Options | undefined;
  try {
    if (env.npm_lifecycle_event === 'start') (await import('./invocation.ts')).enterPersonsFolder(env);
    const parsed = parse(argv, COMMAND_TABLE.commands, COMMAND_TABLE.globals);
    if (parsed.command?.endsItself) onEndsItself();
    asked = new Options(parsed.options);
    return await dispatch(parsed, terminal, env, signal);
  } catch (error) {
    const reason = signal.aborted && !(error instanceof CliError) ? signal.reason : error;
    const { message, exitCode } = asked ? await explained(reason, asked, env) : explain(reason);
    terminal.note(`${terminal.notePaint('bad', 'error:')} ${message}`);
    if (env.COPPICE_DEBUG === '1' && error instanceof Error) terminal.note(error.stack ?? '');
    return exitCode;
  }
}

/** Only errors of an API server need the kubectl options, which take time to find. */
async function explained(error: unknown, options: Options, env: Context['env']): Promise<Explained> {
  const plain = explain(error);
  if (!plain.message.includes('"kubectl ')) return plain;
  const { explainFor } = await import('./kubectl-words.ts');
  return explainFor({ options, env }, error);
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

/** Arbitrary long interval: the timer only keeps the process alive. */
const ALIVE_MS = 60_000;

async function start(): Promise<void> {
  const interrupt = new AbortController();
  const terminal = createTerminal({ out: process.stdout, err: process.stderr, env: process.env });
  const interruptions = new Interruptions();
  let endsItself = false;
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      const meant = interruptions.count(performance.now());
      if (meant === 'end') interrupt.abort(new InterruptedError());
      else if (meant === 'ask' && endsItself) terminal.note(STILL_ENDING);
      else if (meant === 'leave') process.exit(EXIT.interrupted);
    });
  }
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // The terminal is closed: clean up as after Ctrl-C.
      if (endsItself) interrupt.abort(new InterruptedError());
      // A closed reader (`coppice get | head`) is no error.
      else process.exit(error.code === 'EPIPE' ? EXIT.ok : EXIT.failed);
    });
  }
  process.on('exit', () => terminal.restore());
  // Between two tries a command may have neither socket nor timer: Node would exit with code 13.
  setInterval(() => {}, ALIVE_MS);
  process.exitCode = await main(process.argv.slice(2), terminal, process.env, interrupt.signal, () => {
    endsItself = true;
  });
  // Open connections must not keep the process; flush the output first.
  await Promise.all([process.stdout, process.stderr].map((stream) => new Promise((done) => stream.write('', done))));
  process.exit();
}

if (import.meta.main) await start();

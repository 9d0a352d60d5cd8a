import type { Garden } from '../garden/garden.ts';
import type { Context } from './context.ts';
import { CliError, EXIT, type ExitCode } from './errors.ts';
import { showProgress } from './gardenview.ts';
import { quote } from './invocation.ts';
import { formatAge } from './render/age.ts';

/** Follow-up commands, as the person would type them. */
interface NextCommands {
  /** Starts the stopped garden again. */
  again: string;
  /** How the person calls coppice. */
  coppice: string;
}

/**
 * Stops the processes of the garden, then prints what is kept and the follow-up commands. A garden that runs in the background, or that
 * belongs to another command, keeps running.
 */
async function stopGarden(garden: Garden, { terminal }: Context, { again, coppice }: NextCommands): Promise<void> {
  if (!(await garden.isHeldHere())) return terminal.note(`The garden keeps running; "${coppice} stop" stops it.`);
  terminal.note('Stopping the garden; its state is kept.');
  await showProgress(terminal, (onProgress) => garden.stop({ onProgress }));
  const kept = quote(garden.directory.root);
  terminal.note(
    `Stopped. Its clusters are kept in ${kept}; "${again}" starts them again, "${coppice} down" deletes them.`,
  );
}

/** Prints what Ctrl-C does from now on. */
async function tellCtrlC(garden: Garden, { terminal }: Context, { coppice }: NextCommands): Promise<void> {
  if (await garden.isHeldHere()) terminal.note('Press Ctrl-C to stop the garden and keep its state.');
  else
    terminal.note(
      `Another command started this garden. Ctrl-C ends only this one, "${coppice} stop" stops the garden and keeps its state.`,
    );
}

/**
 * Waits until the person presses Ctrl-C, which stops the garden, or until another command ends the garden. Both are success.
 * Throws CliError when the garden's daemon was killed or has failed.
 */
export async function stayWithGarden(garden: Garden, context: Context, next: NextCommands): Promise<void> {
  const { terminal, signal } = context;
  await tellCtrlC(garden, context, next);
  const end = await garden.whenEnded(signal);
  if (end === undefined) return stopGarden(garden, context, next);
  const { again, coppice } = next;
  if (end === 'gone')
    return terminal.note(`Somebody deleted the garden with "coppice down"; "${again}" creates a new one.`);
  if (end === 'stopped')
    return terminal.note(`Somebody stopped the garden; its clusters are kept, and "${again}" starts them again.`);
  throw new CliError("the garden's daemon has exited, and nothing restarts the garden's processes now", {
    advice: `"${again}" starts the daemon again, "${coppice} stop" stops the remaining processes`,
  });
}

/**
 * Starts the garden, then runs `work`; resolves with EXIT.ok. Ctrl-C stops the garden, except one that is to keep running, and
 * resolves with EXIT.interrupted. Throws CliError (exit code 4) when the garden is not up within --timeout.
 */
export async function withGarden(
  garden: Garden,
  context: Context,
  next: NextCommands,
  work: () => Promise<void>,
): Promise<ExitCode> {
  const { terminal, signal, options } = context;
  const { coppice } = next;
  const timeout = options.number('timeout');
  const deadline = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  const over = deadline === undefined ? signal : AbortSignal.any([signal, deadline]);
  let isUp = false;
  try {
    const isInBackground = options.flag('detach');
    const info = await showProgress(terminal, (onProgress) => garden.up({ onProgress, signal: over, isInBackground }));
    if (info.notice) terminal.note(terminal.notePaint('loud', info.notice));
    isUp = true;
    await work();
    return EXIT.ok;
  } catch (error) {
    if (signal.aborted) {
      if (options.flag('detach'))
        terminal.note(`The garden keeps starting in the background; "${coppice} stop" stops it.`);
      else await stopGarden(garden, context, next);
      return EXIT.interrupted;
    }
    if (deadline?.aborted && error === deadline.reason) {
      throw new CliError(`the garden did not start within ${formatAge(timeout!)}, and keeps trying in the background`, {
        exitCode: EXIT.timedOut,
        advice: `"${coppice} status" shows its state, "${coppice} stop" stops it`,
      });
    }
    if (isUp) terminal.note(`The garden keeps running; "${coppice} stop" stops it.`);
    throw error;
  }
}

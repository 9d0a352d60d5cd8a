import type { Garden } from '../garden/garden.ts';
import type { Context } from './context.ts';
import { CliError, EXIT, InterruptedError } from './errors.ts';
import { showProgress } from './gardenview.ts';
import { formatAge } from './render/age.ts';

/** Resolves when the person presses Ctrl-C. */
export function untilInterrupted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  // An unsettled promise does not keep the process alive; a timer does.
  const alive = setInterval(() => {}, 2 ** 30);
  return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true })).finally(() =>
    clearInterval(alive),
  );
}

/** Stops the garden's processes and says so. */
export async function stopGarden(garden: Garden, { terminal, program }: Context): Promise<void> {
  terminal.note('Stopping the garden; its state is kept.');
  await showProgress(terminal, (onProgress) => garden.stop({ onProgress }));
  terminal.note(`Stopped. "${program} up" goes on from here, "${program} down" takes all of it away.`);
}

/**
 * Brings the garden up, then does `work`. Ctrl-C on the way stops the garden, unless it is to be left running, and
 * throws InterruptedError. Throws CliError (exit code 4) when the garden is not up within --timeout.
 */
export async function withGarden(garden: Garden, context: Context, work: () => Promise<void>): Promise<void> {
  const { terminal, signal, options, program } = context;
  const timeout = options.number('timeout');
  const deadline = timeout === undefined ? undefined : AbortSignal.timeout(timeout);
  const over = deadline === undefined ? signal : AbortSignal.any([signal, deadline]);
  let isUp = false;
  try {
    const info = await showProgress(terminal, (onProgress) => garden.up({ onProgress, signal: over }));
    if (info.notice) terminal.note(terminal.notePaint('loud', info.notice));
    isUp = true;
    await work();
  } catch (error) {
    if (signal.aborted) {
      if (options.flag('detach')) terminal.note(`The garden goes on in the background; "${program} stop" stops it.`);
      else await stopGarden(garden, context);
      throw new InterruptedError();
    }
    if (deadline?.aborted && error === deadline.reason) {
      throw new CliError(`the garden is not up after ${formatAge(timeout!)}, and goes on trying in the background`, {
        exitCode: EXIT.timedOut,
        advice: `"${program} status" shows how it is, "${program} stop" stops it`,
      });
    }
    if (isUp) terminal.note(`The garden stays up; "${program} stop" stops it.`);
    throw error;
  }
}

import type { Context } from './context.ts';
import { InterruptedError } from './errors.ts';
import type { GardenHandle } from './garden.ts';
import { showProgress } from './gardenview.ts';

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
export async function stopGarden(garden: GardenHandle, { terminal, program }: Context): Promise<void> {
  terminal.note('Stopping the garden; its state is kept.');
  await showProgress(terminal, (onProgress) => garden.stop({ onProgress }));
  terminal.note(`Stopped. "${program} up" goes on from here, "${program} down" takes all of it away.`);
}

/**
 * Brings the garden up, then does `work`. Ctrl-C on the way stops the garden (unless it is to be left running, or ran
 * already) and throws InterruptedError.
 */
export async function withGarden(garden: GardenHandle, context: Context, work: () => Promise<void>): Promise<void> {
  const { terminal, signal, options } = context;
  const timeout = options.number('timeout');
  const over = timeout === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeout)]);
  try {
    const up = showProgress(terminal, (onProgress) => garden.up({ onProgress, signal: over }));
    await Promise.race([up, aborted(over)]);
    await work();
  } catch (error) {
    if (!signal.aborted) throw error;
    if (!options.flag('detach')) await stopGarden(garden, context);
    throw new InterruptedError();
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = () => reject(signal.reason);
    if (signal.aborted) fail();
    signal.addEventListener('abort', fail, { once: true });
  });
}

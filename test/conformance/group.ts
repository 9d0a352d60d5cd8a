import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

export interface GroupRun {
  /** File for standard output; standard error goes beside it, with `.err`. */
  log: string;
  /** Gets standard output as it comes. */
  onOutput: (text: string) => void;
  /** Has the program tidy up and end: SIGINT, once, to it and all that it has started. */
  interrupted: AbortSignal;
  /** Milliseconds after which it is ended with all that it has started. */
  limitMs: number;
}

/**
 * Runs a program in a process group of its own to its end, whatever that is. ginkgo leaves it to the terminal to interrupt the processes
 * of its tests, and there is none here: it would wait for them for ever.
 */
export async function runGroup(file: string, args: readonly string[], options: GroupRun): Promise<void> {
  const { log, onOutput, interrupted, limitMs } = options;
  const child = spawn(file, [...args], { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const tell = (signal: NodeJS.Signals) => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, signal);
  };
  const interrupt = () => tell('SIGINT');
  if (interrupted.aborted) interrupt();
  interrupted.addEventListener('abort', interrupt, { once: true });
  const timer = setTimeout(() => tell('SIGKILL'), limitMs);
  child.stdout.setEncoding('utf8').on('data', onOutput);
  try {
    await Promise.all([
      new Promise<void>((resolve, reject) => child.once('error', reject).once('close', () => resolve())),
      pipeline(child.stdout, createWriteStream(log)),
      pipeline(child.stderr, createWriteStream(`${log}.err`)),
    ]);
  } finally {
    clearTimeout(timer);
    interrupted.removeEventListener('abort', interrupt);
  }
}

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { projectFile } from '../invocation.ts';
import { FLEET, WORK } from './burst-objects.ts';

/** The example scheduler as a process. */
export interface SchedulerProcess {
  /** Aborted, with the reason, when the process ends by itself. */
  readonly ended: AbortSignal;
  stop(): Promise<void>;
}

/**
 * Starts the scheduler. The process ends when this process ends, in whatever way.
 * @param said gets each line that the scheduler prints
 */
export function startScheduler(
  kubeconfig: string,
  env: Record<string, string | undefined>,
  said: (line: string) => void,
): SchedulerProcess {
  const child = spawn(process.execPath, [projectFile('examples/burst/scheduler.ts'), `${FLEET}/${WORK}`], {
    env: { ...env, KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const over = new AbortController();
  let last = '';
  createInterface({ input: child.stdout! }).on('line', said);
  createInterface({ input: child.stderr! }).on('line', (line) => {
    last = line;
    said(line);
  });
  const end = (why: string) => over.abort(new Error(`the example scheduler has exited: ${why}`));
  child.once('error', ({ message }) => end(message));
  child.once('exit', (code, signal) => end(last || `exit code ${code ?? signal}`));
  return {
    ended: over.signal,
    async stop() {
      if (over.signal.aborted) return;
      child.kill();
      await once(child, 'exit');
    },
  };
}

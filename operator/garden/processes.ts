import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readText } from './files.ts';
import { isAlive, type ProcessIdentity } from './process-identity.ts';

/** What is kept on disk of a started process. */
export interface ProcessRecord extends ProcessIdentity {
  /** Tells whether a process that was left over is the one wanted now. */
  digest: string;
}

export interface Command {
  command: readonly string[];
  /** Added to nothing: the process sees these and no other variables. */
  env?: Record<string, string>;
  /** Files that the process reads only when it starts: it is another process when they say something else. */
  inputs?: readonly string[];
}

/** Equal for two commands that make no difference. */
export async function digestOf(what: Command): Promise<string> {
  const inputs = await Promise.all((what.inputs ?? []).map((file) => readText(file)));
  const all = JSON.stringify([what.command, what.env ?? {}, inputs]);
  return createHash('sha256').update(all).digest('hex').slice(0, 16);
}

/**
 * Starts a process that lives on when this one dies: own session and process group, output appended to a file.
 * `procsFile` is the cgroup it starts in.
 */
export function startDetached(
  what: Command,
  options: { logFile: string; procsFile?: string | undefined },
): ChildProcess {
  const output = openSync(options.logFile, 'a', 0o600);
  try {
    const join = options.procsFile ? ['/bin/sh', '-c', 'echo $$ >"$0" && exec "$@"', options.procsFile] : [];
    const [file = '', ...args] = [...join, ...what.command];
    return spawn(file, args, { detached: true, cwd: '/', env: what.env ?? {}, stdio: ['ignore', output, output] });
  } finally {
    closeSync(output);
  }
}

/** Sends a signal to the whole process group of that very process. False when it is gone. */
export async function signalGroup(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  try {
    process.kill(-identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Resolves to whether the process was gone within the time. */
export async function whenGone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = Date.now() + timeoutMs;
  for (let pauseMs = 5; await isAlive(identity); pauseMs = Math.min(pauseMs * 2, 100)) {
    if (Date.now() > deadline) return false;
    await sleep(pauseMs);
  }
  return true;
}

/** Ends a process and its group: asks first, kills after `graceMs`. A later process of the same number is left alone. */
export async function endGroup(identity: ProcessIdentity, graceMs: number): Promise<void> {
  if (!(await signalGroup(identity, 'SIGTERM'))) return;
  if (await whenGone(identity, graceMs)) return;
  await signalGroup(identity, 'SIGKILL');
  await whenGone(identity, 5_000);
}

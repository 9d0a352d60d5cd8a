import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJson, readText } from '../host/files.ts';
import { BEGUN_BY_PS, bootID, isAlive, type ProcessIdentity } from '../host/process-identity.ts';

/** Stored record of a started process. */
export interface PidFileContent extends ProcessIdentity {
  /** Digest that tells whether a left-over process is the desired one. */
  digest: string;
}

export interface Command {
  command: readonly string[];
  /** The complete environment: no other variables are passed. */
  env?: Record<string, string>;
  /** Files read only at startup: a change makes it a different process. */
  inputs?: readonly string[];
}

/** Digest of a command; equal for equivalent commands. */
export async function digestOfCommand(what: Command): Promise<string> {
  const inputs = await Promise.all((what.inputs ?? []).map((file) => readText(file)));
  const all = JSON.stringify([what.command, what.env ?? {}, inputs]);
  return createHash('sha256').update(all).digest('hex').slice(0, 16);
}

/** Exit code of a process whose pid file could not be written. */
export const NO_PID_FILE = 73;

/**
 * A process writes its own pid file before it executes the program: a process without a pid file would be found by
 * nobody, and on a full disk none can be written. If its parent dies before that, it exits, since otherwise two could
 * run.
 */
const WRITE_PID_FILE_THEN_RUN = `
boot=$1 parent=$2 digest=$3 cgroup=$4 draft=$0.$$
shift 4
fields() { actual=$2 started=\${20}; }
if [ -n "$boot" ]; then
  read -r stat </proc/$$/stat
  fields \${stat##*) }
  [ "$actual" = "$parent" ] || exit ${NO_PID_FILE}
  started=$boot/$started
else
  words() { started=$*; }
  words $(${BEGUN_BY_PS} $$)
fi
if [ -n "$cgroup" ]; then echo $$ >"$cgroup" || exit 1; fi
printf '{"pid":%s,"started":"%s","digest":"%s"}' $$ "$started" "$digest" >"$draft" && mv -f "$draft" "$0" || {
  rm -f "$draft"
  exit ${NO_PID_FILE}
}
exec "$@"
`;

/** A process's pid file, and the digest of its command. */
interface PidFileWanted {
  file: string;
  digest: string;
}

/**
 * Starts a process that survives this one: own session and process group, output appended to a file. It exits with
 * NO_PID_FILE where its pid file cannot be written. `procsFile`: its cgroup. Throws without a log to write to.
 * @param boot as in identityOf()
 */
export function startDetached(
  what: Command,
  options: { logFile: string; pidFile: PidFileWanted; procsFile?: string | undefined },
  boot = bootID(),
): ChildProcess {
  const { file, digest } = options.pidFile;
  const output = openSync(options.logFile, 'a', 0o600);
  try {
    const how = [file, boot, String(process.pid), digest, options.procsFile ?? ''];
    return spawn('/bin/sh', ['-c', WRITE_PID_FILE_THEN_RUN, ...how, ...what.command], {
      detached: true,
      cwd: '/',
      env: what.env ?? {},
      stdio: ['ignore', output, output],
    });
  } finally {
    closeSync(output);
  }
}

/** Whether the process of a pid file runs. */
export async function runsStill(file: string): Promise<boolean> {
  const content = await readJson<PidFileContent>(file);
  return content !== undefined && isAlive(content);
}

/** Sends a signal to the process group of this exact process. False when it is gone. */
export async function signalGroup(identity: ProcessIdentity, signal: NodeJS.Signals): Promise<boolean> {
  if (!(await isAlive(identity))) return false;
  try {
    process.kill(-identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}

/** Resolves to whether the process ended within the time. */
export async function whenGone(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  for (let pauseMs = 5; await isAlive(identity); pauseMs = Math.min(pauseMs * 2, 100)) {
    if (performance.now() > deadline) return false;
    await sleep(pauseMs);
  }
  return true;
}

/**
 * Ends a process and its group: SIGTERM first, SIGKILL after `graceMs`. A later process with the same PID is
 * unaffected.
 */
export async function endGroup(identity: ProcessIdentity, graceMs: number): Promise<void> {
  if (!(await signalGroup(identity, 'SIGTERM'))) return;
  if (await whenGone(identity, graceMs)) return;
  await signalGroup(identity, 'SIGKILL');
  await whenGone(identity, 5_000);
}

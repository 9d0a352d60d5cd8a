import { randomBytes } from 'node:crypto';
import { readdir, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { readJson } from '../host/files.ts';
import type { StateDirectory } from '../state/state.ts';
import { endGroup, type PidFileContent, runsStill } from './processes.ts';

const GRACE_MS = 2_000;
const DAEMON_GRACE_MS = 30_000;

const DAEMON = 'daemon-';

/**
 * Path of a new daemon's pid file, written before it can report anything: unique, since two daemons may be started at
 * once.
 */
export const daemonPidFile = (directory: StateDirectory): string =>
  directory.pidFile(`${DAEMON}${randomBytes(4).toString('hex')}`);

/** Removes the pid file of this ending process. */
export async function forgetDaemon(directory: StateDirectory): Promise<void> {
  for (const file of await pidFiles(directory)) {
    const content = basename(file).startsWith(DAEMON) ? await readJson<PidFileContent>(file) : undefined;
    if (content?.pid === process.pid) await rm(file, { force: true });
  }
}

/** Whether another process of the garden with a pid file runs. */
export async function runsSomething(directory: StateDirectory): Promise<boolean> {
  const isOther = async (file: string) => (await readJson<PidFileContent>(file))?.pid !== process.pid;
  const run = (await pidFiles(directory)).map(async (file) => (await isOther(file)) && (await runsStill(file)));
  return (await Promise.all(run)).includes(true);
}

async function pidFiles(directory: StateDirectory): Promise<string[]> {
  const folder = dirname(directory.pidFile('any'));
  const names = await readdir(folder).catch(() => [] as string[]);
  return names.filter((name) => name.endsWith('.json')).map((name) => join(folder, name));
}

/**
 * Ends processes left over from earlier runs, found by their pid files: daemons first, which would restart the others.
 */
export async function endLeftOvers(directory: StateDirectory): Promise<void> {
  await endPidFiles(directory, (name) => name.startsWith(DAEMON), DAEMON_GRACE_MS);
  await endPidFiles(directory, (name) => !name.startsWith(DAEMON), GRACE_MS);
}

async function endPidFiles(
  directory: StateDirectory,
  isMeant: (name: string) => boolean,
  graceMs: number,
): Promise<void> {
  const files = await pidFiles(directory);
  await Promise.all(
    files
      .filter((file) => isMeant(basename(file)))
      .map(async (file) => {
        const content = await readJson<PidFileContent>(file);
        if (content?.pid === process.pid) return;
        if (content) await endGroup(content, graceMs);
        await rm(file, { force: true });
      }),
  );
}

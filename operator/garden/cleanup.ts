import { randomBytes } from 'node:crypto';
import { readdir, rm, rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Cgroups, cgroupName, readLayout } from './cgroups.ts';
import { run } from './command.ts';
import { isMissing, readJson } from './files.ts';
import { restoreHostLimits } from './host-limits.ts';
import { FIXED_FOLDERS, removeFolders, tearDownMounts } from './mounts.ts';
import { gardenNamespaces, networkNames, removeEmptyNamespaceFolder, tearDownNetwork } from './network.ts';
import { endGroup, type PidFileContent, runsStill } from './processes.ts';
import type { StateDirectory } from './state.ts';

const GRACE_MS = 2_000;
const DAEMON_GRACE_MS = 30_000;

const DAEMON = 'daemon-';

/** Where a daemon has its pid file before it can say anything itself: a file of its own, since two may be started at once. */
export const daemonPidFile = (directory: StateDirectory): string =>
  directory.pidFile(`${DAEMON}${randomBytes(4).toString('hex')}`);

/** Forgets this very process, which ends. */
export async function forgetDaemon(directory: StateDirectory): Promise<void> {
  for (const file of await pidFiles(directory)) {
    const content = basename(file).startsWith(DAEMON) ? await readJson<PidFileContent>(file) : undefined;
    if (content?.pid === process.pid) await rm(file, { force: true });
  }
}

/** Whether anything of the garden runs that has a pid file here, this process apart. */
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

/** Ends processes that were started here and not ended, known by their pid files: daemons first, who would start the others again. */
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

/** Whether this process can have made anything outside of the state directory. */
const isRootOnLinux = (): boolean => process.platform === 'linux' && process.getuid?.() === 0;

/**
 * Ends everything in the garden's cgroup and removes its cgroups, mounts and network. The state directory stays.
 * Afterwards all is as after a reboot of the machine. Throws when something does not go.
 */
export async function takeDownSeed(directory: StateDirectory, options: { except?: number[] } = {}): Promise<void> {
  if (!isRootOnLinux()) return;
  const layout = await readLayout();
  const cgroups = layout && new Cgroups(layout, cgroupName(directory.id));
  await cgroups?.killAll(options.except ?? []);
  await tearDownMounts(directory.path('ns'));
  await tearDownNetwork(networkNames(directory.id));
  await cgroups?.remove();
}

/** Removes what a garden leaves on the machine besides its state directory, then that. */
export async function removeEverything(directory: StateDirectory): Promise<void> {
  await takeDownSeed(directory);
  if (isRootOnLinux()) {
    const isLast = (await gardenNamespaces().catch(() => [])).length === 0;
    if (isLast) {
      await removeFolders(FIXED_FOLDERS);
      await restoreHostLimits();
      await removeEmptyNamespaceFolder().catch(() => {});
    }
  }
  // Folders of an overlay are closed even to the user who owns them.
  if (process.getuid?.() !== 0) await run(['chmod', '-R', 'u+rwX', directory.path('seed')]).catch(() => {});
  await rm(directory.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  await rmdir(directory.home).catch((error) => {
    // Kept by other files, or because somebody has mounted a disk there.
    if (!isMissing(error) && !['ENOTEMPTY', 'EBUSY'].includes(error.code)) throw error;
  });
}

import { rm, rmdir } from 'node:fs/promises';
import { Cgroups, cgroupName, readLayout } from '../host/cgroups.ts';
import { run } from '../host/command.ts';
import { isMissing } from '../host/files.ts';
import { restoreHostLimits } from '../host/host-limits.ts';
import { FIXED_FOLDERS, removeFolders, tearDownMounts } from '../host/mounts.ts';
import { gardenNamespaces, networkNames, removeEmptyNamespaceFolder, tearDownNetwork } from '../host/network.ts';
import type { StateDirectory } from '../state/state.ts';

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

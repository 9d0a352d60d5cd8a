import { rm, rmdir } from 'node:fs/promises';
import { Cgroups, cgroupName, readLayout } from '../host/cgroups.ts';
import { run } from '../host/command.ts';
import { isMissing } from '../host/files.ts';
import { restoreHostLimits } from '../host/host-limits.ts';
import { FIXED_FOLDERS, removeFolders, tearDownMounts } from '../host/mounts.ts';
import { gardenNamespaces, networkNames, removeEmptyNamespaceFolder, tearDownNetwork } from '../host/network.ts';
import type { StateDirectory } from '../state/state.ts';

/** Whether this process can have created anything outside the state directory. */
const isRootOnLinux = (): boolean => process.platform === 'linux' && process.getuid?.() === 0;

/**
 * Ends everything in the garden's cgroup and removes its cgroups, mounts and network, as a reboot would. The state
 * directory stays. Throws when something cannot be removed.
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

/** Removes a garden's remains on the machine, and the state directory last. */
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
  // Overlay folders are inaccessible even to their owner.
  if (process.getuid?.() !== 0) await run(['chmod', '-R', 'u+rwX', directory.path('seed')]).catch(() => {});
  await rm(directory.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  await rmdir(directory.home).catch((error) => {
    // The folder has other files, or is a mount point.
    if (!isMissing(error) && !['ENOTEMPTY', 'EBUSY'].includes(error.code)) throw error;
  });
}

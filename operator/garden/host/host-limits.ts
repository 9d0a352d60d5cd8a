import { rm, writeFile } from 'node:fs/promises';
import { readJson, readText, writeAtomic } from './files.ts';

/** Host limits that a seed with many machines exceeds: every kubelet and containerd watches files. */
const HOST_MINIMUM: Record<string, number> = {
  '/proc/sys/fs/inotify/max_user_instances': 8192,
  '/proc/sys/fs/inotify/max_user_watches': 524_288,
};

/** Limits before the first garden. Shared by all gardens; like the limits it is lost at a reboot. */
const CHANGED_LIMITS_FILE = '/run/coppice-host-limits.json';

type HostLimits = Record<string, { was: string; set: string }>;

/** Raises host limits that are too low; `restoreHostLimits` reverts them. */
export async function raiseHostLimits(): Promise<void> {
  const changed = (await readJson<HostLimits>(CHANGED_LIMITS_FILE)) ?? {};
  let isChanged = false;
  for (const [file, minimum] of Object.entries(HOST_MINIMUM)) {
    const was = (await readText(file))?.trim();
    if (was === undefined || Number(was) >= minimum) continue;
    try {
      await writeFile(file, String(minimum));
    } catch {
      // A read-only /proc/sys: fewer machines fit then.
      continue;
    }
    changed[file] = { was, set: String(minimum) };
    isChanged = true;
  }
  if (isChanged) await writeAtomic(CHANGED_LIMITS_FILE, JSON.stringify(changed), 0o600, false);
}

/** Reverts limits that nobody else has changed since. No other garden may run, since it may need them. */
export async function restoreHostLimits(): Promise<void> {
  const changed = (await readJson<HostLimits>(CHANGED_LIMITS_FILE)) ?? {};
  for (const [file, { was, set }] of Object.entries(changed)) {
    if ((await readText(file))?.trim() === set) await writeFile(file, was);
  }
  await rm(CHANGED_LIMITS_FILE, { force: true });
}

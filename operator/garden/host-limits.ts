import { rm, writeFile } from 'node:fs/promises';
import { readJson, readText, writeAtomic } from './files.ts';

/** Limits of the host that a seed full of machines outgrows: every kubelet and containerd watches files. */
const HOST_MINIMUM: Record<string, number> = {
  '/proc/sys/fs/inotify/max_user_instances': 8192,
  '/proc/sys/fs/inotify/max_user_watches': 524_288,
};

/** What limits were before the first garden. All gardens share it; like the limits it does not outlive a reboot. */
const RECORD = '/run/coppice-host-limits.json';

type HostLimits = Record<string, { was: string; set: string }>;

/** Raises limits of the host that are too low. What they were is put back by `restoreHostLimits`. */
export async function raiseHostLimits(): Promise<void> {
  const record = (await readJson<HostLimits>(RECORD)) ?? {};
  let isChanged = false;
  for (const [file, minimum] of Object.entries(HOST_MINIMUM)) {
    const was = (await readText(file))?.trim();
    if (was === undefined || Number(was) >= minimum) continue;
    try {
      await writeFile(file, String(minimum));
    } catch {
      // A read-only /proc/sys: fewer machines fit then, but some do.
      continue;
    }
    record[file] = { was, set: String(minimum) };
    isChanged = true;
  }
  if (isChanged) await writeAtomic(RECORD, JSON.stringify(record), 0o600, false);
}

/** Puts limits back that nobody else has changed since. No other garden may run: it may need them as much. */
export async function restoreHostLimits(): Promise<void> {
  const record = (await readJson<HostLimits>(RECORD)) ?? {};
  for (const [file, { was, set }] of Object.entries(record)) {
    if ((await readText(file))?.trim() === set) await writeFile(file, was);
  }
  await rm(RECORD, { force: true });
}

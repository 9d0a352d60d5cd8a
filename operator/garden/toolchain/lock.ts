import { randomBytes } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive, ownIdentity, type ProcessIdentity } from '../host/process-identity.ts';

const readOrUndefined = (file: string) => readFile(file, 'utf8').catch(() => undefined);

const holderOf = (text: string): ProcessIdentity | undefined => {
  try {
    const { pid, started } = JSON.parse(text) as ProcessIdentity;
    return Number.isInteger(pid) && typeof started === 'string' ? { pid, started } : undefined;
  } catch {
    return undefined;
  }
};

/**
 * Runs `work` under a file lock between processes. A dead holder's lock is taken over. Two processes in a simultaneous
 * take-over could both continue, so the work must be idempotent: here the lock saves work, and renames keep the cache
 * consistent. `onWait` is called once if another process holds the lock. Rejects when `signal` aborts the wait.
 */
export async function withLock<T>(
  file: string,
  work: () => Promise<T>,
  options: { onWait?: (holder: ProcessIdentity) => void; signal?: AbortSignal; pollMs?: number } = {},
): Promise<T> {
  await mkdir(dirname(file), { recursive: true });
  const mine = JSON.stringify({ ...(await ownIdentity()), nonce: randomBytes(8).toString('hex') });
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await writeFile(draft, mine);
    for (let said = false; ; ) {
      const taken = await link(draft, file).then(
        () => true,
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'EEXIST') return false;
          if (error.code === 'ENOENT') return undefined;
          throw error;
        },
      );
      if (taken) break;
      // The previous holder removed the folder.
      if (taken === undefined) {
        await mkdir(dirname(file), { recursive: true, mode: 0o700 });
        await writeFile(draft, mine);
        continue;
      }
      const text = await readOrUndefined(file);
      if (text === undefined) continue;
      const holder = holderOf(text);
      if (holder && (await isAlive(holder))) {
        if (!said) options.onWait?.(holder);
        said = true;
        await sleep(options.pollMs ?? 200, undefined, { signal: options.signal });
        continue;
      }
      const aside = `${draft}.stale`;
      await rename(file, aside).catch(() => {});
      const moved = await readOrUndefined(aside);
      // The moved file may be a living process's new lock: it is restored.
      if (moved !== undefined && moved !== text) await link(aside, file).catch(() => {});
      await rm(aside, { force: true });
    }
  } finally {
    await rm(draft, { force: true });
  }
  try {
    return await work();
  } finally {
    if ((await readOrUndefined(file)) === mine) await rm(file, { force: true });
  }
}

/** Whether a living process holds the lock. */
export async function isLocked(file: string): Promise<boolean> {
  const holder = holderOf((await readOrUndefined(file)) ?? '');
  return holder !== undefined && isAlive(holder);
}

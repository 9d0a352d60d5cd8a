import { createHash } from 'node:crypto';
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Granted, Wanted } from './ask.ts';

/** Least remaining lifetime of a cached certificate: a request must end before the certificate does. */
const LEAST_LEFT_MS = 60_000;

/** Cache file of the certificate between calls of kubectl, in the person's own cache directory. */
export function keptFile(garden: string, wanted: Wanted, env: Record<string, string | undefined>): string {
  const { namespace, name, role, seconds } = wanted;
  const print = createHash('sha256')
    .update(JSON.stringify([garden, namespace, name, role, seconds]))
    .digest('hex');
  const cache = env.XDG_CACHE_HOME || join(env.HOME || homedir(), '.cache');
  return join(cache, 'coppice', 'credentials', `${print.slice(0, 32)}.json`);
}

/** The cached certificate. Undefined: none that lasts another minute. */
export async function keptCredential(file: string, now: Date): Promise<Granted | undefined> {
  try {
    const kept = JSON.parse(await readFile(file, 'utf8')) as Partial<Granted>;
    const { cert, key, ca, endsAt } = kept;
    if (!cert || !key || !ca || !endsAt) return undefined;
    return Date.parse(endsAt) - +now > LEAST_LEFT_MS ? { cert, key, ca, endsAt } : undefined;
  } catch {
    return undefined;
  }
}

/** Caches the certificate. A failure to write only costs time. */
export async function keepCredential(file: string, granted: Granted): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await chmod(dirname(file), 0o700);
    const beside = `${file}.${process.pid}`;
    await writeFile(beside, JSON.stringify(granted), { mode: 0o600, flag: 'wx' });
    await rename(beside, file);
  } catch {}
}

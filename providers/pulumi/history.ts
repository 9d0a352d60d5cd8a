import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT } from './project.ts';

/** Kept history files: each run writes two (a summary and a checkpoint). */
const KEPT_FILES = 2 * 5;

/**
 * Deletes old history of a stack, which the engine never does. For directories only; in buckets a lifecycle rule does
 * it.
 */
export async function pruneHistory(backendURL: string, stackName: string): Promise<void> {
  if (!backendURL.startsWith('file:///')) return;
  const folder = join(fileURLToPath(backendURL), '.pulumi', 'history', PROJECT, stackName);
  const files = await readdir(folder).catch(() => []);
  // File names sort by stack and time in nanoseconds.
  const old = files.sort().slice(0, -KEPT_FILES);
  await Promise.all(old.map((file) => rm(join(folder, file), { force: true })));
}

import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PROJECT } from './project.ts';

/** Files of the newest runs that are kept: each run writes a summary and a checkpoint. */
const KEPT_FILES = 2 * 5;

/**
 * Removes the records of old runs of a stack, which the engine writes with every run and never removes. Only in a directory;
 * in a bucket a lifecycle rule does it.
 */
export async function pruneHistory(backendURL: string, stackName: string): Promise<void> {
  if (!backendURL.startsWith('file:///')) return;
  const folder = join(fileURLToPath(backendURL), '.pulumi', 'history', PROJECT, stackName);
  const files = await readdir(folder).catch(() => []);
  // Their names begin with the stack's and the time in nanoseconds.
  const old = files.sort().slice(0, -KEPT_FILES);
  await Promise.all(old.map((file) => rm(join(folder, file), { force: true })));
}

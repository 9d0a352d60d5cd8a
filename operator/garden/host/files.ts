import { randomBytes } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file so that a reader, or a crash, sees the old text or the new. Mode 0600 unless given, new folders 0700.
 * What is worth nothing after a crash of the machine need not be `durable`.
 */
export async function writeAtomic(file: string, text: string, mode = 0o600, durable = true): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const draft = `${file}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    const handle = await open(draft, 'wx', mode);
    try {
      await handle.writeFile(text);
      if (durable) await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(draft, file);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Writes only when the text is another than the file's. Resolves to whether it was. */
export async function writeIfChanged(file: string, text: string, mode?: number): Promise<boolean> {
  if ((await readText(file)) === text) return false;
  await writeAtomic(file, text, mode);
  return true;
}

/** A file's text, or undefined when there is no such file. */
export async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** A JSON file's content, or undefined when there is no such file or it was cut short by a crash. */
export async function readJson<T>(file: string): Promise<T | undefined> {
  const text = await readText(file);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}

export const isMissing = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException)?.code ?? '');

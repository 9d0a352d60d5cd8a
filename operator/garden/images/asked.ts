import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Records a request for an image. Full name, `host/repository:tag`. */
export async function askFor(folder: string, name: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFile(join(folder, encodeURIComponent(name)), '', { mode: 0o600 });
}

/** Full names of images ever requested. */
export const askedFor = async (folder: string): Promise<string[]> => (await readdir(folder)).map(decodeURIComponent);

import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What a garden is run by. */
const FOLDERS = ['operator', 'providers', 'profiles'];

/** Equal for two copies of Coppice that run a garden in the same way, wherever they are: of all their files. */
export async function codeDigest(root = ROOT, folders: readonly string[] = FOLDERS): Promise<string> {
  const found = await Promise.all(
    folders.map((folder) => readdir(join(root, folder), { recursive: true, withFileTypes: true })),
  );
  const files = found.flat().flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
  const texts = await Promise.all(
    files.sort().map(async (file) => [relative(root, file), await readFile(file)] as const),
  );
  const hash = createHash('sha256');
  for (const [name, text] of texts) hash.update(`${name}\0${text.length}\0`).update(text);
  return hash.digest('hex').slice(0, 16);
}

import { createHash } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Folders with the code of a garden. */
const FOLDERS = ['operator', 'providers', 'profiles'];
const LOCK = 'package-lock.json';
/** File types of code; editors leave other files beside them. */
const CODE = /\.(ts|sh|yaml|json|go)$/;

/**
 * Digest of the code files' names, sizes and times: reading all contents would add a sixth of a second to each start.
 */
export function codeDigest(root = ROOT, folders: readonly string[] = FOLDERS): string {
  const found = folders.flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }));
  const files = found
    .filter((entry) => entry.isFile() && CODE.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  const seen = [...files.sort(), join(root, LOCK)].map((file) => {
    const is = statSync(file, { throwIfNoEntry: false });
    return `${relative(root, file)} ${is?.size} ${is?.mtimeMs}`;
  });
  return createHash('sha256').update(seen.join('\n')).digest('hex').slice(0, 16);
}

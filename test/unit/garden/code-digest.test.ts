import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { codeDigest } from '../../../operator/garden/daemon/code-digest.ts';
import { CODE, childEnvironment } from '../../../operator/garden/processes/child-environment.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'coppice-code-'));
  await mkdir(join(root, 'operator', 'deep'), { recursive: true });
  await writeFile(join(root, 'operator', 'deep', 'a.ts'), 'one');
});
afterEach(() => rm(root, { recursive: true, force: true }));

const digest = (folder = root) => codeDigest(folder, ['operator']);

it('codeDigest is equal for equal files elsewhere, and differs for each change', async () => {
  const before = digest();
  const elsewhere = `${root}-moved`;
  await rename(root, elsewhere);
  expect(digest(elsewhere)).toBe(before);
  await rename(elsewhere, root);
  await writeFile(join(root, 'operator', 'deep', 'a.ts'), 'two');
  const changed = digest();
  await writeFile(join(root, 'operator', 'b.ts'), '');
  expect(new Set([before, changed, digest()]).size).toBe(3);
});

it("codeDigest is passed to Coppice's programs: one of other files is not taken over", () => {
  expect(childEnvironment({ [CODE]: 'abc' })).toEqual({ [CODE]: 'abc' });
});

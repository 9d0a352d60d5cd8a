import { createHash } from 'node:crypto';
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '../../../operator/garden/host/command.ts';
import { isExecutable } from '../../../operator/garden/toolchain/cache.ts';
import { withLock } from '../../../operator/garden/toolchain/lock.ts';
import { installPackages, whyNoPackages } from '../../../operator/garden/toolchain/package-source.ts';

const RECIPE = fileURLToPath(new URL('image.sh', import.meta.url));
const DEBOOTSTRAP = '/usr/sbin/debootstrap';
/** Three minutes on two quiet cores. */
const TIMEOUT_MS = 20 * 60_000;
/** A set-up that may have to make it takes no longer than this. */
export const COLD_MS = 2 * TIMEOUT_MS + 5 * 60_000;

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const diskIn = async (cache: string): Promise<string> => {
  const recipe = createHash('sha256')
    .update(`${process.arch}\n`)
    .update(await readFile(RECIPE));
  return join(cache, `disk-${recipe.digest('hex').slice(0, 16)}`);
};

/** Why no disk for machines can be had here; undefined: there is one, or it can be made. */
export async function whyNoMachineImage(cache: string): Promise<string | undefined> {
  if (await exists(await diskIn(cache))) return undefined;
  return (await isExecutable(DEBOOTSTRAP)) ? undefined : whyNoPackages();
}

/** The disk that machines' own lie on, made first where this recipe's is not there. */
export async function machineImage(cache: string): Promise<string> {
  const disk = await diskIn(cache);
  await mkdir(cache, { recursive: true });
  await withLock(`${disk}.lock`, async () => {
    if (await exists(disk)) return;
    process.stderr.write(`tests: making the disk of cloud machines in ${disk}, some minutes, once\n`);
    if (!(await isExecutable(DEBOOTSTRAP))) await installPackages(['debootstrap'], {});
    for (let attempts = 2; ; attempts--) {
      const draft = `${disk}.draft-${process.pid}-${attempts}`;
      try {
        // In namespaces of its own: what it mounts, and what it has started, ends with it, also when it is killed.
        const alone = ['unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
        await run([...alone, '/bin/bash', RECIPE, draft], { timeoutMs: TIMEOUT_MS });
        await rename(draft, disk);
        return;
      } catch (error) {
        await rm(draft, { recursive: true, force: true });
        // A mirror does not answer always.
        if (attempts === 1) throw error;
      }
    }
  });
  return disk;
}

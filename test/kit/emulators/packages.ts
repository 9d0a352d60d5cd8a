import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, cp, mkdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ToolCache, toolsDirectory } from '../../../operator/garden/toolchain/cache.ts';
import { withLock } from '../../../operator/garden/toolchain/lock.ts';

const run = promisify(execFile);
const MOTO = fileURLToPath(new URL('moto.txt', import.meta.url));
const AZURITE = fileURLToPath(new URL('azurite', import.meta.url));
/** An install of all packages takes less than a minute on a quiet machine. */
const INSTALL_MS = 8 * 60_000;

/** Packages of an emulator in the toolchain's cache, or the reason why a test that needs them is skipped. */
export type Installed = { folder: string } | { reason: string };

/**
 * moto and what it needs, of the versions and hashes in moto.txt, for the Python of this machine. A package whose hash differs is an error,
 * and no reason to skip.
 */
export async function installMoto(): Promise<Installed> {
  let python: string;
  try {
    // Wheels are for one version of Python.
    python = (await run('python3', ['-c', 'import sys, pip; print(sys.implementation.cache_tag)'])).stdout.trim();
  } catch (error) {
    return { reason: (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'there is no python3' : 'there is no pip' };
  }
  return cached('moto', [python, await readFile(MOTO, 'utf8')], (folder) =>
    run(
      'python3',
      [
        ...'-m pip install --quiet --no-deps --only-binary :all: --require-hashes'.split(' '),
        '--target',
        folder,
        '-r',
        MOTO,
      ],
      {
        timeout: INSTALL_MS,
      },
    ),
  );
}

/** azurite and what it needs, of the versions and hashes in azurite/package-lock.json. A package whose hash differs is an error. */
export async function installAzurite(): Promise<Installed> {
  const lock = await readFile(join(AZURITE, 'package-lock.json'), 'utf8');
  return cached('azurite', [lock], async (folder) => {
    await cp(AZURITE, folder, { recursive: true });
    await run('npm', 'ci --ignore-scripts --no-audit --no-fund'.split(' '), { cwd: folder, timeout: INSTALL_MS });
  });
}

/** What pip and npm say of a package that is not the one that was pinned. */
const OTHER_PACKAGE = /DO NOT MATCH THE HASHES|EINTEGRITY/;

/** The folder `<tools>/emulators/NAME-KEY`, filled first where it is missing. Whoever asks meanwhile waits. */
async function cached(
  name: string,
  key: readonly string[],
  fill: (folder: string) => Promise<unknown>,
): Promise<Installed> {
  const cache = new ToolCache(toolsDirectory());
  const digest = createHash('sha256').update(JSON.stringify(key)).digest('hex').slice(0, 12);
  const folder = join(cache.dir, 'emulators', `${name}-${digest}`);
  const isThere = () =>
    access(folder).then(
      () => true,
      () => false,
    );
  return withLock(cache.lockFile(name), async () => {
    if (await isThere()) return { folder };
    const work = await cache.workFolder();
    process.stderr.write(`tests: installing ${name}\n`);
    try {
      await fill(work);
      await mkdir(dirname(folder), { recursive: true });
      await rename(work, folder);
      return { folder };
    } catch (error) {
      const { stderr = '', message } = error as Error & { stderr?: string };
      if (OTHER_PACKAGE.test(stderr)) throw error;
      return { reason: `${name} cannot be installed: ${(stderr.trim() || message).split('\n').at(-1)}` };
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

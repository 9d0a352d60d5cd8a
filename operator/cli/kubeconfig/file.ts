import { chmod, chown, mkdir, open, readFile, realpath, rename, stat, unlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeconfigDocument } from '../../kube/kubeconfig-files.ts';
import { CliError } from '../errors.ts';
import { parseKubeconfig } from './config.ts';
import { spliceKubeconfig } from './splice.ts';

const LOCK_WAIT_MS = 10_000;
const LOCK_RETRY_MS = 20;

/** Text of a file; undefined if it does not exist. */
export async function readOptional(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CliError(`cannot read ${file}: ${(error as Error).message}`, { cause: error });
  }
}

/** File to change, by kubectl's rule: the file that has the context, else the first that exists, else the last. */
export async function fileToChange(files: readonly string[], context: string): Promise<string> {
  let firstExisting: string | undefined;
  for (const file of files) {
    const text = await readOptional(file);
    if (text === undefined) continue;
    firstExisting ??= file;
    if (parseKubeconfig(text, file).contexts?.some((entry) => entry?.name === context)) return file;
  }
  return firstExisting ?? files[files.length - 1]!;
}

/**
 * Changes a kubeconfig atomically: under kubectl's lock, by a new file that replaces the old one. Keeps mode, owner and symbolic links; a new
 * file gets mode 0600. Writes nothing if `change` returns undefined. Returns whether the file was written.
 */
export async function changeKubeconfig(
  file: string,
  change: (document: KubeconfigDocument) => KubeconfigDocument | undefined,
  signal?: AbortSignal,
): Promise<boolean> {
  const target = await realpath(file).catch(() => file);
  await mkdir(dirname(target), { recursive: true, mode: 0o700 });
  const unlock = await lock(`${target}.lock`, signal);
  try {
    const text = (await readOptional(target)) ?? '';
    const document = parseKubeconfig(text, file);
    const changed = change(document);
    if (changed === undefined) return false;
    const result = spliceKubeconfig(text, document, changed);
    if (result === text) return false;
    await replace(target, result);
    return true;
  } finally {
    await unlock();
  }
}

async function replace(target: string, text: string): Promise<void> {
  const old = await stat(target).catch(() => undefined);
  const temporary = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`);
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if (old !== undefined) {
      await chmod(temporary, old.mode & 0o7777);
      // Only root can restore another owner; for anybody else the owner is already right.
      await chown(temporary, old.uid, old.gid).catch(() => {});
    }
    await rename(temporary, target);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw new CliError(`cannot write ${target}: ${(error as Error).message}`, { cause: error });
  }
}

async function lock(file: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  const deadline = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    signal?.throwIfAborted();
    try {
      const handle = await open(file, 'wx', 0o600);
      await handle.writeFile(`${process.pid}\n`);
      await handle.close();
      return () => unlink(file).catch(() => {});
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
        throw new CliError(`cannot lock ${file}: ${(error as Error).message}`, { cause: error });
      }
    }
    if (await abandoned(file)) {
      await unlink(file).catch(() => {});
      continue;
    }
    if (performance.now() > deadline) {
      throw new CliError(
        `${file} has existed for ${LOCK_WAIT_MS / 1000} s: another program is changing this kubeconfig`,
        {
          advice: `try again, or delete that file if no such program runs`,
        },
      );
    }
    await sleep(LOCK_RETRY_MS, undefined, signal === undefined ? {} : { signal });
  }
}

// kubectl's lock file is empty, so its owner is unknown: never take it over.
async function abandoned(file: string): Promise<boolean> {
  const text = await readFile(file, 'utf8').catch(() => '');
  if (!/^\d+\n$/.test(text)) return false;
  try {
    process.kill(Number(text), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

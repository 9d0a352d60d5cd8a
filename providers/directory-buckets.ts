import { constants, createReadStream } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CoppiceError, configurationProblem } from '../operator/api/errors.ts';
import type { BackupBuckets, BackupContext, BackupObject } from './backup.ts';
import { broken, checkedKey, noSuchObject, notEmpty } from './bucket-objects.ts';

/** What is on its way in: never listed, and of no worth after a crash. */
const PARTIAL = '.partial';

/** Buckets that are directories of the garden's state, readable by nobody else. `folder` keeps providers apart. */
export function directoryBuckets(folder: string): BackupBuckets {
  const pathOf = ({ directory, bucket }: BackupContext, ...parts: string[]): string => {
    if (directory !== undefined) return join(directory, 'backups', folder, bucket.name, ...parts);
    throw configurationProblem(
      'this operator has no directory that outlives it, so backups cannot stay on its machine',
      'Give it a volume and COPPICE_DATA, or name a cloud in spec.backup.provider of the Seed.',
    );
  };
  const list = async (ctx: BackupContext, prefix: string): Promise<BackupObject[]> => {
    const root = pathOf(ctx);
    const keys = (await filesIn(root, '', prefix))
      .filter((key) => !key.endsWith(PARTIAL) && key.startsWith(prefix))
      .sort();
    const found = await Promise.all(
      keys.map(async (key) => ({ key, size: (await stat(join(root, key)).catch(ifMissing(undefined)))?.size })),
    );
    return found.flatMap(({ key, size }) => (size === undefined ? [] : [{ key, size }]));
  };
  return {
    inCloud: false,
    async ensure(ctx) {
      await mkdir(pathOf(ctx), { recursive: true, mode: 0o700 }).catch(explained(pathOf(ctx)));
    },
    async differences(ctx) {
      const { mode } = await stat(pathOf(ctx));
      return broken({ [`others may use ${pathOf(ctx)}`]: (mode & 0o077) === 0 });
    },
    async remove(ctx, { withContents = false } = {}) {
      const objects = await list(ctx, '');
      if (objects.length > 0 && !withContents) throw notEmpty(ctx.bucket, objects.length);
      await rm(pathOf(ctx), { recursive: true, force: true });
    },
    async put(ctx, key, content) {
      const file = pathOf(ctx, checkedKey(key));
      // Not made on the way: a bucket that is gone is not there, here as in a cloud.
      await access(pathOf(ctx), constants.W_OK).catch(explained(pathOf(ctx)));
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const partial = `${file}${PARTIAL}`;
      // Of a process that was killed: nobody else puts anything into this folder now.
      await removePartials(dirname(file));
      const handle = await open(partial, 'wx', 0o600);
      try {
        for await (const chunk of content.open()) {
          ctx.signal.throwIfAborted();
          await handle.writeFile(chunk as Buffer);
        }
        await handle.sync();
        await handle.close();
        await rename(partial, file);
      } catch (error) {
        await handle.close().catch(() => {});
        await rm(partial, { force: true });
        ctx.signal.throwIfAborted();
        throw explanation(file, error);
      }
    },
    list,
    async get(ctx, key) {
      const file = pathOf(ctx, checkedKey(key));
      if (!(await stat(file).catch(ifMissing(undefined)))?.isFile()) throw noSuchObject(ctx.bucket, key);
      return createReadStream(file);
    },
    async delete(ctx, key) {
      const file = pathOf(ctx, checkedKey(key));
      await rm(file, { force: true });
      const left = await readdir(dirname(file)).catch(ifMissing([]));
      if (left.every((name) => name.endsWith(PARTIAL))) await removePartials(dirname(file));
      // Folders are no objects: an empty one goes, as it would in a cloud.
      for (let parent = dirname(file); parent !== pathOf(ctx); parent = dirname(parent)) {
        const gone = await rmdir(parent).then(
          () => true,
          () => false,
        );
        if (!gone) break;
      }
    },
  };
}

/** Keys of the files below a folder that may begin with a prefix. A folder that goes meanwhile has none. */
async function filesIn(root: string, folder: string, prefix: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(ifMissing([]));
  const found = await Promise.all(
    entries.map(async (entry) => {
      const key = join(folder, entry.name);
      if (entry.isFile()) return [key];
      const concerns = `${key}/`.startsWith(prefix) || prefix.startsWith(`${key}/`);
      return entry.isDirectory() && concerns ? filesIn(root, key, prefix) : [];
    }),
  );
  return found.flat();
}

async function removePartials(folder: string): Promise<void> {
  const partials = (await readdir(folder).catch(ifMissing([]))).filter((name) => name.endsWith(PARTIAL));
  await Promise.all(partials.map((name) => rm(join(folder, name), { force: true })));
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? '';

const ifMissing =
  <T>(otherwise: T) =>
  (error: unknown): T => {
    if (codeOf(error) === 'ENOENT') return otherwise;
    throw error;
  };

const explained = (path: string) => (error: unknown) => {
  throw explanation(path, error);
};

function explanation(path: string, error: unknown): CoppiceError {
  const code = codeOf(error);
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new CoppiceError('ERR_INFRA_QUOTA_EXCEEDED', `there is no room for a backup at ${path}`, {
      advice: 'Free some of the disk; it is tried again by itself.',
      cause: error,
    });
  if (code === 'EACCES' || code === 'EROFS' || code === 'EPERM')
    return new CoppiceError('ERR_INFRA_UNAUTHORIZED', `the operator may not write to ${path}`, { cause: error });
  return new CoppiceError('ERR_INFRA_DEPENDENCIES', `${path}: ${code || (error as Error).message}`, { cause: error });
}

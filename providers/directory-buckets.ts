import { constants, createReadStream } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CoppiceError, configurationProblem } from '../operator/api/errors.ts';
import type { BackupBuckets, BackupContext, BackupObject } from './backup.ts';
import { checkedKey, noSuchObject, notEmpty } from './bucket-objects.ts';

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
    const names = await readdir(root, { recursive: true, withFileTypes: true }).catch(ifMissing([]));
    const keys = names
      .filter((entry) => entry.isFile() && !entry.name.endsWith(PARTIAL))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
      .filter((key) => key.startsWith(prefix))
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
      await rm(partial, { force: true });
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

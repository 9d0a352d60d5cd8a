import { constants, createReadStream } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CoppiceError, configurationProblem } from '../operator/api/errors.ts';
import type { BackupBuckets, BackupContext, BackupObject } from './backup.ts';
import { brokenPromises, checkedKey, noSuchObject, notEmpty } from './bucket-objects.ts';

/** Suffix of an upload in progress: never listed, worthless after a crash. */
const PARTIAL = '.partial';

/** Buckets as directories in the garden's state, readable by the owner only. `folder` separates providers. */
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
      return brokenPromises({ [`others may use ${pathOf(ctx)}`]: (mode & 0o077) === 0 });
    },
    async remove(ctx, { withContents = false } = {}) {
      const objects = await list(ctx, '');
      if (objects.length > 0 && !withContents) throw notEmpty(ctx.bucket, objects.length);
      await rm(pathOf(ctx), { recursive: true, force: true });
    },
    async put(ctx, key, content) {
      const file = pathOf(ctx, checkedKey(key));
      // Not created implicitly: as in a cloud, a deleted bucket stays missing.
      await access(pathOf(ctx), constants.W_OK).catch(explained(pathOf(ctx)));
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const partial = `${file}${PARTIAL}`;
      // Left by a killed process: no other upload runs in this folder.
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
      // Empty folders are removed, because buckets in clouds have none.
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

/** Keys with a prefix, from the files below a folder. A folder that is deleted meanwhile counts as empty. */
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

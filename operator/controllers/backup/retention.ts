import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { OpenBucket } from '../../accounts/bucket-account.ts';
import { backupPrefix } from '../../api/names.ts';

/** Key prefix of deletion marks with owner and time; no technical ID begins so. */
const DELETED = 'deleted/';

/** A deleted shoot with remaining backups. */
interface DeletedShoot {
  technicalID: string;
  uid: string;
  deletedAt: Date;
  /** Key of its mark. */
  key: string;
}

const MARK = /^deleted\/([\w.-]+)\/([\w-]+)\/(\d{1,12})$/;
const EMPTY = Buffer.alloc(0);
const NOTHING = {
  size: 0,
  sha256: createHash('sha256').update(EMPTY).digest('hex'),
  md5: createHash('md5').update(EMPTY).digest('base64'),
  open: () => Readable.from([], { objectMode: false }),
};

/** Deletes all backups of exactly one shoot. */
const deleteBackups = (bucket: OpenBucket, technicalID: string, uid: string): Promise<number> =>
  deleteBelow(bucket, backupPrefix(technicalID, uid));

async function deleteBelow({ buckets, ctx }: OpenBucket, prefix: string): Promise<number> {
  const objects = await buckets.list(ctx, prefix);
  for (const { key } of objects) await buckets.delete(ctx, key);
  return objects.length;
}

/**
 * Marks the backups of a deleted shoot for deletion after the grace period, or deletes them now without one. The mark
 * comes first, so that leftovers of a crash or throttling stay known. Only an observed deletion is marked: a missing
 * shoot may also mean that the garden was restored from an old backup.
 * @returns number of backups
 */
export async function retireBackups(
  bucket: OpenBucket,
  { technicalID, uid }: { technicalID: string; uid: string },
  gracePeriodHours: number,
): Promise<number> {
  const { buckets, ctx } = bucket;
  const objects = await buckets.list(ctx, backupPrefix(technicalID, uid));
  const marks = `${DELETED}${technicalID}/${uid}/`;
  const marked = await buckets.list(ctx, marks);
  // The first mark counts: a repeated deletion does not restart the period.
  if (objects.length > 0 && marked.length === 0)
    await buckets.put(ctx, `${marks}${Math.floor(+ctx.now() / 1000)}`, NOTHING);
  if (gracePeriodHours > 0) return objects.length;
  for (const { key } of objects) await buckets.delete(ctx, key);
  await deleteBelow(bucket, marks);
  return objects.length;
}

/** Deleted shoots, by their marks. */
async function deletedShoots({ buckets, ctx }: OpenBucket): Promise<DeletedShoot[]> {
  return (await buckets.list(ctx, DELETED)).flatMap(({ key }) => {
    const [, technicalID, uid, seconds] = MARK.exec(key) ?? [];
    return technicalID && uid ? [{ technicalID, uid, deletedAt: new Date(Number(seconds) * 1000), key }] : [];
  });
}

/** Deleted shoots whose grace period is over. Pure. `alive`: UIDs of existing shoots, whose marks are mistakes. */
const overdue = (
  deleted: readonly DeletedShoot[],
  gracePeriodHours: number,
  alive: ReadonlySet<string>,
  now: Date,
): DeletedShoot[] =>
  deleted.filter(({ uid, deletedAt }) => !alive.has(uid) && +now >= +deletedAt + gracePeriodHours * 3600_000);

/** Deletes overdue backups. @returns shoots without remaining backups */
export async function purge(
  bucket: OpenBucket,
  gracePeriodHours: number,
  alive: ReadonlySet<string>,
): Promise<DeletedShoot[]> {
  const { buckets, ctx } = bucket;
  const due = overdue(await deletedShoots(bucket), gracePeriodHours, alive, ctx.now());
  for (const { technicalID, uid, key } of due) {
    await deleteBackups(bucket, technicalID, uid);
    // Last, so that leftovers of a crash stay marked.
    await buckets.delete(ctx, key);
  }
  return due;
}

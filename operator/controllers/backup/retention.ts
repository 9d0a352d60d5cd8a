import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { OpenBucket } from '../../accounts/bucket-account.ts';
import { backupPrefix } from '../../api/names.ts';

/** Begins the keys of marks that say whose backups go, and since when; no technical ID begins so. */
const DELETED = 'deleted/';

/** A shoot that was deleted, and whose backups are still there. */
interface DeletedShoot {
  technicalID: string;
  uid: string;
  deletedAt: Date;
  /** Key of the mark. */
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

/** Deletes all backups of one shoot, and of no other. */
const deleteBackups = (bucket: OpenBucket, technicalID: string, uid: string): Promise<number> =>
  deleteBelow(bucket, backupPrefix(technicalID, uid));

async function deleteBelow({ buckets, ctx }: OpenBucket, prefix: string): Promise<number> {
  const objects = await buckets.list(ctx, prefix);
  for (const { key } of objects) await buckets.delete(ctx, key);
  return objects.length;
}

/**
 * The shoot is being deleted: its backups are marked to go once the grace period is over, and go now if there is none. Marked first: what
 * a crash or a cloud that throttles leaves of them is still known to go. Only who was seen to be
 * deleted is marked: that a garden knows no such shoot may just as well mean that the garden was restored from an old backup of itself.
 * @returns how many backups there were
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
  // The first mark counts: a deletion that is tried again does not begin anew.
  if (objects.length > 0 && marked.length === 0)
    await buckets.put(ctx, `${marks}${Math.floor(+ctx.now() / 1000)}`, NOTHING);
  if (gracePeriodHours > 0) return objects.length;
  for (const { key } of objects) await buckets.delete(ctx, key);
  await deleteBelow(bucket, marks);
  return objects.length;
}

/** Shoots that were deleted, by their marks. */
async function deletedShoots({ buckets, ctx }: OpenBucket): Promise<DeletedShoot[]> {
  return (await buckets.list(ctx, DELETED)).flatMap(({ key }) => {
    const [, technicalID, uid, seconds] = MARK.exec(key) ?? [];
    return technicalID && uid ? [{ technicalID, uid, deletedAt: new Date(Number(seconds) * 1000), key }] : [];
  });
}

/** Those whose grace period is over. Pure. `alive`: UIDs of shoots that there are; a mark that is of one of them is a mistake. */
const overdue = (
  deleted: readonly DeletedShoot[],
  gracePeriodHours: number,
  alive: ReadonlySet<string>,
  now: Date,
): DeletedShoot[] =>
  deleted.filter(({ uid, deletedAt }) => !alive.has(uid) && +now >= +deletedAt + gracePeriodHours * 3600_000);

/** Deletes what is overdue. @returns those whose backups are gone now. */
export async function purge(
  bucket: OpenBucket,
  gracePeriodHours: number,
  alive: ReadonlySet<string>,
): Promise<DeletedShoot[]> {
  const { buckets, ctx } = bucket;
  const due = overdue(await deletedShoots(bucket), gracePeriodHours, alive, ctx.now());
  for (const { technicalID, uid, key } of due) {
    await deleteBackups(bucket, technicalID, uid);
    // Last: what a crash leaves is still marked.
    await buckets.delete(ctx, key);
  }
  return due;
}

import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { backupPrefix, technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';

/** A snapshot in a bucket. */
export interface Snapshot {
  /** The last part of its key: what people call it by. */
  name: string;
  key: string;
  /** When it was begun: it has everything that was confirmed before. */
  takenAt: Date;
  /** Of etcd, at least. */
  revision: number;
  /** Bytes. */
  size: number;
}

/** How often snapshots are taken, and how many stay. */
interface BackupPolicy {
  periodMs: number;
  keep: number;
}

const DAY_MS = 24 * 3600_000;
/** As etcd-backup-restore has it (--max-backups). */
const KEEP = 7;
/** Beyond that dates end. */
const LONGEST_MS = 3650 * DAY_MS;
/** No seed is asked for more than that. */
const SHORTEST_MS = 60_000;

/** What the seed says about snapshots; undefined: none are taken. */
export function backupPolicy({ spec }: Pick<Seed, 'spec'>): BackupPolicy | undefined {
  if (!spec.backup) return undefined;
  const { fullSnapshotPeriod, maxBackupsLimitBasedGC } = spec.backup;
  const period = parseDuration(fullSnapshotPeriod ?? '') ?? DAY_MS;
  return { periodMs: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, period)), keep: maxBackupsLimitBasedGC ?? KEEP };
}

/**
 * `Full-<first revision>-<last revision>-<unix seconds>`, as etcd-backup-restore names full snapshots
 * (pkg/snapstore/snapshot.go); sorted by name they are sorted by revision.
 */
export const snapshotName = (revision: number, takenAt: Date): string =>
  `Full-00000000-${String(revision).padStart(8, '0')}-${Math.floor(+takenAt / 1000)}`;

const NAME = /^Full-\d{8,}-(\d{8,})-(\d{1,12})$/;

/** Snapshots among the objects, oldest first. What is called otherwise is none of ours. */
export function snapshotsIn(objects: readonly { key: string; size: number }[]): Snapshot[] {
  return objects
    .flatMap(({ key, size }) => {
      const name = key.split('/').at(-1)!;
      const parts = NAME.exec(name);
      if (!parts) return [];
      return [{ name, key, size, revision: Number(parts[1]), takenAt: new Date(Number(parts[2]) * 1000) }];
    })
    .sort((a, b) => +a.takenAt - +b.takenAt || a.revision - b.revision);
}

/** Where the snapshots of a shoot are: with its UID, so that those of an earlier one of its name are not taken for its own. */
export const prefixOf = ({ metadata: { name, namespace = '', uid = '' } }: Pick<Shoot, 'metadata'>): string =>
  backupPrefix(technicalID(namespace, name), uid);

/** When somebody asked for a snapshot; undefined: nobody did, or not in words that are a time. */
export function requestedAt({ metadata }: Pick<Shoot, 'metadata'>): Date | undefined {
  const time = Date.parse(metadata.annotations?.[ANNOTATIONS.backupRequestedAt] ?? '');
  return Number.isNaN(time) ? undefined : new Date(time);
}

/** Clocks of two operators may differ by that. */
const SKEW_MS = 60_000;

/** The newest snapshot; one of a clock that was ahead says nothing about when. @param snapshots oldest first */
export const newestOf = (snapshots: readonly Snapshot[], now: Date): Snapshot | undefined =>
  snapshots.findLast((snapshot) => !isOfTheFuture(snapshot, now));

const isOfTheFuture = ({ takenAt }: Snapshot, now: Date): boolean => +takenAt > +now + SKEW_MS;

/**
 * When the next snapshot is due (in the past: now), and which ones go because there are enough newer ones. Snapshots of the future, which
 * would hold up all others until then, go first. Pure.
 * @param snapshots oldest first
 */
export function planBackups(
  snapshots: readonly Snapshot[],
  { periodMs, keep }: BackupPolicy,
  requested: Date | undefined,
  now: Date,
): { due: Date; remove: Snapshot[] } {
  const newest = newestOf(snapshots, now);
  const regular = newest ? +newest.takenAt + periodMs : 0;
  const asked = requested && (!newest || newest.takenAt < requested) ? +requested : Number.POSITIVE_INFINITY;
  const future = snapshots.filter((snapshot) => isOfTheFuture(snapshot, now));
  const byAge = [...future, ...snapshots.filter((snapshot) => !future.includes(snapshot))];
  return { due: new Date(Math.min(regular, asked)), remove: byAge.slice(0, Math.max(0, byAge.length - keep)) };
}

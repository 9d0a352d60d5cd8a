import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { backupPrefix, technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';

/** A snapshot in a bucket. */
export interface Snapshot {
  /** Last part of its key, which people use. */
  name: string;
  key: string;
  /** Start of the snapshot: contains everything confirmed before. */
  takenAt: Date;
  /** Lower bound of etcd's revision. */
  revision: number;
  /** Bytes. */
  size: number;
}

/** Interval and number of snapshots. */
interface BackupPolicy {
  periodMs: number;
  keep: number;
}

const DAY_MS = 24 * 3600_000;
/** Same as etcd-backup-restore's --max-backups. */
const KEEP = 7;
/** Limit of dates. */
const LONGEST_MS = 3650 * DAY_MS;
/** Shortest interval. */
const SHORTEST_MS = 60_000;

/** Backup settings of the seed; undefined: none. */
export function backupPolicy({ spec }: Pick<Seed, 'spec'>): BackupPolicy | undefined {
  if (!spec.backup) return undefined;
  const { fullSnapshotPeriod, maxBackupsLimitBasedGC } = spec.backup;
  const period = parseDuration(fullSnapshotPeriod ?? '') ?? DAY_MS;
  return { periodMs: Math.min(LONGEST_MS, Math.max(SHORTEST_MS, period)), keep: maxBackupsLimitBasedGC ?? KEEP };
}

/**
 * `Full-<first revision>-<last revision>-<unix seconds>`, as in etcd-backup-restore (pkg/snapstore/snapshot.go); name
 * order is revision order.
 */
export const snapshotName = (revision: number, takenAt: Date): string =>
  `Full-00000000-${String(revision).padStart(8, '0')}-${Math.floor(+takenAt / 1000)}`;

const NAME = /^Full-\d{8,}-(\d{8,})-(\d{1,12})$/;

/** Snapshots among the objects, oldest first. Other names are ignored. */
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

/** Prefix of a shoot's snapshots: contains the UID, so that an earlier shoot's are not mistaken for its own. */
export const prefixOf = ({ metadata: { name, namespace = '', uid = '' } }: Pick<Shoot, 'metadata'>): string =>
  backupPrefix(technicalID(namespace, name), uid);

/** Time of a requested snapshot; undefined: none, or invalid. */
export function requestedAt({ metadata }: Pick<Shoot, 'metadata'>): Date | undefined {
  const time = Date.parse(metadata.annotations?.[ANNOTATIONS.backupRequestedAt] ?? '');
  return Number.isNaN(time) ? undefined : new Date(time);
}

/** Tolerated clock difference of two operators. */
const SKEW_MS = 60_000;

/** The newest snapshot that is not from the future. @param snapshots oldest first */
export const newestOf = (snapshots: readonly Snapshot[], now: Date): Snapshot | undefined =>
  snapshots.findLast((snapshot) => !isOfTheFuture(snapshot, now));

const isOfTheFuture = ({ takenAt }: Snapshot, now: Date): boolean => +takenAt > +now + SKEW_MS;

/**
 * When the next snapshot is due (past: now), and which ones to delete. Snapshots from the future would block all others
 * and go first. Pure.
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

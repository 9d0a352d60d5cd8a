import { type BucketSource, openBucket } from '../../accounts/bucket-account.ts';
import { findCondition, isTrue, rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { isIgnored, isToSleep, type Shoot } from '../../api/shoot.ts';
import type { SeedAccess, SeedRegistry } from '../../clusters/seed-access.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { keyOf } from '../../kube/resources.ts';
import { conditionBefore, type Said, say } from '../conditions.ts';
import { BACKUP_READY, BUCKETS_READY } from './conditions.ts';
import { backupPolicy, newestOf, planBackups, prefixOf, requestedAt, type Snapshot, snapshotsIn } from './plan.ts';
import { retireBackups } from './retention.ts';
import { type EtcdOfShoot, hasEtcd, readyMembers, type Spool, takeSnapshot } from './take-snapshot.ts';

/** Dependencies of the controller. */
interface BackupDependencies {
  readonly source: BucketSource;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly registry: Pick<SeedRegistry, 'get'>;
  readonly spool: Spool;
  readonly log: Log;
  readonly recordEvent: RecordEvent;
  /** Requeues a shoot after news about its backups, for the status. */
  told(shootKey: string): void;
}

/** Memory about one shoot's backups; all of it can be lost. */
interface Known {
  prefix: string;
  /** Oldest first; undefined: not listed yet. */
  snapshots: Snapshot[] | undefined;
  /** Whether the list may be outdated, after a failure. */
  stale: boolean;
  failure: { message: string; codes: string[] } | undefined;
}

/** Timeout: an unreachable bucket must not block the deletion of a cluster. */
const RETIRE_MS = 60_000;
const SEED_OPENS_MS = 5_000;
const ETCD_BACK_MS = 60_000;
/** Tolerance for a running snapshot. */
const OVERDUE_MS = 3600_000;

/** Takes snapshots of each hosted etcd whose seed has a bucket, and deletes old ones. */
export class BackupController {
  readonly #deps: BackupDependencies;
  readonly #known = new Map<string, Known>();
  readonly #running = new Map<string, { abort: AbortController; done: Promise<unknown> }>();

  constructor(deps: BackupDependencies) {
    this.#deps = deps;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const abort = new AbortController();
    const done = this.#reconcile(key, AbortSignal.any([signal, abort.signal]), abort.signal);
    this.#running.set(key, { abort, done: done.catch(() => {}) });
    try {
      return await done;
    } catch (error) {
      if (abort.signal.aborted) return {};
      throw error;
    } finally {
      this.#running.delete(key);
    }
  }

  /** Condition BackupReady of a shoot; undefined: no backups. The last condition stays until something is known. */
  condition(shoot: Shoot): Said<'Shoot'> | undefined {
    const seed = this.#seedOf(shoot);
    if (!seed?.spec.backup) return undefined;
    const known = this.#knownOf(shoot);
    if (!known || (known.snapshots === undefined && !known.failure))
      return conditionBefore('Shoot', shoot.status?.conditions, BACKUP_READY);
    const newest = known.snapshots && newestOf(known.snapshots, this.#deps.source.now());
    const last = newest
      ? `the last snapshot was taken at ${rfc3339(newest.takenAt)} (${newest.name}, revision ${newest.revision}, ${newest.size} bytes)`
      : undefined;
    if (known.failure)
      return say(
        BACKUP_READY,
        false,
        'SnapshotFailed',
        [known.failure.message, last].filter(Boolean).join('; '),
        known.failure.codes,
      );
    const { periodMs } = backupPolicy(seed)!;
    // A sleeping cluster changes nothing that could be lost.
    const isOld =
      !isToSleep(shoot) &&
      newest !== undefined &&
      +this.#deps.source.now() > +newest.takenAt + 2 * periodMs + OVERDUE_MS;
    if (isOld) return say(BACKUP_READY, false, 'SnapshotOverdue', `no snapshot could be taken in time; ${last}`);
    return last ? say(BACKUP_READY, true, 'SnapshotTaken', last) : undefined;
  }

  /** Takes a last snapshot before etcd stops; does nothing without backups. Rejects with CoppiceErrors. */
  async takeLast(shoot: Shoot, signal: AbortSignal): Promise<void> {
    const deps = this.#deps;
    const seed = this.#seedOf(shoot);
    const access = seed && deps.registry.get(seed.metadata.name);
    if (!seed?.spec.backup || !access) return;
    await this.#running.get(keyOf(shoot))?.done;
    const etcd = etcdOf(shoot, seed, access);
    const bucket = await openBucket(deps.source, seed, signal);
    const taken = await takeSnapshot(etcd, bucket, prefixOf(shoot), deps.spool, signal);
    deps.log.info({ shoot: keyOf(shoot), snapshot: taken.name, bytes: taken.size }, 'a last snapshot was taken');
    const known = this.#knownOf(shoot);
    if (!known) return;
    if (known.snapshots) known.snapshots = [...known.snapshots, taken];
    this.#tell(keyOf(shoot), known, undefined);
  }

  /** Retention of a snapshot, milliseconds; 0: none are taken. */
  keptMs(shoot: Shoot): number {
    const seed = this.#seedOf(shoot);
    const policy = seed && backupPolicy(seed);
    // One more exists while the newest is being taken.
    return policy ? policy.periodMs * (policy.keep + 1) : 0;
  }

  /** Stops snapshots of a deleted shoot, and deletes its backups or marks them. Rejects only on abort. */
  async retire(shoot: Shoot, signal: AbortSignal): Promise<void> {
    const deps = this.#deps;
    const seed = this.#seedOf(shoot);
    const key = keyOf(shoot);
    const running = this.#running.get(key);
    running?.abort.abort(new Error('the shoot is being deleted'));
    await running?.done;
    this.#known.delete(key);
    if (!seed?.spec.backup) return;
    const { name, namespace = '', uid = '' } = shoot.metadata;
    try {
      const patience = AbortSignal.any([signal, AbortSignal.timeout(RETIRE_MS)]);
      const bucket = await openBucket(deps.source, seed, patience);
      await retireBackups(
        bucket,
        { technicalID: technicalID(namespace, name), uid },
        seed.spec.backup.deletionGracePeriodHours ?? 0,
      );
    } catch (error) {
      signal.throwIfAborted();
      const what = `backups of the cluster stay in the bucket of seed ${seed.metadata.name}, under ${prefixOf(shoot)}`;
      deps.recordEvent(shoot, 'Warning', 'BackupsLeft', `${what}: ${errorText(error)}`);
      deps.log.warn({ shoot: key, err: error }, what);
    }
  }

  async #reconcile(key: string, signal: AbortSignal, isLeft: AbortSignal): Promise<{ requeueAfterMs?: number }> {
    const deps = this.#deps;
    const shoot = deps.shoots.get(key);
    const seed = shoot && this.#seedOf(shoot);
    const policy = seed && backupPolicy(seed);
    if (!shoot || !seed || !policy || shoot.metadata.deletionTimestamp) {
      // Its status must forget the backups too.
      if (this.#known.delete(key) && shoot) deps.told(key);
      return {};
    }
    const access = deps.registry.get(seed.metadata.name);
    // After a start the shoot's controller opens the seed.
    if (!access) return { requeueAfterMs: SEED_OPENS_MS };
    const etcd = etcdOf(shoot, seed, access);
    // Not applicable at present; the shoot's next change leads here again. A snapshot of an ignored one might be worthless, and
    // replace a good one.
    if (isBeingMade(shoot) || isIgnored(shoot) || !hasEtcd(etcd)) return {};
    const known = this.#knownOf(shoot) ?? {
      prefix: prefixOf(shoot),
      snapshots: undefined,
      stale: false,
      failure: undefined,
    };
    this.#known.set(key, known);
    const isReady = readyMembers(etcd) > 0;
    // The operator that took the last snapshot before hibernation may have ended before reporting it.
    const isUntold = isToSleep(shoot) && known.snapshots === undefined;
    if (!isReady && !isUntold) {
      // No event is certain to report its return.
      this.#tell(key, known, known.failure);
      return { requeueAfterMs: ETCD_BACK_MS };
    }
    if (!isTrue(seed.status?.conditions, BUCKETS_READY)) {
      this.#tell(key, known, {
        message: `seed ${seed.metadata.name} has no bucket yet: see its condition ${BUCKETS_READY}`,
        codes: [],
      });
      return {};
    }
    try {
      const bucket = await openBucket(deps.source, seed, signal);
      if (!known.snapshots || known.stale)
        known.snapshots = snapshotsIn(await bucket.buckets.list(bucket.ctx, known.prefix));
      known.stale = false;
      if (!isReady) {
        this.#tell(key, known, undefined);
        return { requeueAfterMs: ETCD_BACK_MS };
      }
      let plan = planBackups(known.snapshots, policy, requestedAt(shoot), deps.source.now());
      if (plan.due <= deps.source.now()) {
        const taken = await takeSnapshot(etcd, bucket, known.prefix, deps.spool, signal);
        deps.log.info({ shoot: key, snapshot: taken.name, bytes: taken.size }, 'a snapshot was taken');
        known.snapshots = [...known.snapshots, taken];
        plan = planBackups(known.snapshots, policy, requestedAt(shoot), deps.source.now());
      }
      for (const old of plan.remove) {
        await bucket.buckets.delete(bucket.ctx, old.key);
        known.snapshots = known.snapshots.filter((one) => one !== old);
      }
      this.#tell(key, known, undefined);
      return { requeueAfterMs: Math.max(1000, +plan.due - +deps.source.now()) };
    } catch (error) {
      known.stale = true;
      // Report a timeout, but not an abort because the shoot is deleted.
      if (isLeft.aborted) throw error;
      const codes = error instanceof CoppiceError ? [error.code] : [];
      this.#tell(key, known, { message: errorText(error), codes });
      throw error;
    }
  }

  #tell(key: string, known: Known, failure: Known['failure']): void {
    known.failure = failure;
    const shoot = this.#deps.shoots.get(key);
    const said = shoot && this.condition(shoot);
    const before = findCondition(shoot?.status?.conditions, BACKUP_READY);
    if (said?.message !== before?.message || said?.status !== before?.status) this.#deps.told(key);
  }

  #seedOf(shoot: Shoot): Seed | undefined {
    const name = shoot.status?.seedName;
    return name === undefined ? undefined : this.#deps.seeds.get(name);
  }

  /** The entry of this shoot, not of an earlier one of its name. */
  #knownOf(shoot: Shoot): Known | undefined {
    const known = this.#known.get(keyOf(shoot));
    return known?.prefix === prefixOf(shoot) ? known : undefined;
  }
}

const etcdOf = ({ metadata: { name, namespace = '' } }: Shoot, seed: Seed, access: SeedAccess): EtcdOfShoot => ({
  access,
  seed,
  tenant: namespace,
  technicalID: technicalID(namespace, name),
});

/** The etcd of a new cluster should not be slowed down. */
const isBeingMade = ({ status }: Shoot): boolean =>
  status?.lastOperation?.type === 'Create' && status.lastOperation.state !== 'Succeeded';

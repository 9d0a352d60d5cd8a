import { type BucketSource, openBucket } from '../../accounts/bucket-account.ts';
import { findCondition, isTrue, rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { Seed } from '../../api/seed.ts';
import { isToSleep, type Shoot } from '../../api/shoot.ts';
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

/** What the controller works with. */
export interface BackupDependencies {
  readonly source: BucketSource;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly registry: Pick<SeedRegistry, 'get'>;
  readonly spool: Spool;
  readonly log: Log;
  readonly recordEvent: RecordEvent;
  /** Something new is known of a shoot's backups: its status is to say so. */
  told(shootKey: string): void;
}

/** What is remembered of one shoot's backups; all of it can be lost. */
interface Known {
  prefix: string;
  /** Oldest first; undefined: not looked at yet. */
  snapshots: Snapshot[] | undefined;
  /** Whether there may be others by now: something failed half-way. */
  stale: boolean;
  failure: { message: string; codes: string[] } | undefined;
}

/** A bucket that does not answer does not keep a cluster from being deleted. */
const RETIRE_MS = 60_000;
const SEED_OPENS_MS = 5_000;
const ETCD_BACK_MS = 60_000;
/** A snapshot takes its time. */
const OVERDUE_MS = 3600_000;

/** Takes snapshots of the etcd of each hosted shoot whose seed has a bucket, and lets go of old ones. */
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

  /** Condition BackupReady of a shoot; undefined: it has no backups. Until something is known, what was said before stands. */
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
    // While it sleeps nothing changes that could be lost.
    const isOld =
      !isToSleep(shoot) &&
      newest !== undefined &&
      +this.#deps.source.now() > +newest.takenAt + 2 * periodMs + OVERDUE_MS;
    if (isOld) return say(BACKUP_READY, false, 'SnapshotOverdue', `no snapshot could be taken in time; ${last}`);
    return last ? say(BACKUP_READY, true, 'SnapshotTaken', last) : undefined;
  }

  /** Takes a snapshot now, the last before etcd ends for a while; nothing where the shoot has no backups. Rejects with CoppiceErrors. */
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

  /** How long a snapshot of the shoot stays, milliseconds; 0: none are taken. */
  keptMs(shoot: Shoot): number {
    const seed = this.#seedOf(shoot);
    const policy = seed && backupPolicy(seed);
    // One more is there for as long as the newest takes.
    return policy ? policy.periodMs * (policy.keep + 1) : 0;
  }

  /** The shoot is being deleted: no snapshot is taken any more, and its backups go or are marked to go. Never rejects but when aborted. */
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
      // Its status is to forget them as well.
      if (this.#known.delete(key) && shoot) deps.told(key);
      return {};
    }
    const access = deps.registry.get(seed.metadata.name);
    // After a start: whoever works on the shoot opens its seed.
    if (!access) return { requeueAfterMs: SEED_OPENS_MS };
    const etcd = etcdOf(shoot, seed, access);
    // Being made, in somebody's hands, on machines of its own, or without a control plane: its next change leads here again.
    if (isBeingMade(shoot) || isIgnored(shoot) || !hasEtcd(etcd)) return {};
    const known = this.#knownOf(shoot) ?? {
      prefix: prefixOf(shoot),
      snapshots: undefined,
      stale: false,
      failure: undefined,
    };
    this.#known.set(key, known);
    const isReady = readyMembers(etcd) > 0;
    // Who took the last snapshot before a cluster slept may not have lived to tell.
    const isUntold = isToSleep(shoot) && known.snapshots === undefined;
    if (!isReady && !isUntold) {
      // Nothing is sure to tell when it is back.
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
      // A snapshot that took too long is told; one that was cut off because the shoot goes is not.
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

  /** Of this shoot, not of an earlier one of its name. */
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

/** Somebody works on it by hand: what is taken of it now might be worth nothing, and push out what is. */
const isIgnored = ({ metadata }: Shoot): boolean => metadata.annotations?.[ANNOTATIONS.ignore] === 'true';

/** While a cluster is being made its etcd has better things to do. */
const isBeingMade = ({ status }: Shoot): boolean =>
  status?.lastOperation?.type === 'Create' && status.lastOperation.state !== 'Succeeded';

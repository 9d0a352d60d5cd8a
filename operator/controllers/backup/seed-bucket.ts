import { type BucketSource, type OpenBucket, openBucket } from '../../accounts/bucket-account.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import type { Seed } from '../../api/seed.ts';
import type { Log } from '../../kube/log.ts';
import { type Said, say } from '../conditions.ts';
import { BUCKETS_DRIFTED, BUCKETS_READY } from './conditions.ts';
import { purge } from './retention.ts';

/** Interval between checks of a healthy bucket, and of garbage collection. */
const LOOK_AGAIN_MS = 3600_000;
/** Retry interval: a fix of a Secret or a permission causes no event. */
const TRY_AGAIN_MS = 60_000;

interface Looked {
  /** Key of the checked inputs. */
  print: string;
  conditions: Said<'Seed'>[];
  again: number;
}

/** Maintains the buckets of seeds, and deletes overdue backups. */
export class SeedBuckets {
  readonly #source: BucketSource;
  readonly #log: Log;
  readonly #shootUIDs: () => ReadonlySet<string>;
  readonly #looked = new Map<string, Looked>();

  /** `shootUIDs`: of all existing shoots. */
  constructor(source: BucketSource, log: Log, shootUIDs: () => ReadonlySet<string>) {
    this.#source = source;
    this.#log = log;
    this.#shootUIDs = shootUIDs;
  }

  /**
   * Conditions of a seed about its bucket (BackupBucketsReady, BackupBucketsDrifted), and the next check; undefined
   * without backups. Rejects only on abort.
   */
  async look(
    seed: Seed,
    signal: AbortSignal,
  ): Promise<{ conditions: Said<'Seed'>[]; requeueAfterMs: number } | undefined> {
    const { name, uid } = seed.metadata;
    if (!seed.spec.backup) {
      this.#looked.delete(name);
      return undefined;
    }
    const print = JSON.stringify([uid, seed.spec.backup]);
    const now = +this.#source.now();
    let looked = this.#looked.get(name);
    if (!looked || looked.print !== print || looked.again <= now) {
      looked = await this.#look(seed, print, now, signal);
      this.#looked.set(name, looked);
    }
    return { conditions: looked.conditions, requeueAfterMs: Math.max(1000, looked.again - now) };
  }

  async #look(seed: Seed, print: string, now: number, signal: AbortSignal): Promise<Looked> {
    const { name } = seed.metadata;
    try {
      const bucket = await openBucket(this.#source, seed, signal);
      await bucket.buckets.ensure(bucket.ctx);
      const gone = await purge(bucket, seed.spec.backup?.deletionGracePeriodHours ?? 0, this.#shootUIDs());
      for (const { technicalID, uid } of gone)
        this.#log.info(
          { seed: name, shoot: technicalID, uid },
          'backups of a deleted shoot are gone: their time was over',
        );
      const called = `bucket ${bucket.ctx.bucket.name}`;
      const conditions: Said<'Seed'>[] = [say(BUCKETS_READY, true, 'BucketReady', `${called} is there`)];
      conditions.push(...(await this.#drift(bucket, called)));
      return { print, conditions, again: now + LOOK_AGAIN_MS };
    } catch (error) {
      signal.throwIfAborted();
      this.#log.warn({ seed: name, err: error }, 'no bucket for backups');
      const codes = error instanceof CoppiceError ? [error.code] : [];
      const conditions = [say(BUCKETS_READY, false, 'BucketNotReady', errorText(error), codes)];
      return { print, conditions, again: now + TRY_AGAIN_MS };
    }
  }

  /** Drift does not stop backups: a bucket without versioning is better than none. */
  async #drift({ buckets, ctx }: OpenBucket, called: string): Promise<Said<'Seed'>[]> {
    try {
      const differences = await buckets.differences(ctx);
      return differences.length > 0
        ? [say(BUCKETS_DRIFTED, true, 'ChangedByOthers', changed(called, differences))]
        : [];
    } catch (error) {
      ctx.signal.throwIfAborted();
      const codes = error instanceof CoppiceError ? [error.code] : [];
      return [say(BUCKETS_DRIFTED, 'Unknown', 'NotReadable', `settings of ${called}: ${errorText(error)}`, codes)];
    }
  }
}

const changed = (bucket: string, differences: readonly string[]): string =>
  `others have changed ${bucket}: ${differences.join('; ')}. Change it back, or remove its tag coppice-backup-settings: then the operator sets all of it within the hour`;

import type { BucketSource } from '../../accounts/bucket-account.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import { type Controller, queueMetrics, runController } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { Registry } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resources.ts';
import { WorkQueue } from '../../kube/workqueue.ts';
import { BackupController, type BackupWorld } from './controller.ts';
import { backupsConcern, seedConcernsBackups } from './news.ts';
import { SeedBuckets } from './seed-bucket.ts';
import { Spool } from './take-snapshot.ts';

/** What the controllers of backups share with the others. */
export interface BackupsOptions extends Pick<BackupWorld, 'registry' | 'log' | 'record' | 'told'> {
  readonly source: BucketSource;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly log: Log;
  readonly metrics: Registry;
}

/** The controllers of backups, wired. */
export interface Backups {
  readonly backups: BackupController;
  readonly seedBuckets: SeedBuckets;
  /** To be called when all caches are complete. */
  start(): Controller;
  /** Leaves no file behind. */
  close(): Promise<void>;
}

/** Snapshots take the bandwidth of a disk and of a network, both shared by all. */
const SNAPSHOTS_AT_ONCE = 2;
const SNAPSHOT_LIMIT_MS = 60 * 60_000;
/** One that fails is tried again after this long, at the latest. */
const RETRY_MS = 10 * 60_000;

/** Makes the controllers of backups, and has changes lead to the right keys. */
export function wireBackups({ metrics, ...options }: BackupsOptions): Backups {
  const { source, shoots, seeds, log } = options;
  const queue = new WorkQueue({ observer: queueMetrics(metrics, 'backup'), maxDelayMs: RETRY_MS });
  const spool = new Spool(source.directory);
  const backups = new BackupController({ ...options, spool });
  shoots.onChange((event) => {
    if (backupsConcern(event, seeds)) queue.add(keyOf(event.object));
  });
  seeds.onChange((event) => {
    if (!seedConcernsBackups(event)) return;
    const { name } = event.object.metadata;
    for (const shoot of shoots.list()) if (shoot.status?.seedName === name) queue.add(keyOf(shoot));
  });
  return {
    backups,
    seedBuckets: new SeedBuckets(source, log, () => new Set(shoots.list().map(({ metadata }) => metadata.uid ?? ''))),
    start: () =>
      runController({
        name: 'backup',
        queue,
        concurrency: SNAPSHOTS_AT_ONCE,
        timeoutMs: SNAPSHOT_LIMIT_MS,
        log,
        metrics,
        reconcile: (key, stop) => backups.reconcile(key, stop),
      }),
    close: () => spool.close(),
  };
}

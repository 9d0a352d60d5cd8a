import type { BucketSource } from '../../accounts/bucket-account.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { BackupController } from './controller.ts';
import { backupsConcern, seedConcernsBackups } from './news.ts';
import { SeedBuckets } from './seed-bucket.ts';
import { SNAPSHOTS_AT_ONCE, Spool } from './take-snapshot.ts';

/** The wired controller of backups. */
interface Backups extends Part {
  readonly backups: BackupController;
  readonly seedBuckets: SeedBuckets;
}

const SNAPSHOT_LIMIT_MS = 60 * 60_000;
/** Longest back-off. */
const RETRY_MS = 10 * 60_000;

/** Creates the controller of backups. `accounts`: credentials for the buckets' accounts. */
export function wireBackups(core: Core, accounts: Pick<BucketSource, 'binding' | 'credentials'>): Backups {
  const { profiles, shoots, seeds, log } = core;
  const queue = core.queue('backup', { maxDelayMs: RETRY_MS });
  const source: BucketSource = {
    ...core,
    ...accounts,
    directory: core.state.directory,
    profiles: () => profiles.list(),
  };
  const spool = new Spool(source.directory);
  const backups = new BackupController({ ...core, source, spool, told: (key) => core.queues.shoots.add(key) });
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
    controllers: [
      {
        name: 'backup',
        queue,
        concurrency: SNAPSHOTS_AT_ONCE,
        timeoutMs: SNAPSHOT_LIMIT_MS,
        reconcile: (key, stop) => backups.reconcile(key, stop),
      },
    ],
    // Deletes temporary files.
    close: () => spool.close(),
  };
}

import type { HoldsOf } from '../../clusters/deletion-gate.ts';
import { keyOf } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { isHeld } from '../finalizer.ts';
import { onlyFinalizersChanged } from '../status-writer.ts';
import { reconcileSeed, type SeedDependencies } from './controller.ts';
import { NetworkTrials } from './network-trials.ts';
import { clusterOfSeed, seedHolds } from './seed-holds.ts';

/** The wired controller of seeds. */
interface Seeds extends Part {
  /** Holds of seeds on clusters. */
  readonly holds: HoldsOf;
}

/** Longest back-off of an unreachable seed: shoots wait for it. */
const RETRY_MS = 15_000;
/** Delay that groups checks of a seed's use by many shoots. */
const USERS_MS = 100;

/** Creates the controller of Seeds: reports whether a seed can host shoots, and holds used ones. */
export function wireSeeds(core: Core, others: Pick<SeedDependencies, 'seedBuckets'>): Seeds {
  const { queues, shoots, seeds } = core;
  const queue = core.queue('seed', { maxDelayMs: RETRY_MS });
  const { gardenID, log } = core;
  const networkTrials = new NetworkTrials({ gardenID, log, now: core.now, news: (name) => queue.add(name) });
  const deps: SeedDependencies = { ...core, ...others, networkTrials };
  seeds.onChange((event) => {
    const seed = event.object;
    queue.add(keyOf(seed));
    if (onlyFinalizersChanged(event)) return;
    // Requeue: the deletion gate may have changed.
    const host = clusterOfSeed(seed);
    if (host) for (const asked of [queues.clusters, queues.shoots]) asked.add(host);
  });
  /** Users of a held seed that stays do not matter: each check costs two requests to the seed. */
  const used = (name: string, comes: boolean) => {
    const seed = seeds.get(name);
    if (seed && (seed.metadata.deletionTimestamp || (comes && !isHeld(seed)))) queue.addAfter(name, USERS_MS);
  };
  shoots.onChange(({ type, object, old }) => {
    const name = object.status?.seedName;
    // A seed is held while it hosts anything.
    if (name !== undefined && (type === 'deleted' || old?.status?.seedName !== name)) used(name, type !== 'deleted');
  });
  return {
    holds: seedHolds(seeds),
    controllers: [
      {
        name: 'seed',
        queue,
        concurrency: 8,
        reconcile: (key, stop) => reconcileSeed(deps, key, stop),
        failed: failuresOf(core, seeds),
      },
    ],
  };
}

import type { Seed, SeedStatus } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import { identityOf, refuseOther, type SeedRegistry } from '../../clusters/seed-access.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, SEEDS } from '../../kube/resources.ts';
import { BUCKETS_DRIFTED, BUCKETS_READY } from '../backup/conditions.ts';
import type { SeedBuckets } from '../backup/seed-bucket.ts';
import { conditionBefore, type Said, withConditions } from '../conditions.ts';
import { hold } from '../finalizer.ts';
import { writeStatus } from '../status-writer.ts';
import type { NetworkTrials } from './network-trials.ts';
import { type SeedFound, seedConditions } from './seed-conditions.ts';

export interface SeedDependencies {
  readonly garden: KubeClient;
  readonly seeds: Informer<Seed>;
  readonly shoots: Informer<Shoot>;
  readonly registry: SeedRegistry;
  readonly seedBuckets: Pick<SeedBuckets, 'look'>;
  readonly networkTrials: Pick<NetworkTrials, 'look'>;
  /** Whether clusters may be made whose machines are pods of a seed. */
  readonly localMachines: boolean;
  now(): Date;
}

/** A seed that answers is not asked again for this long; its caches notice earlier when it goes away. */
const LOOK_AGAIN_MS = 5 * 60_000;

/** Shoots that have anything in a seed, as `namespace/name`. */
const hostedBy = (name: string, shoots: readonly Shoot[]): string[] =>
  shoots.filter(({ status, spec }) => (status?.seedName ?? spec.seedName) === name).map(keyOf);

/**
 * Keeps the connection to a seed open and says in its status whether it can host shoots. A seed in use is held: without it nobody could take its
 * control planes away. Which cluster it is, is written down at first contact.
 */
export async function reconcileSeed(
  deps: SeedDependencies,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const seed = deps.seeds.get(name);
  const hosted = seed ? hostedBy(name, deps.shoots.list()) : [];
  const deleting = seed?.metadata.deletionTimestamp !== undefined;
  if (!seed || (deleting && hosted.length === 0)) {
    await deps.registry.close(name);
    if (seed) await hold(deps, SEEDS, deps.seeds, seed, false, { signal });
    return {};
  }
  if (hosted.length > 0) await hold(deps, SEEDS, deps.seeds, seed, true, { signal });
  const found = await look(deps, seed, signal);
  const said = seedConditions(seed, found, hosted, deps.localMachines);
  const tell = (bucket: readonly (Said<'Seed'> | undefined)[]) => {
    const status: SeedStatus = {
      ...seed.status,
      conditions: withConditions<'Seed'>(seed.status?.conditions, [...said, ...bucket], deps.now()),
      ...(found.network?.triedAt && { networkTriedAt: found.network.triedAt }),
      ...(found.version && { kubernetesVersion: found.version }),
      ...(found.failure === undefined && found.identity && { clusterIdentity: found.identity }),
      observedGeneration: seed.metadata.generation,
    };
    return writeStatus(deps.garden, deps.seeds, seed, status, signal);
  };
  // A bucket that hangs for minutes must not hide whether the seed answers.
  if (seed.spec.backup)
    await tell(
      ([BUCKETS_READY, BUCKETS_DRIFTED] as const).map((type) => conditionBefore('Seed', seed.status?.conditions, type)),
    );
  const bucket = await deps.seedBuckets.look(seed, signal);
  await tell(bucket?.conditions ?? []);
  if (found.failure !== undefined) throw found.failure;
  const next = [LOOK_AGAIN_MS, bucket?.requeueAfterMs, found.network?.requeueAfterMs].filter((ms) => ms !== undefined);
  return { requeueAfterMs: Math.min(...next) };
}

/** Asks the seed which cluster it is. What fails is part of what was found: whoever reads the status is told why. */
async function look(deps: SeedDependencies, seed: Seed, signal: AbortSignal): Promise<SeedFound> {
  const found: SeedFound = {};
  try {
    const access = await deps.registry.open(seed, signal);
    found.identity = await identityOf(access.client, signal);
    // Behind the same address there may be another cluster by now.
    if (found.identity !== access.identity) await deps.registry.close(seed.metadata.name);
    refuseOther(seed, found.identity);
    await access.keepControlPlanePriority(signal);
    found.version = (await access.client.serverVersion()).gitVersion.replace(/^v/, '');
    found.unknownHost = access.addresses.unknownHost;
    if (!seed.metadata.deletionTimestamp) found.network = deps.networkTrials.look(seed, access.client, signal);
  } catch (error) {
    found.failure = error;
  }
  return found;
}

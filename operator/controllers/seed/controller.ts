import type { Seed, SeedStatus } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import { refuseOther, type SeedRegistry, seedIdentityOf } from '../../clusters/seed-access.ts';
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
  /** Whether clusters may have machines that are pods of a seed. */
  readonly localMachines: boolean;
  now(): Date;
}

/** Interval of checking a reachable seed; its caches notice a loss earlier. */
const LOOK_AGAIN_MS = 5 * 60_000;

/** Shoots with anything in a seed, as `namespace/name`. */
const hostedBy = (name: string, shoots: readonly Shoot[]): string[] =>
  shoots.filter(({ status, spec }) => (status?.seedName ?? spec.seedName) === name).map(keyOf);

/**
 * Maintains the connection to a seed, and reports whether it can host shoots. A seed in use has a finalizer: without it
 * its control planes could not be deleted. Records its identity at first contact.
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
  // A hanging bucket must not delay the report of reachability.
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

/** Reads the seed's identity. A failure is part of the result, for the status. */
async function look(deps: SeedDependencies, seed: Seed, signal: AbortSignal): Promise<SeedFound> {
  const found: SeedFound = {};
  try {
    const access = await deps.registry.open(seed, signal);
    found.identity = await seedIdentityOf(access.client, signal);
    // Another cluster may answer behind the same address.
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

import { findCondition } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import type { Condition } from '../../api/meta.ts';
import type { Seed, SeedStatus } from '../../api/seed.ts';
import type { SeedRegistry } from '../../clusters/seed-access.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { BUCKETS_DRIFTED, BUCKETS_READY } from '../backup/conditions.ts';
import type { SeedBuckets } from '../backup/seed-bucket.ts';
import { say, withConditions } from '../conditions.ts';
import { writeStatus } from '../status-writer.ts';

export interface SeedWorld {
  readonly garden: KubeClient;
  readonly seeds: Informer<Seed>;
  readonly registry: SeedRegistry;
  readonly seedBuckets: Pick<SeedBuckets, 'look'>;
  now(): Date;
}

/** A seed that answers is not asked again for this long; its caches notice earlier when it goes away. */
const LOOK_AGAIN_MS = 5 * 60_000;

/** Keeps the line to a seed open and says in its status whether it can host shoots. */
export async function reconcileSeed(
  world: SeedWorld,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const seed = world.seeds.get(name);
  if (!seed || seed.metadata.deletionTimestamp) {
    await world.registry.close(name);
    return {};
  }
  let failure: unknown;
  let version: string | undefined;
  try {
    const access = await world.registry.open(seed, signal);
    version = (await access.client.serverVersion()).gitVersion.replace(/^v/, '');
  } catch (error) {
    failure = error;
  }
  const ready = failure === undefined;
  const where = seed.spec.kubeconfigRef ? 'the seed' : 'the garden, which is the seed';
  const condition = ready
    ? say('Ready', true, 'SeedReady', `${where} answers and can host control planes`)
    : failure instanceof CoppiceError
      ? say('Ready', false, 'NotUsable', errorText(failure), [failure.code])
      : say(
          'Ready',
          false,
          'NotReachable',
          `${where} does not answer: ${errorText(failure)}. Check its kubeconfig and that it runs`,
          ['ERR_RETRYABLE_INFRA_DEPENDENCIES'],
        );
  const tell = (bucket: readonly (Omit<Condition, 'lastTransitionTime'> | undefined)[]) => {
    const status: SeedStatus = {
      ...seed.status,
      conditions: withConditions(seed.status?.conditions, [condition, ...bucket], world.now()),
      ...(version && { kubernetesVersion: version }),
      observedGeneration: seed.metadata.generation,
    };
    return writeStatus(world.garden, world.seeds, seed, status, signal);
  };
  // A bucket that hangs for minutes must not hide whether the seed answers.
  if (seed.spec.backup)
    await tell([BUCKETS_READY, BUCKETS_DRIFTED].map((type) => findCondition(seed.status?.conditions, type)));
  const bucket = await world.seedBuckets.look(seed, signal);
  await tell(bucket?.conditions ?? []);
  if (!ready) throw failure;
  return { requeueAfterMs: Math.min(LOOK_AGAIN_MS, bucket?.requeueAfterMs ?? LOOK_AGAIN_MS) };
}

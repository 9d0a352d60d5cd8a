import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { Hub } from '../../api/hub.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Waking, WarmCluster, WokenCluster } from '../../burst/clusters/model.ts';
import { clusterOfferOf, type OfferInputs } from '../../burst/clusters/offer.ts';
import { clusterNameOf, purchaseHasEnded, rejoinedAt, type WakePurchase } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, wakesIn } from '../../burst/clusters/receipt.ts';
import { letSleep } from '../../burst/clusters/receipt-decisions.ts';
import { measuredWakeMs, type WakeNow, withWakeFacts, wokenCluster } from '../../burst/clusters/receipt-facts.ts';
import { restingOf } from '../../burst/clusters/rests.ts';
import { forgetPurchase } from '../../burst/clusters/spend.ts';
import { priceOf } from '../../cost/price.ts';
import { askedSize } from '../../cost/size.ts';
import { keyOf } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { whereItIs } from '../where-it-is.ts';
import { placedBy } from './arrival.ts';
import type { HubWork } from './hub-work.ts';
import type { BurstMemory } from './memory.ts';
import { orderedBy } from './order-sleep.ts';
import { areAwaited, clusterByUid } from './own-clusters.ts';
import { awakeSupply } from './supply.ts';
import type { BurstSight, BurstWorld } from './world.ts';

type Entry = NonNullable<BurstPolicy['spec']['wake']>[number];

/** Most woken clusters of others per policy. */
const MOST_WOKEN = 100;

/** Clusters of others that sleep by their own spec and that the policy may wake. */
export function sleepersOf(
  world: BurstSight,
  { hub, policy, receipt, now }: { hub: Hub; policy: BurstPolicy; receipt: BurstReceipt; now: number },
): WarmCluster[] {
  const { wake = [] } = policy.spec;
  const { namespace = '' } = policy.metadata;
  if (wake.length === 0 || wakesIn(receipt).length >= MOST_WOKEN) return [];
  const known = new Set(wakesIn(receipt).map(({ cluster }) => cluster));
  return world.clusters.byIndex(BY_NAMESPACE, namespace).flatMap((cluster): WarmCluster[] => {
    const key = keyOf(cluster);
    const entry = wake.find(({ clusterSelector }) => matchesLabels(cluster.metadata.labels ?? {}, clusterSelector));
    if (!entry || known.has(key) || !world.sleepsBySpec(hub, cluster)) return [];
    const startupMs = measuredWakeMs(receipt, entry.name);
    const { problem: rests, unused } = restingOf(receipt, key, undefined, startupMs, now);
    if (rests !== undefined) return [];
    const waking = wakingOf(world, hub, policy, entry, cluster);
    if (!waking) return [];
    const { name } = cluster.metadata;
    const its = awakeSupply(world, hub, cluster, now);
    return [{ name, candidate: entry.name, entry: entry.name, ...its, unused, waking: { ...waking, startupMs } }];
  });
}

/** Extra cost of being awake; undefined: unknown. */
function wakingOf(world: BurstSight, hub: Hub, policy: BurstPolicy, entry: Entry, written: WorkerCluster) {
  const there = whereItIs(written, world.profiles);
  if (!there) return undefined;
  const { cluster, profile } = there;
  const { currency } = policy.spec.budget;
  const member = world.member(hub, cluster);
  const { reserve } = world.keeps(hub, cluster, profile);
  return wakingAs({ cluster, profile, member, reserve, currency, assumedHourly: entry.assumedHourly });
}

/** Extra cost of a foreign cluster when awake, with its billing; undefined: unknown. Pure. */
function wakingAs(inputs: OfferInputs): Omit<Waking, 'startupMs'> | undefined {
  const { cluster, profile, currency } = inputs;
  const price = clusterOfferOf(inputs).price(new Map());
  if (typeof price === 'string') return undefined;
  const asleep = priceOf({ ...askedSize(cluster, profile, []), pools: [] }, profile);
  const fee = asleep.currency === currency ? (asleep.hourly ?? 0n) : 0n;
  const less = (amount: bigint) => (amount > fee ? amount - fee : 0n);
  return {
    hourly: less(price.hourly),
    most: less(price.most),
    counted: 0n,
    // Its owner pays for the control plane.
    billing: price.billing && { ...price.billing, fee: 0n },
  };
}

/** The receipt after observing woken clusters of others. */
export function withWoken(
  world: BurstSight,
  memory: BurstMemory,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  work: readonly HubWork[],
  now: number,
): BurstReceipt {
  return withWakeFacts(receipt, (wake) => wakeNow(world, memory, policy, wake, work, now), now);
}

function wakeNow(
  world: BurstSight,
  memory: BurstMemory,
  policy: BurstPolicy,
  wake: WakePurchase,
  work: readonly HubWork[],
  now: number,
): WakeNow | 'gone' {
  const cluster = clusterByUid(world, wake);
  if (!cluster) return 'gone';
  const { isJoined: hasJoined, isWorkless, wanted = 0 } = world.sight(policy, cluster);
  const isIdle = hasJoined ? isWorkless : undefined;
  idleSinceOf(world, memory, policy, wake, cluster, now);
  const joinedAt = rejoinedAt(wake);
  const joined = Date.parse(joinedAt ?? '');
  const waits = work.find(({ source, since }) => wake.sources.includes(source) && since < joined)?.source;
  const placed = placedBy(joinedAt, wanted, world.readyNodes(cluster), world.failure(cluster));
  return { hasJoined, isIdle, waits, placedBy: placed, ownerSays: ownerSays(policy, cluster, wake) };
}

/** Why a policy no longer controls the cluster. */
function ownerSays({ spec }: BurstPolicy, { status }: WorkerCluster, { at, entry }: WakePurchase): string | undefined {
  const { enabledAt, asleep, order } = status?.hibernation ?? {};
  if (!spec.wake?.some(({ name }) => name === entry))
    return 'the entry of the policy by which it was woken was removed';
  if (enabledAt !== undefined && Date.parse(enabledAt) > Date.parse(at) && !order)
    return `somebody has said since then that it is to ${asleep ? 'sleep' : 'be awake'}`;
  return order?.otherwise === false ? 'its own spec keeps it awake now' : undefined;
}

/** Woken clusters of others that a policy has not released. */
export function wokenBy(
  world: BurstSight,
  memory: BurstMemory,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
): WokenCluster[] {
  return wakesIn(receipt).flatMap((wake): WokenCluster[] => {
    const cluster = clusterByUid(world, wake);
    if (!cluster || purchaseHasEnded(wake)) return [];
    const hasJoined = rejoinedAt(wake) !== undefined;
    const { isWorkless } = world.sight(policy, cluster);
    const idleSince = hasJoined ? idleSinceOf(world, memory, policy, wake, cluster, now) : undefined;
    const failure = hasJoined ? undefined : world.failure(cluster);
    const isComing = !hasJoined && isWorkless !== false;
    const unneededSince = memory.idle(wakingKey(policy, wake), isComing, now);
    return [{ ...wokenCluster(wake, idleSince, isWorkless === false, failure), unneededSince }];
  });
}

/** Since when nothing runs on a woken cluster and nothing is expected; undefined: not in its hub, or unknown. */
function idleSinceOf(
  world: BurstSight,
  memory: BurstMemory,
  policy: BurstPolicy,
  wake: WakePurchase,
  cluster: WorkerCluster,
  now: number,
): number | undefined {
  const { isJoined, isWorkless } = world.sight(policy, cluster);
  const isIdle = isJoined && isWorkless && !areAwaited(world, memory, policy, cluster, now);
  return memory.idle(wakeKey(policy, wake), isIdle, now);
}

/** Key for the idle time of a woken cluster. */
export const wakeKey = ({ metadata }: BurstPolicy, { uid, at }: Pick<WakePurchase, 'uid' | 'at'>): string =>
  `${metadata.uid}/${uid}/${at}`;

/** Key for the time without waiting work of a waking cluster. */
export const wakingKey = (policy: BurstPolicy, wake: Pick<WakePurchase, 'uid' | 'at'>): string =>
  `${wakeKey(policy, wake)}/coming`;

/**
 * Orders recorded clusters of others to be awake, and withdraws orders of released ones. Idempotent. @returns the
 * receipt without released ones
 */
export async function orderAwake(
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<BurstReceipt> {
  const by = orderedBy(policy);
  let next = receipt;
  for (const wake of wakesIn(receipt)) {
    const cluster = clusterByUid(world, wake);
    const known = cluster ? world.sleepOrder(wake.cluster, wake.uid) : 'none';
    if (known === 'unknown') continue;
    const isOurs = known !== 'none' && known.by === by;
    if (cluster && !purchaseHasEnded(wake) && known === 'none') {
      const why = `work of ${wake.sources[0] ?? 'its hub'} has no place`;
      await world.orderSleep(wake.cluster, wake.uid, { asleep: false, by, why, at: wake.at }, signal);
      world.recordEvent(cluster, 'Normal', 'Woken', `${by} wakes it: ${why}`);
    }
    if (!purchaseHasEnded(wake)) continue;
    if (cluster && isOurs) {
      await world.orderSleep(wake.cluster, wake.uid, undefined, signal);
      world.recordEvent(
        cluster,
        'Normal',
        'LetSleep',
        `${by} no longer keeps it awake: it sleeps again as its own spec says`,
      );
    }
    next = forgetPurchase(next, wake, now);
  }
  return next;
}

/** Lets all woken clusters sleep again. */
export function letAllSleep(receipt: BurstReceipt, now: number): BurstReceipt {
  return wakesIn(receipt).reduce(
    (next, { cluster }) =>
      letSleep(next, { name: clusterNameOf(cluster), why: 'the policy is deleted', isFailure: false }, now),
    receipt,
  );
}

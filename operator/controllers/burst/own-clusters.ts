import type { BurstCandidate, BurstPolicy } from '../../api/burstpolicy.ts';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../api/group.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { withNodes } from '../../burst/clusters/offer.ts';
import {
  billingOfPurchase,
  boughtNodes,
  type ClusterPurchase,
  clusterWaitOf,
  emptyingSinceOf,
  isLeaving,
  isWaking,
  joinedAtOf,
  joinedPhase,
  mustSleep,
  type NodesPurchase,
  nodesOfPurchase,
  type WakePurchase,
} from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn } from '../../burst/clusters/receipt.ts';
import { parseMoney } from '../../cost/money.ts';
import { placedBy } from './arrival.ts';
import type { BurstMemory } from './memory.ts';
import { cutSeen, orderedNodes } from './ordered-nodes.ts';
import type { PurchaseSeen, Sight } from './seen.ts';
import type { BurstSight } from './world.ts';

/** WorkerCluster of a purchase. */
export const manifestOf = (
  { metadata }: BurstPolicy,
  { name: candidate, template }: Pick<BurstCandidate, 'name' | 'template'>,
  {
    name,
    number,
    nodes,
    granted,
    phase,
  }: Pick<ClusterPurchase, 'name' | 'number'> & Partial<Pick<ClusterPurchase, 'phase'>> & Sized,
): WorkerCluster => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: {
    name,
    namespace: metadata.namespace ?? '',
    labels: {
      ...template.metadata?.labels,
      [LABELS.burst]: 'true',
      [LABELS.burstPolicy]: metadata.name,
      [LABELS.burstCandidate]: candidate,
      [LABELS.burstPurchase]: String(number),
      ...(phase && clusterWaitOf({ phase }) && { [LABELS.burstWarm]: 'true' }),
    },
    ownerReferences: [
      {
        apiVersion: ALPHA_API_VERSION,
        kind: 'BurstPolicy',
        name: metadata.name,
        uid: metadata.uid ?? '',
        controller: false,
        blockOwnerDeletion: false,
      },
    ],
  },
  spec: withNodes(template.spec, nodes, granted),
});

/** Initial nodes of a cluster by pool, and its grants. */
export interface Sized {
  readonly nodes: Readonly<Record<string, number>>;
  /** Absent: the template's maximums. */
  readonly granted?: Readonly<Record<string, { readonly nodes: number }>>;
}

/**
 * Whether a cluster was made for this purchase and still belongs to the policy; the name alone proves nothing. Removing
 * owner or label makes it somebody else's.
 */
export const isOwnedBy = (
  { metadata }: WorkerCluster,
  policy: BurstPolicy,
  { number, uid }: ClusterPurchase,
): boolean =>
  metadata.labels?.[LABELS.burstPolicy] === policy.metadata.name &&
  metadata.labels[LABELS.burstPurchase] === String(number) &&
  (uid === undefined || uid === metadata.uid) &&
  (metadata.ownerReferences?.some((owner) => owner.kind === 'BurstPolicy' && owner.uid === policy.metadata.uid) ??
    false);

/** Purchases of a policy that are not returned, with their cached clusters. Pure. */
export const keptClusters = (
  clusters: { get(key: string): WorkerCluster | undefined },
  policy: BurstPolicy,
  receipt: Pick<BurstReceipt, 'purchases'>,
): { readonly purchase: ClusterPurchase; readonly cluster: WorkerCluster }[] =>
  clustersIn(receipt).flatMap((purchase) => {
    const cluster = clusters.get(`${policy.metadata.namespace}/${purchase.name}`);
    return cluster && !isLeaving(purchase) && isOwnedBy(cluster, policy, purchase) ? [{ purchase, cluster }] : [];
  });

/** Cluster of added nodes or of a wake-up; undefined: gone, or another one of its name. */
export function clusterByUid(
  world: Pick<BurstSight, 'clusters'>,
  { cluster: key, uid }: Pick<NodesPurchase | WakePurchase, 'cluster' | 'uid'>,
): WorkerCluster | undefined {
  const cluster = world.clusters.get(key);
  return cluster?.metadata.uid === uid && !cluster?.metadata.deletionTimestamp ? cluster : undefined;
}

/** Key for the idle time of a cluster. */
export const idleKey = ({ metadata }: BurstPolicy, number: number): string => `${metadata.uid}/${number}`;

/** Key for the time without waiting work of an ordered cluster. */
export const comingKey = (policy: BurstPolicy, number: number): string => `${idleKey(policy, number)}/coming`;

/** Key for the time with little work. */
export const underusedKey = (policy: BurstPolicy, number: number): string => `${idleKey(policy, number)}/underused`;

/** Whether a policy consolidates underused clusters. */
export const emptiesUnderused = ({ spec }: BurstPolicy): boolean =>
  spec.scaleIn?.consolidationPolicy === 'WhenEmptyOrUnderutilized';

/** Whether this utilization in percent counts as little work. */
export const hasLittleWork = (policy: BurstPolicy, used: number): boolean => used < thresholdOf(policy);

/** Utilization in percent below which a cluster has little work. */
export const thresholdOf = ({ spec }: BurstPolicy): number => spec.scaleIn?.utilizationThreshold ?? USUAL_THRESHOLD;

/** Default threshold; same as Cluster Autoscaler's scale-down-utilization-threshold. */
const USUAL_THRESHOLD = 50;

/** A purchase with its observed cluster. */
export function seenOf(
  world: BurstSight,
  memory: BurstMemory,
  policy: BurstPolicy,
  purchase: ClusterPurchase,
  now: number,
): PurchaseSeen {
  const live = world.clusters.get(`${policy.metadata.namespace}/${purchase.name}`);
  const cluster = live && isOwnedBy(live, policy, purchase) ? live : undefined;
  if (!cluster) return seenAs(memory, policy, purchase, NOT_THERE, now);
  const failure = world.failure(cluster);
  const its = world.sight(policy, cluster);
  const isAwaited = its.isJoined && areAwaited(world, memory, policy, cluster, now);
  const sight = { ...its, cluster, failure, isAwaited };
  const placed = placedBy(joinedAtOf(purchase), boughtNodes(purchase), world.readyNodes(cluster), failure);
  const seen = seenAs(memory, policy, purchase, sight, now);
  return { ...seen, placedBy: placed, cut: cutSeen(world, policy, purchase, cluster) };
}

const NOT_THERE: Sight = {
  cluster: undefined,
  isJoined: false,
  isReady: false,
  isWorkless: undefined,
  isUnderused: undefined,
  wanted: undefined,
  failure: undefined,
};

/** A purchase for the planner. */
function seenAs(
  memory: BurstMemory,
  policy: BurstPolicy,
  purchase: ClusterPurchase,
  sight: Sight,
  now: number,
): PurchaseSeen {
  const { name, candidate, at, most, uid, wokenAt } = purchase;
  const { cluster, isJoined, isWorkless, isAwaited = false } = sight;
  const isIdle = isJoined ? isWorkless : undefined;
  // A cluster that left its hub costs the same and gets no work.
  const hasBeenIn = isJoined || joinedPhase(purchase) !== undefined;
  const idleSince = memory.idle(idleKey(policy, purchase.number), hasBeenIn && isWorkless && !isAwaited, now);
  const isComing = !isJoined && cluster?.metadata.deletionTimestamp === undefined && isWorkless !== false;
  const unneededSince = memory.idle(comingKey(policy, purchase.number), isComing, now);
  const isUnder = isJoined && !isAwaited ? sight.isUnderused : undefined;
  const underusedSince = memory.idle(underusedKey(policy, purchase.number), isUnder, now);
  const goes = isLeaving(purchase) || cluster?.metadata.deletionTimestamp !== undefined;
  const toSleep = mustSleep(purchase);
  const wait = clusterWaitOf(purchase);
  const isWarm = wait !== undefined && cluster !== undefined && (toSleep || sight.isReady);
  const wakes = isWaking(purchase) && !isJoined;
  const hasBeenReady = (joinedAtOf(purchase) ?? purchase.readyAt) !== undefined;
  const hasJoined = !wakes && (isJoined || hasBeenReady || isWarm);
  const coming = wakes ? 'Waking' : cluster || uid ? 'Making' : 'Ordered';
  const phase = goes ? 'Leaving' : hasJoined ? 'Joined' : coming;
  const order = cluster && phase === 'Making' ? orderedNodes(policy, purchase, cluster) : undefined;
  // A sleeping cluster counts with its cost asleep: waking must be affordable then.
  const counted = toSleep ? [purchase.rate] : [most, purchase.rate];
  const [joined, emptyingSince] = [joinedPhase(purchase), emptyingSinceOf(purchase)];
  const own = {
    key: `${policy.metadata.namespace}/${name}`,
    name,
    candidate,
    at: Date.parse(wokenAt ?? at),
    phase,
    idleSince,
    unneededSince,
    underusedSince,
    order: order && { ...order, lessNeeded: memory.lessNeeded(comingKey(policy, purchase.number)) },
    emptyingSince: emptyingSince === undefined ? undefined : Date.parse(emptyingSince),
    leftAloneUntil: joined?.leftAlone && Date.parse(joined.leftAlone.until),
    hourly: counted.map((amount) => parseMoney(amount)).reduce((a, b) => (a > b ? a : b)),
    nodes: nodesOfPurchase(purchase, sight.wanted),
    billing: billingOfPurchase(purchase),
    failure: hasJoined ? undefined : sight.failure,
    hasWork: isWorkless === false,
    warm: wait && true,
    sleeps: wait === 'asleep' ? true : undefined,
    revision: purchase.revision,
  } as const;
  return { purchase, cluster, own, hasJoined: isJoined, isIdle, isWarm };
}

/** Whether a policy's hub has placed work on a member whose pods were not seen yet. */
export function areAwaited(
  world: Pick<BurstSight, 'nameIn' | 'workOn'>,
  memory: BurstMemory,
  { spec: { hub } }: BurstPolicy,
  cluster: WorkerCluster,
  now: number,
): boolean {
  const { namespace = '' } = cluster.metadata;
  const member = { name: world.nameIn(hub, cluster), namespace };
  return memory.placements.areAwaited(hub, member, () => world.workOn(hub, cluster), now);
}

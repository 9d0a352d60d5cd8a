import type { BurstCandidate, BurstPolicy } from '../../api/burstpolicy.ts';
import { isTrue } from '../../api/conditions.ts';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../api/group.ts';
import type { Membership } from '../../api/membership.ts';
import { membershipName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import {
  type BurstReceipt,
  billingOfPurchase,
  boughtNodes,
  type KeptPurchase,
  nodesOfPurchase,
} from '../../burst/clusters/kept.ts';
import type { OwnCluster } from '../../burst/clusters/model.ts';
import { withNodes } from '../../burst/clusters/offer.ts';
import { isToSleep, isWaking } from '../../burst/clusters/sleep-receipt.ts';
import { parseMoney } from '../../cost/money.ts';
import { conditionIsTrue, type Node } from '../../kube/resources.ts';
import { isAsleep } from '../membership/member.ts';
import { isWork, type SystemNamespaces } from '../membership/members-work.ts';
import { failureOf, placedBy } from './arrival.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { BurstMemory } from './memory.ts';
import { utilization } from './utilization.ts';

/** The WorkerCluster of a purchase, as it is made. */
export const manifestOf = (
  { metadata }: BurstPolicy,
  { name: candidate, template }: Pick<BurstCandidate, 'name' | 'template'>,
  { name, number, nodes, warm }: Pick<KeptPurchase, 'name' | 'number' | 'nodes' | 'warm'>,
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
      ...(warm && { [LABELS.burstWarm]: 'true' }),
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
  spec: withNodes(template.spec, nodes),
});

/**
 * Whether a cluster was made for this purchase and still belongs to the policy: by its name alone none does. One from which somebody took the
 * owner or the label away is theirs from then on.
 */
export const isOf = ({ metadata }: WorkerCluster, policy: BurstPolicy, { number, uid }: KeptPurchase): boolean =>
  metadata.labels?.[LABELS.burstPolicy] === policy.metadata.name &&
  metadata.labels[LABELS.burstPurchase] === String(number) &&
  (uid === undefined || uid === metadata.uid) &&
  (metadata.ownerReferences?.some((owner) => owner.kind === 'BurstPolicy' && owner.uid === policy.metadata.uid) ??
    false);

/** What a policy keeps, as far as the cache has it: purchases that are not given back, and their clusters. Pure. */
export const keptClusters = (
  clusters: { get(key: string): WorkerCluster | undefined },
  policy: BurstPolicy,
  { purchases }: Pick<BurstReceipt, 'purchases'>,
): { readonly purchase: KeptPurchase; readonly cluster: WorkerCluster }[] =>
  purchases.flatMap((purchase) => {
    const cluster = clusters.get(`${policy.metadata.namespace}/${purchase.name}`);
    return cluster && !purchase.leaving && isOf(cluster, policy, purchase) ? [{ purchase, cluster }] : [];
  });

/** A purchase with what there is of it. */
export interface Seen {
  readonly purchase: KeptPurchase;
  /** undefined: it is not there (yet). */
  readonly cluster: WorkerCluster | undefined;
  readonly own: OwnCluster;
  readonly hasJoined: boolean;
  /** It waits, and could take work at once, or when it is woken. Absent: it does not. */
  readonly isWarm?: boolean;
  /** undefined: nobody can tell. */
  readonly isIdle: boolean | undefined;
  /** When its hub has placed work there that it was bought for, or never will, milliseconds since the epoch. Absent: it has not joined. */
  readonly placedBy?: number | undefined;
}

/** By what it is remembered since when a cluster has no work. */
export const idleKey = ({ metadata }: BurstPolicy, number: number): string => `${metadata.uid}/${number}`;

/** By what it is remembered since when it has little work. */
export const underusedKey = (policy: BurstPolicy, number: number): string => `${idleKey(policy, number)}/underused`;

/** Whether a policy gives back clusters that have little work. */
export const emptiesUnderused = ({ spec }: BurstPolicy): boolean =>
  spec.scaleIn?.consolidationPolicy === 'WhenEmptyOrUnderutilized';

/** Whether a cluster whose pods request so many percent of it has little work. */
export const hasLittleWork = (policy: BurstPolicy, used: number): boolean => used < thresholdOf(policy);

/** Below so many percent a cluster of the policy has little work. */
export const thresholdOf = ({ spec }: BurstPolicy): number => spec.scaleIn?.utilizationThreshold ?? USUAL_THRESHOLD;

/** Where a policy does not say it. As Cluster Autoscaler (scale-down-utilization-threshold). */
const USUAL_THRESHOLD = 50;

/** How a cluster that was bought is, for whoever looks at it: a garden, or a rehearsal. */
export interface Sight {
  /** undefined: it is not there (yet). */
  readonly cluster: WorkerCluster | undefined;
  /** Whether it takes work of its hub. */
  readonly isJoined: boolean;
  /** Whether all is done that a join does before the hub opens it. */
  readonly isReady: boolean;
  /** Whether no work runs there; undefined: nobody can tell. */
  readonly isWorkless: boolean | undefined;
  /** Whether its hub has placed work there whose pods were not seen yet. Absent: it has not. */
  readonly isAwaited?: boolean;
  /** Whether it has little work; undefined: nobody can tell, or its policy does not ask. */
  readonly isUnderused: boolean | undefined;
  /** Why it will not come, as far as it says so. */
  readonly failure: string | undefined;
}

/** What there is of a purchase now. */
export function seenOf(
  deps: BurstDependencies,
  memory: BurstMemory,
  policy: BurstPolicy,
  purchase: KeptPurchase,
  now: number,
): Seen {
  const { name } = purchase;
  const key = `${policy.metadata.namespace}/${name}`;
  const live = deps.clusters.get(key);
  const cluster = live && isOf(live, policy, purchase) ? live : undefined;
  const membership = deps.memberships.get(`${policy.metadata.namespace}/${membershipName(name, policy.spec.hub)}`);
  const isJoined = cluster !== undefined && !isAsleep(cluster) && membership?.status?.state === 'Joined';
  const sight: Sight = {
    cluster,
    isJoined,
    isReady: isReady(membership),
    isWorkless: cluster ? isWithoutWork(deps, policy, key) : undefined,
    isAwaited: isJoined && areAwaited(deps, memory, policy, membership, now),
    isUnderused: isJoined ? isUnderused(deps, policy, key) : undefined,
    failure: cluster && failureOf(cluster),
  };
  const { joinedAt } = purchase;
  const placed = cluster && placedBy(joinedAt, boughtNodes(purchase), cluster, readyNodes(deps, key));
  return { ...seenAs(memory, policy, purchase, sight, now), placedBy: placed };
}

/** Nodes of a cluster that are Ready; none where it does not answer. */
export const readyNodes = ({ openClusters }: Pick<BurstDependencies, 'openClusters'>, key: string): Node[] =>
  (openClusters.get(key)?.nodes.list() ?? []).filter((node) => conditionIsTrue(node, 'Ready'));

/** A purchase as the planner takes it. */
export function seenAs(
  memory: BurstMemory,
  policy: BurstPolicy,
  purchase: KeptPurchase,
  sight: Sight,
  now: number,
): Seen {
  const { name, candidate, at, most, uid, wokenAt } = purchase;
  const { cluster, isJoined, isWorkless, isAwaited = false } = sight;
  const isIdle = isJoined ? isWorkless : undefined;
  const idleSince = memory.idle(idleKey(policy, purchase.number), isIdle && !isAwaited, now);
  const isUnder = isJoined && !isAwaited ? sight.isUnderused : undefined;
  const underusedSince = memory.idle(underusedKey(policy, purchase.number), isUnder, now);
  const isLeaving = purchase.leaving || cluster?.metadata.deletionTimestamp !== undefined;
  const toSleep = isToSleep(purchase);
  const isWarm = purchase.warm === true && cluster !== undefined && (toSleep || sight.isReady);
  const wakes = isWaking(purchase) && !isJoined;
  const hasJoined = !wakes && (isJoined || purchase.joinedAt !== undefined || purchase.warmAt !== undefined || isWarm);
  const coming = wakes ? 'Waking' : cluster || uid ? 'Making' : 'Ordered';
  const phase = isLeaving ? 'Leaving' : hasJoined ? 'Joined' : coming;
  // One that sleeps counts for what it costs so: to wake it has to be affordable then.
  const counted = toSleep ? [purchase.rate] : [most, purchase.rate];
  const own = {
    key: `${policy.metadata.namespace}/${name}`,
    name,
    candidate,
    at: Date.parse(wokenAt ?? at),
    phase,
    idleSince,
    underusedSince,
    emptyingSince: purchase.emptyingSince === undefined ? undefined : Date.parse(purchase.emptyingSince),
    leftAloneUntil: purchase.leftAlone && Date.parse(purchase.leftAlone.until),
    hourly: counted.map((amount) => parseMoney(amount)).reduce((a, b) => (a > b ? a : b)),
    nodes: nodesOfPurchase(purchase, cluster?.status?.nodes?.desired),
    billing: billingOfPurchase(purchase),
    failure: hasJoined ? undefined : sight.failure,
    hasWork: isWorkless === false,
    warm: purchase.warm,
    sleeps: purchase.sleeps,
    revision: purchase.revision,
  } as const;
  return { purchase, cluster, own, hasJoined: isJoined, isIdle, isWarm };
}

/** Whether all is done that a join does before it opens a cluster. */
const isReady = (membership: Membership | undefined): boolean =>
  membership?.status?.state === 'Joining' && isTrue(membership.status.conditions, 'Warm');

/** Whether no work runs there. @returns undefined where nobody can tell: the cluster does not answer. */
export function isWithoutWork(deps: BurstDependencies, policy: BurstPolicy, key: string): boolean | undefined {
  const open = deps.openClusters.get(key);
  const hub = hubOf(deps, policy);
  return open && !open.pods.list().some((pod) => isWork(hub, pod));
}

/** Whether the hub of a policy has placed work on a member whose pods were not seen there yet. */
export function areAwaited(
  deps: BurstDependencies,
  memory: BurstMemory,
  policy: BurstPolicy,
  { metadata: { namespace = '' }, spec: { cluster }, status }: Membership,
  now: number,
): boolean {
  const hub = hubOf(deps, policy);
  const work = () =>
    deps.openClusters
      .get(`${namespace}/${cluster}`)
      ?.pods.list()
      .filter((pod) => isWork(hub, pod));
  const member = { name: status?.memberName ?? cluster, namespace };
  return memory.placements.areAwaited(policy.spec.hub, member, work, now);
}

const hubOf = ({ hubs }: BurstDependencies, { spec }: BurstPolicy): SystemNamespaces => hubs.get(spec.hub)?.spec ?? {};

/** @returns undefined where nobody can tell, or the policy does not ask */
function isUnderused(deps: BurstDependencies, policy: BurstPolicy, key: string): boolean | undefined {
  const open = emptiesUnderused(policy) ? deps.openClusters.get(key) : undefined;
  if (!open) return undefined;
  const hub = hubOf(deps, policy);
  const work = open.pods.list().filter((pod) => isWork(hub, pod));
  const used = utilization(open.nodes.list(), work);
  return used === undefined ? undefined : hasLittleWork(policy, used);
}

import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, isTrue } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { membershipName } from '../../api/names.ts';
import { readBytes, readCount, readCpu } from '../../api/quantity.ts';
import { isAttached, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { HubMember, Movable, Supply } from '../../burst/clusters/model.ts';
import { movableWork } from '../../burst/clusters/movable.ts';
import type { NodesPurchase } from '../../burst/clusters/purchases.ts';
import type { PoolNow } from '../../burst/clusters/receipt-facts.ts';
import { pendingDemand } from '../../burst/demand.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { fitNode } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { MANAGED_RESERVES, type Reserve } from '../../burst/fit/reserve.ts';
import { desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import {
  conditionIsTrue,
  type KubeObject,
  keyOf,
  type Node,
  PDBS,
  type Pod,
  PVCS,
  SERVICES,
} from '../../kube/resources.ts';
import { byNode, byPool, isThere } from '../autoscaling/nodes-seen.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import { isAsleep, nodeSizesOf } from '../membership/member.ts';
import { labelsOf, zonesOf } from '../membership/member-labels.ts';
import { isWork, type SystemNamespaces } from '../membership/members-work.ts';
import { ownWork } from '../membership/own-work.ts';
import { readerOf } from '../membership/two-sides.ts';
import { alikeTo } from './alike.ts';
import { countedTemplate, uncountedBy } from './counted.ts';
import type { BurstSightDependencies } from './dependencies.ts';
import { wordsOf } from './hub-work.ts';
import { clusterByUid, emptiesUnderused, hasLittleWork } from './own-clusters.ts';
import { poolsSeen } from './pools.ts';
import type { EmptyingSight, PoolNamed, PoolSeen, Sight } from './seen.ts';
import { whereItComes } from './where-it-comes.ts';

/**
 * Utilization of a cluster's Ready nodes by these pods in percent, rounded down: the highest of cpu, memory and GPUs.
 * undefined: no Ready node. Pure.
 */
function utilization(nodes: readonly Node[], pods: readonly Pod[]): number | undefined {
  const ready = nodes.filter((node) => conditionIsTrue(node, 'Ready'));
  const { total = {}, available = {} } = clusterResource(ready, pods);
  const shares = [
    [readCpu(total.cpu ?? '0'), readCpu(available.cpu ?? '0')],
    [readBytes(total.memory ?? '0'), readBytes(available.memory ?? '0')],
    [readCount(total.gpu ?? '0'), readCount(available.gpu ?? '0')],
  ].flatMap(([all = 0, free = 0]) => (all > 0 ? [Math.floor((100 * (all - free)) / all)] : []));
  return ready.length > 0 && shares.length > 0 ? Math.max(...shares) : undefined;
}

/** Most pending pods per cluster. */
const MOST_PENDING = 500;

/** Membership of a cluster in a hub. */
const membershipOf = (
  { memberships }: Pick<BurstSightDependencies, 'memberships'>,
  hub: Hub | string,
  { metadata: { namespace, name } }: WorkerCluster,
): Membership | undefined =>
  memberships.get(`${namespace}/${membershipName(name, typeof hub === 'string' ? hub : hub.metadata.name)}`);

/** Clusters on which a hub may have placed work: members that are not leaving. */
export const membersOf = (deps: BurstSightDependencies, hub: Hub): WorkerCluster[] =>
  deps.memberships.byIndex(BY_HUB, hub.metadata.name).flatMap((membership) => {
    const { metadata, status } = membership;
    const cluster = deps.clusters.get(clusterOf(membership));
    const isIn = status?.state === 'Joined' && !metadata.deletionTimestamp;
    return isIn && cluster && !cluster.metadata.deletionTimestamp ? [cluster] : [];
  });

/** Name of a cluster in a hub. */
export const nameIn = (
  deps: Pick<BurstSightDependencies, 'memberships'>,
  hub: string,
  cluster: WorkerCluster,
): string => membershipOf(deps, hub, cluster)?.status?.memberName ?? cluster.metadata.name;

/** Work pods on a cluster of this hub; undefined: it does not answer. */
export function workOn(
  deps: Pick<BurstSightDependencies, 'hubs' | 'openClusters'>,
  hub: string,
  cluster: WorkerCluster,
): Pod[] | undefined {
  const its: SystemNamespaces = deps.hubs.get(hub)?.spec ?? {};
  const open = deps.openClusters.get(keyOf(cluster));
  return open?.pods.list().filter((pod) => isWork(its, pod));
}

/** State of a cluster in a policy's hub, and its load. */
export function sightOf(
  deps: BurstSightDependencies,
  policy: BurstPolicy,
  cluster: WorkerCluster,
): Omit<Sight, 'cluster' | 'failure' | 'isAwaited'> {
  const membership = membershipOf(deps, policy.spec.hub, cluster);
  const isJoined = !isAsleep(cluster) && membership?.status?.state === 'Joined';
  const hub: SystemNamespaces = deps.hubs.get(policy.spec.hub)?.spec ?? {};
  const open = deps.openClusters.get(keyOf(cluster));
  return {
    isJoined,
    // The join is complete except for opening.
    isReady: membership?.status?.state === 'Joining' && isTrue(membership.status.conditions, 'Warm'),
    isWorkless: open && !open.pods.list().some((pod) => isWork(hub, pod)),
    isUnderused: isJoined ? isUnderused(deps, hub, policy, keyOf(cluster)) : undefined,
    wanted: cluster.status?.nodes?.desired,
  };
}

/** @returns undefined when unknown, or when the policy does not consolidate */
function isUnderused(
  deps: BurstSightDependencies,
  hub: SystemNamespaces,
  policy: BurstPolicy,
  key: string,
): boolean | undefined {
  const open = emptiesUnderused(policy) ? deps.openClusters.get(key) : undefined;
  if (!open) return undefined;
  const work = open.pods.list().filter((pod) => isWork(hub, pod));
  const used = utilization(open.nodes.list(), work);
  return used === undefined ? undefined : hasLittleWork(policy, used);
}

/** Ready nodes of a cluster; empty when it does not answer. */
export const readyNodes = (
  { openClusters }: Pick<BurstSightDependencies, 'openClusters'>,
  cluster: WorkerCluster,
): Node[] => (openClusters.get(keyOf(cluster))?.nodes.list() ?? []).filter((node) => conditionIsTrue(node, 'Ready'));

/** Ready nodes with their pods, as counted by the hub. */
export function roomIn(deps: BurstSightDependencies, hub: Hub, cluster: WorkerCluster): Supply['nodes'] {
  const open = deps.openClusters.get(keyOf(cluster));
  const sizes = nodeSizesOf(cluster, open, whereItComes(deps, cluster)?.profile);
  return withPods(readyNodes(deps, cluster), open?.pods.list() ?? [], uncountedBy(hub, sizes));
}

function withPods(
  nodes: readonly Node[],
  pods: readonly Pod[],
  uncounted: ReturnType<typeof uncountedBy>,
): Supply['nodes'] {
  const podsOn = byNode(pods);
  return nodes.map((node) => {
    const on = podsOn.get(node.metadata.name) ?? [];
    return { node: fitNode(node), pods: [...on.map(fitPod), ...uncounted(node, on)] };
  });
}

/** Pending pods of a cluster. */
export const waitingPods = (
  { openClusters }: Pick<BurstSightDependencies, 'openClusters'>,
  cluster: WorkerCluster,
): FitPod[] =>
  (openClusters.get(keyOf(cluster))?.pods.list() ?? [])
    .filter(
      ({ metadata, spec, status }) => !spec.nodeName && !metadata.deletionTimestamp && status?.phase === 'Pending',
    )
    .slice(0, MOST_PENDING)
    .map(fitPod);

/**
 * Pending pods for which a cluster's autoscaler would buy nodes. Excludes pods that stayed pending after a node was bought
 * for them.
 */
export function lackingPods(deps: BurstSightDependencies, cluster: WorkerCluster): FitPod[] {
  const pods = deps.openClusters.get(keyOf(cluster))?.pods.list() ?? [];
  const { demands } = pendingDemand(pods, { isNominationLive: () => false });
  const decided = deps.decided(cluster);
  const stopped = typeof decided === 'string' ? [] : [...decided.values()].map(({ memory }) => memory?.stops ?? {});
  const asked = demands.filter(({ likeness = '' }) => !stopped.some((stops) => likeness in stops));
  // System pods alone buy nothing.
  if (asked.every((one) => one.isSystem)) return [];
  return asked.flatMap(({ keys, replica }) => keys.map(() => replica)).slice(0, MOST_PENDING);
}

/** Pools that Coppice sizes, with new nodes as counted by the hub; undefined: unknown. */
export function countedPools(
  deps: BurstSightDependencies,
  hub: Hub,
  written: WorkerCluster,
  growths: readonly NodesPurchase[],
): PoolSeen[] | undefined {
  const pools = poolsSeen(deps, written, growths, deps.now().getTime());
  if (!pools || pools.length === 0) return pools;
  const sizes = nodeSizesOf(written, deps.openClusters.get(keyOf(written)), whereItComes(deps, written)?.profile);
  return pools.map(({ template, ...pool }) => ({
    ...pool,
    template: template && countedTemplate(hub, template, sizes),
  }));
}

/** Observed state of an enlarged pool. */
export function grownNow(deps: BurstSightDependencies, growth: PoolNamed, now: number): PoolNow | 'gone' | 'unknown' {
  const cluster = clusterByUid(deps, growth);
  if (!cluster) return 'gone';
  const open = deps.openClusters.get(keyOf(cluster));
  const decided = deps.decided(cluster);
  const profile = deps.profiles.get(profileNameOf(cluster));
  if (!open || !profile || decided === 'unknown') return 'unknown';
  const pool = desiredSizes({ cluster, profile, decided }).find(({ name }) => name === growth.pool);
  if (!pool || !isCoppices(pool)) return 'gone';
  const there = (byPool(open.nodes.list()).get(pool.name) ?? []).filter(isThere);
  // Checking for sold-out offers scans all pods of the cluster.
  const seen = growth.isSettled
    ? undefined
    : poolsSeen(deps, cluster, [], now)?.find((one) => one.pool.name === pool.name);
  return { count: pool.count, present: there.length, isSoldOut: seen?.soldOut !== undefined };
}

/** A cluster as the hub knows it, or would know a future one. */
export function gardenMemberOf(
  deps: Pick<BurstSightDependencies, 'profiles' | 'openClusters' | 'memberships' | 'clusters' | 'capacity' | 'now'>,
  hub: Hub,
  written: WorkerCluster,
): HubMember {
  const { namespace, name } = written.metadata;
  const { cluster, profile } = whereItComes(deps, written) ?? { cluster: written, profile: undefined };
  const open = deps.openClusters.get(`${namespace}/${name}`);
  const membership = deps.memberships.get(`${namespace}/${membershipName(name, hub.metadata.name)}`);
  const made = asMade(cluster, profile);
  const surroundings = { open, profile };
  return {
    name: membership?.status?.memberName ?? name,
    labels: labelsOf(made, hub.spec, surroundings),
    zones: zonesOf(made, surroundings),
    alike: alikeTo(deps, hub, cluster, membership),
  };
}

/** The cluster with expected status, as far as labels depend on it. */
function asMade(cluster: WorkerCluster, profile: CloudProfile | undefined): WorkerCluster {
  const region = cluster.spec.region ?? profile?.spec.defaults?.region ?? profile?.spec.regions[0]?.name;
  const mode = cluster.spec.mode ?? profile?.spec.defaults?.mode;
  const status = { ...(region && { region }), ...(mode && { mode }), ...cluster.status };
  return { ...cluster, status };
}

/** Formula for kubelet's reserved resources; when unknown, the one that reserves most. */
export function reserveOf(
  { provider }: Pick<BurstSightDependencies, 'provider'>,
  { spec }: WorkerCluster,
  profile: CloudProfile,
): Reserve {
  if (!provider(profile)?.inCloud) return 'none';
  const isManaged = (spec.mode ?? profile.spec.defaults?.mode) === 'Managed';
  return isManaged ? (MANAGED_RESERVES[profile.spec.type] ?? 'gke') : 'machines';
}

/** Whether somebody's cluster sleeps by its own spec, and is in the hub. */
export function sleepsBySpec(deps: BurstSightDependencies, hub: Hub, cluster: WorkerCluster): boolean {
  const { metadata, status } = cluster;
  const state = membershipOf(deps, hub, cluster)?.status?.state;
  return (
    !metadata.deletionTimestamp &&
    !isAttached(cluster) &&
    metadata.labels?.[LABELS.burstPolicy] === undefined &&
    isAsleep(cluster) &&
    status?.hibernation?.order === undefined &&
    deps.sizes.sleepOrder(keyOf(cluster), metadata.uid ?? '') === 'none' &&
    (state === 'Joined' || state === 'Asleep')
  );
}

/** Progress of emptying a cluster, by its membership. */
export function emptyingIn(deps: BurstSightDependencies, hub: Hub, cluster: WorkerCluster): EmptyingSight {
  const conditions = membershipOf(deps, hub, cluster)?.status?.conditions;
  const drained = findCondition(conditions, 'Drained');
  const noRoom = findCondition(conditions, 'RoomElsewhere');
  const pods = deps.openClusters.get(keyOf(cluster))?.pods.list();
  const left = pods?.find((pod) => isWork(hub.spec, pod));
  return {
    hasBegun: drained?.reason === 'Draining' || drained?.status === 'True',
    isDone: drained?.status === 'True',
    refused: drained?.reason === 'DrainNotPossible' ? drained.message : undefined,
    // A room message of the membership is only an explanation: the plan checks room per node itself, and the membership
    // knows only sums, which may be stale.
    because: noRoom?.message ?? (left && `pod ${keyOf(left)} is there`),
  };
}

/** Whether the hub moves work of a leaving cluster. */
export const isMoving = ({ memberships }: Pick<BurstSightDependencies, 'memberships'>, hub: Hub): boolean =>
  memberships
    .byIndex(BY_HUB, hub.metadata.name)
    .some(
      ({ metadata, status }) =>
        metadata.deletionTimestamp !== undefined || findCondition(status?.conditions, 'Drained') !== undefined,
    );

/** Work of a cluster as it would wait elsewhere. Asks the hub and the cluster. */
export async function movableIn(
  deps: BurstSightDependencies,
  hub: Hub,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<Movable> {
  const open = deps.openClusters.get(keyOf(cluster));
  const member = membershipOf(deps, hub, cluster)?.status?.memberName;
  if (!open || !member) return { stays: 'it does not answer' };
  try {
    const placed = await deps.placedWork(hub, member, signal);
    if (typeof placed === 'string') return { stays: placed };
    if (!placed) return { stays: `hubs of type ${hub.spec.type} do not tell which work they would move` };
    const inside = readerOf(open.client, signal);
    const holdsOthers = hub.spec.drain?.otherWork === 'Hold' && !hub.spec.drain.allowDelete;
    const [budgets, claims, services] = await Promise.all([
      inside.list(PDBS),
      inside.list(PVCS),
      holdsOthers ? inside.list(SERVICES) : ([] as KubeObject[]),
    ]);
    const pods = open.pods.list().filter((pod) => isWork(hub.spec, pod));
    const others = ownWork(hub.spec, { pods: [], claims, services });
    return movableWork(
      placed.map((one) => ({ ...one, each: wordsOf(one.each) })),
      { pods, budgets, others },
    );
  } catch (error) {
    signal.throwIfAborted();
    return { stays: `the operator cannot find out what runs there: ${errorText(error)}` };
  }
}

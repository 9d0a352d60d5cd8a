import { findCondition, rfc3339 } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import { MAX_NODES } from '../../api/worker-pool.ts';
import { isAttached, type WorkerCluster } from '../../api/workercluster.ts';
import { type Ignored, interruptedDemand, isSystem } from '../../burst/demand.ts';
import { whyTooLarge } from '../../burst/fit/daemons.ts';
import { KeptDigests } from '../../burst/likeness.ts';
import { learnNodes } from '../../burst/nodes/expected.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { type CameNode, judgePurchases } from '../../burst/nodes/no-help.ts';
import type { NodesView } from '../../burst/nodes/plan.ts';
import { type DecidedSize, desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import { machineTypesOf } from '../../capacity/offers.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import { admit } from '../../cost/admission.ts';
import { askedSize } from '../../cost/size.ts';
import { isMovable } from '../../kube/pods.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import { OVER_QUOTA } from '../quota/claimants.ts';
import { disruptionsOf } from './disruption.ts';
import type { ClusterMemory } from './memory.ts';
import {
  byPool,
  type Daemon,
  interruptedOf,
  isThere,
  type LeavingNodes,
  nodeViews,
  type PoolAsked,
  poolOf,
  whoLeaves,
} from './nodes-seen.ts';
import type { NodesSight } from './world.ts';

/** Observation of an autoscaled cluster. */
export interface ClusterNodesSeen extends LeavingNodes {
  readonly cluster: WorkerCluster;
  readonly pools: readonly DesiredPool[];
  readonly decided: ReadonlyMap<string, DecidedSize>;
  readonly view: NodesView;
  readonly ignored: readonly Ignored[];
  readonly nodes: ReadonlyMap<string, Node>;
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Interrupted nodes with the announcing taint or condition. */
  readonly interrupted: ReadonlyMap<string, string>;
  /** Texts about DaemonSets that do not fit on nodes of pools that they target. */
  readonly tooLarge: readonly string[];
  /** Memory about each pool after this cycle. */
  readonly memories: ReadonlyMap<string, PoolMemory>;
  /** Changes of this observation by time alone, milliseconds since the epoch. */
  readonly changesAt: readonly number[];
  /** Present sizes of managed pools whose leaving nodes are gone without removal: the cloud has replaced them. */
  readonly replaced: ReadonlyMap<string, number>;
  /** Whether nodes must be empty before removal: a cloud does not drain. */
  readonly isManaged: boolean;
  /** Why nodes cannot be removed here; absent: they can. */
  readonly noShrinking?: string;
}

/** Longest relevant nomination: Kubernetes keeps nominations of nodes that will never take the pod. */
export const NOMINATION_MS = 2 * 60_000;
/** Default time that a node must be unneeded before removal. */
const SCALE_IN_AFTER_MS = 10 * 60_000;

/** How long an unneeded node of a pool stays. Without a setting the default. */
export const scaleInAfterMs = (pool?: Pick<WorkerPool, 'scaleInAfter'>): number =>
  parseDuration(pool?.scaleInAfter ?? '') ?? SCALE_IN_AFTER_MS;

/** Whether Coppice sizes any pool of the cluster. */
export const isAutoscaled = ({ spec }: WorkerCluster): boolean => (spec.pools ?? []).some(isCoppices);

/** Inputs of a decision about a cluster's nodes, with pauses. Pure except for `memory`. */
export function* observeNodes(world: NodesSight, memory: ClusterMemory): Steps<ClusterNodesSeen> {
  const { cluster, profile, decided, nodes, podsOn, parts, daemons, isManaged, noShrinking, whyBlocked } = world;
  const stored: ReadonlyMap<string, DecidedSize> = decided === 'none' ? new Map() : decided;
  const pools = desiredSizes({ cluster, profile, decided });
  const own = pools.filter(isCoppices);
  const now = world.now();

  memory.keepOnly(nodes, world.podIDs);
  yield;
  const ofPool = byPool(nodes.values());
  const { leaving, spared } = whoLeaves(own, stored, ofPool, nodes);
  const interrupted = interruptedOf(nodes.values());
  const written = new Map((cluster.spec.pools ?? []).map((pool) => [pool.name, pool]));
  const budgets = disruptionsOf(cluster.spec.pools ?? [], ofPool, { leaving, interrupted, now: +now });
  const { demands, ignored } = yield* world.waiting(memory);
  const lasting = [...nodes.values()].filter((node) => isThere(node) && !interrupted.has(node.metadata.name));
  const isNew = memory.readyNow(lasting.filter(isReady));
  const digests = own.map(digestOfPool);
  const learned = own.map((pool, index) =>
    learnedOf(pool, digests[index]!, stored.get(pool.name)?.memory, ofPool.get(pool.name) ?? [], isNew),
  );
  const poolViews = own.map((pool, index): PoolView => {
    const there = (ofPool.get(pool.name) ?? []).filter(isThere);
    const disruption = budgets.disruptions.get(pool.name);
    const at = stored.get(pool.name)?.at;
    const siblings = memory.alsoGone(pool.name, there.filter(isReady));
    return {
      name: pool.name,
      count: pool.count,
      minimum: pool.minimum,
      maximum: pool.maximum,
      present: there.length - (leaving.get(pool.name)?.length ?? 0),
      ...(at !== undefined && { decidedAt: Date.parse(at) }),
      ...(disruption && { disruption }),
      ...(pool.gpu > 0 && { hasGPUs: true as const }),
      ...lastIfTooSmall(world.offer(pool, siblings, learned[index]!.types), daemons),
    };
  });
  yield;
  const state = yield* world.room(lasting, own, poolViews);
  const came = cameNodes(lasting, podsOn);
  const memories = new Map<string, PoolMemory>();
  for (const [index, { name }] of own.entries()) {
    const help = { state, demands, nodes: came, now: +now };
    memories.set(name, yield* judgePurchases(learned[index]!, name, digests[index]!, help));
  }
  const going = [...interrupted.keys()].flatMap((name) => podsOn.get(name) ?? []);
  const interruptions = yield* interruptedDemand(going, rfc3339(now));
  const others = pools.reduce((sum, pool) => sum + (isCoppices(pool) ? 0 : pool.count), 0);
  const sizedAs = (sizes: ReadonlyMap<string, number>) =>
    desiredSizes({ cluster, profile, decided: withCounts(stored, sizes) });
  return {
    cluster,
    pools: own,
    decided: stored,
    ignored,
    nodes,
    podsOn,
    leaving,
    spared,
    interrupted,
    memories,
    tooLarge: tooLargeFor(poolViews, daemons),
    changesAt: [
      ...(ignored.some(({ reason }) => reason === 'Nominated') ? [+now + NOMINATION_MS] : []),
      ...budgets.changesAt,
      ...world.changesAt(lasting),
    ],
    replaced: world.isRemoving ? new Map() : replacedIn(own, stored, parts, nodes),
    isManaged,
    ...(noShrinking !== undefined && { noShrinking }),
    view: {
      state,
      demands: [...demands, ...interruptions],
      pools: poolViews.map((view) => withStops(view, memories.get(view.name))),
      nodes: yield* nodeViews(own, poolViews, byPool(lasting), { leaving, podsOn, parts, memory, now: +now }),
      most: Math.min(MAX_NODES, profile.spec.limits?.maxNodesTotal ?? MAX_NODES) - others,
      refused: refusedBy(world, sizedAs),
      notReady: lasting.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name),
      hasWork: yield* hasWorkOn(podsOn),
      daemons: daemons.map(({ pod }) => pod),
      mayShrink: (sizes) => sizedAs(sizes).every(({ name, count }) => count === (sizes.get(name) ?? count)),
      unneededSince: memory.unneededSince,
      ...(whyBlocked && { whyBlocked }),
      waitMs: (pool) => scaleInAfterMs(written.get(pool)),
      mayTakeNodes: noShrinking === undefined,
      now: +now,
    },
  };
}

/** Whether pods other than those that serve others run on a node. */
function* hasWorkOn(podsOn: ReadonlyMap<string, readonly Pod[]>): Steps<boolean> {
  for (const pods of podsOn.values()) {
    if (pods.some((pod) => isMovable(pod) && !isSystem(pod))) return true;
    yield;
  }
  return false;
}

/** An offer too small for a DaemonSet becomes a last resort. */
const lastIfTooSmall = <T extends Pick<PoolView, 'offer'>>(sold: T, daemons: readonly Daemon[]): T =>
  sold.offer && daemons.some(({ pod }) => whyTooLarge(pod, sold.offer!.template) !== undefined)
    ? { ...sold, offer: { ...sold.offer, isLast: true } }
    : sold;

const tooLargeFor = (pools: readonly PoolView[], daemons: readonly Daemon[]): string[] =>
  daemons.flatMap(({ name, pod }) =>
    pools.flatMap((pool) => {
      const why = pool.offer && whyTooLarge(pod, pool.offer.template);
      return why === undefined ? [] : [`DaemonSet ${name} fits on no node of pool ${pool.name} (${why})`];
    }),
  );

/** Nodes by which purchases are judged. */
export const digestOfPool = ({ machineType, alternatives, labels, taints, zones, spot, gpu }: DesiredPool): string =>
  poolDigests.of([machineType, alternatives, labels, taints, zones, spot, gpu]);

/** Hot path: each look digests all pools, which rarely change. */
const poolDigests = new KeptDigests();

const learnedOf = (
  pool: DesiredPool,
  digest: string,
  before: PoolMemory = {},
  nodes: readonly Node[],
  isNew: Pick<ReadonlySet<Node>, 'has'>,
): PoolMemory => {
  const gives = {
    machineTypes: machineTypesOf(pool),
    labels: pool.labels,
    taintKeys: [...pool.taints, ...(pool.startupTaints ?? [])].map(({ key }) => key),
  };
  const ready = nodes.filter((node) => isThere(node) && isReady(node));
  // A changed pool may have different nodes.
  const known = before.pool === undefined || before.pool === digest ? before.types : undefined;
  const types = learnNodes(known, gives, ready, (node) => isNew.has(node));
  return { ...before, ...(types && { types }) };
};

/** Identity of a pool for purchases, without its size. */
const cameNodes = (nodes: readonly Node[], podsOn: ReadonlyMap<string, readonly Pod[]>): CameNode[] =>
  nodes
    .filter((node) => isReady(node) && node.metadata.annotations?.[ANNOTATIONS.emptiedSince] === undefined)
    .map((node) => ({
      name: node.metadata.name,
      pool: poolOf(node),
      createdAt: Date.parse(node.metadata.creationTimestamp ?? ''),
      pods: podsOn.get(node.metadata.name) ?? [],
    }));

const withStops = (view: PoolView, memory: PoolMemory | undefined): PoolView =>
  memory?.stops
    ? { ...view, noHelp: new Map(Object.entries(memory.stops).map(([pods, { why }]) => [pods, why])) }
    : view;

const isReady = (node: Node): boolean => conditionIsTrue(node, 'Ready');

/** Whether sizes of its pools may be decided now. */
export function isOpenToDecisions({ metadata, status, ...cluster }: WorkerCluster): boolean {
  const is = (type: string) => findCondition(status?.conditions, type)?.status;
  // Waiting for a quota does not block decisions, since the cluster may need less by now; other refusals do.
  const accepted = findCondition(status?.conditions, 'SpecAccepted');
  return (
    !metadata.deletionTimestamp &&
    !isAttached(cluster) &&
    isAutoscaled({ metadata, ...cluster } as WorkerCluster) &&
    (accepted?.status !== 'False' || accepted.reason === OVER_QUOTA) &&
    is('APIServerAvailable') !== 'False' &&
    status?.hibernation?.asleep !== true &&
    // An outdated status must not buy nodes for a cluster that goes to sleep. Observed facts override it; only an
    // unobserved change counts as stated.
    (cluster.spec.hibernation?.enabled !== true ||
      status?.hibernation?.enabled === true ||
      status?.hibernation?.order !== undefined)
  );
}

/** See Seen.replaced. Pure. */
function replacedIn(
  own: readonly DesiredPool[],
  decided: ReadonlyMap<string, DecidedSize>,
  parts: readonly PoolAsked[],
  nodes: ReadonlyMap<string, Node>,
): ReadonlyMap<string, number> {
  return new Map(
    own.flatMap(({ name, count }): [string, number][] => {
      const { leaving = [] } = decided.get(name) ?? {};
      const asked = parts.reduce((sum, part) => sum + (part.pool === name ? part.nodes : 0), 0);
      return leaving.length > 0 && !leaving.some((one) => nodes.has(one)) && asked > count ? [[name, asked]] : [];
    }),
  );
}

/** Sizes as if stored. */
const withCounts = (decided: ReadonlyMap<string, DecidedSize>, sizes: ReadonlyMap<string, number>) =>
  new Map<string, DecidedSize>([
    ...decided,
    ...[...sizes].map(([name, count]): [string, DecidedSize] => [name, { count, by: '', why: '' }]),
  ]);

function refusedBy(
  world: NodesSight,
  sizedAs: (sizes: ReadonlyMap<string, number>) => DesiredPool[],
): NodesView['refused'] {
  const { cluster, profile, quotas, held } = world;
  if (quotas.length === 0) return () => undefined;
  const { creationTimestamp: createdAt = '' } = cluster.metadata;
  const key = keyOf(cluster);
  const others = world.claimants().filter((one) => one.key !== key);
  return (sizes) => {
    const asked = askedSize(cluster, profile, sizedAs(sizes));
    return admit({ key, createdAt, profile, held, asked }, others, quotas)[0]?.message;
  };
}

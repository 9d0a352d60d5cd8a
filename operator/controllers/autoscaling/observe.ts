import type { Provider } from '../../../providers/contract.ts';
import { hasAccount } from '../../accounts/has-account.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition, rfc3339 } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerPool } from '../../api/worker-pool.ts';
import { MAX_NODES } from '../../api/worker-pool.ts';
import { isAttached, type WorkerCluster } from '../../api/workercluster.ts';
import { type Ignored, interruptedDemand, isSystem, pendingDemand } from '../../burst/demand.ts';
import { clusterState } from '../../burst/fit/cluster.ts';
import { whyTooLarge } from '../../burst/fit/daemons.ts';
import { digestOf } from '../../burst/likeness.ts';
import { INSTANCE_TYPE, learnNodes } from '../../burst/nodes/expected.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { type CameNode, judgePurchases } from '../../burst/nodes/no-help.ts';
import type { NodesView } from '../../burst/nodes/plan.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { type DecidedSize, desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import { machineTypesOf } from '../../capacity/offers.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import type { OpenCluster, OpenClusters } from '../../clusters/open-clusters.ts';
import { admit } from '../../cost/admission.ts';
import { askedSize } from '../../cost/size.ts';
import type { Informer } from '../../kube/informer.ts';
import { isMovable } from '../../kube/pods.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import type { ManagedFacts } from '../managed/facts.ts';
import { type ClaimantDependencies, claimantsIn, heldBy, OVER_QUOTA } from '../quota/claimants.ts';
import { withoutStartupTaints } from '../startup-taints.ts';
import { whereItIs } from '../where-it-is.ts';
import { type KnownFacts, NOTHING_KNOWN } from './cluster-facts.ts';
import { disruptionsOf } from './disruption.ts';
import type { ClusterMemory } from './memory.ts';
import {
  asReady,
  byNode,
  byPool,
  type ComingNode,
  type Daemon,
  daemonSetsOf,
  interruptedOf,
  isThere,
  isYoung,
  type Leaving,
  nodeViews,
  type PoolAsked,
  partsAsked,
  poolOf,
  startsEnd,
  whoLeaves,
} from './nodes-seen.ts';
import { devicesOf, offerOf } from './offers.ts';

/** What is looked at. */
export interface ObserveDependencies extends ClaimantDependencies {
  readonly openClusters: Pick<OpenClusters, 'get'>;
  readonly quotas: Pick<Informer<Quota>, 'byIndex'>;
  readonly capacity: Pick<DepletedOffers, 'known'>;
  readonly decided: NonNullable<ClaimantDependencies['decided']>;
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
  /** What is known of a cluster of a cloud's own service with this UID; undefined: nothing. */
  managed(key: string, uid: string | undefined): Pick<ManagedFacts, 'pools' | 'removing' | 'doomed'> | undefined;
  now(): Date;
}

/** What was seen of a cluster whose nodes are Coppice's to decide about. */
export interface Seen extends Leaving {
  readonly cluster: WorkerCluster;
  readonly open: OpenCluster;
  readonly pools: readonly DesiredPool[];
  readonly decided: ReadonlyMap<string, DecidedSize>;
  readonly view: NodesView;
  readonly ignored: readonly Ignored[];
  readonly nodes: ReadonlyMap<string, Node>;
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Nodes that a cloud takes away within minutes, and by what it says so. */
  readonly interrupted: ReadonlyMap<string, string>;
  /** DaemonSets that are larger than the nodes of pools that they are meant for: in words. */
  readonly tooLarge: readonly string[];
  /** What is known of the nodes of each pool after this look. */
  readonly memories: ReadonlyMap<string, PoolMemory>;
  /** When something of this is seen otherwise though nothing happens, milliseconds since the epoch. */
  readonly changesAt: readonly number[];
  /**
   * Nodes that pools of a cloud's own service are asked for, where named ones were to leave and are gone though nobody has removed them:
   * the cloud has made others in their place.
   */
  readonly replaced: ReadonlyMap<string, number>;
  /** Whether who takes named nodes away relies on their being empty: a cloud that is asked to end one drains nothing. */
  readonly isManaged: boolean;
  /** Why nodes cannot be taken away here at all; absent: they can. */
  readonly noShrinking?: string;
}

/** How many times a decision holds a pod against a node, at most: about two seconds of work. */
const MOST_QUESTIONS = 5_000_000;

/** A nomination that is older holds up nobody: Kubernetes keeps those to nodes that will never take the pod. */
const NOMINATION_MS = 2 * 60_000;
/** How long nobody must have needed a node before it goes, where its pool does not say. */
const SCALE_IN_AFTER_MS = 10 * 60_000;

/** How long a node of a pool that Coppice sizes stays when nobody needs it. Absent: the pool says nothing. */
export const scaleInAfterMs = (pool?: Pick<WorkerPool, 'scaleInAfter'>): number =>
  parseDuration(pool?.scaleInAfter ?? '') ?? SCALE_IN_AFTER_MS;

/** Whether some pool of the cluster is Coppice's to size. */
export const isAutoscaled = ({ spec }: WorkerCluster): boolean => (spec.pools ?? []).some(isCoppices);

/** What a decision about the nodes of a cluster rests on; undefined: nothing is decided about them now. */
export function observe(
  deps: ObserveDependencies,
  key: string,
  memory: ClusterMemory,
  { facts: clusterFacts, csiNodes, againAt, whyBlocked = 'unknown', daemonSets }: KnownFacts = NOTHING_KNOWN,
): Seen | undefined {
  const subject = subjectOf(deps, key);
  if (!subject) return undefined;
  const { cluster, profile, open, shoot, decided, provider, isManaged, facts } = subject;
  const stored: ReadonlyMap<string, DecidedSize> = decided === 'none' ? new Map() : decided;
  const pools = desiredSizes({ cluster, profile, decided });
  const own = pools.filter(isCoppices);
  const now = deps.now();

  const parts = partsAsked(isManaged ? undefined : shoot, facts?.pools);
  const nodes = nodesOf(open, facts, pools, +now);
  const pods = open.pods.list();
  const podsOn = byNode(pods);
  memory.keepOnly(nodes, new Set(pods.map(({ metadata }) => metadata.uid ?? '')));
  const ofPool = byPool(nodes.values());
  const { leaving, spared } = whoLeaves(own, stored, ofPool, nodes);
  const offers = {
    cluster,
    profile,
    provider,
    isManaged,
    capacity: deps.capacity.known(cluster.metadata),
    now,
  };
  const interrupted = interruptedOf(nodes.values());
  const written = new Map((cluster.spec.pools ?? []).map((pool) => [pool.name, pool]));
  const budgets = disruptionsOf(cluster.spec.pools ?? [], ofPool, { leaving, interrupted, now: +now });
  const { demands, ignored } = pendingDemand(pods, { isNominationLive: nominationsOn(nodes, memory, now) });
  const lasting = [...nodes.values()].filter((node) => isThere(node) && !interrupted.has(node.metadata.name));
  const daemons = daemonSetsOf(pods, daemonSets);
  const isNew = memory.readyNow(lasting.filter(isReady));
  const learned = own.map((pool) => learnedOf(pool, stored.get(pool.name)?.memory, ofPool.get(pool.name) ?? [], isNew));
  const poolViews = own.map((pool, index): PoolView => {
    const there = (ofPool.get(pool.name) ?? []).filter(isThere);
    const disruption = budgets.disruptions.get(pool.name);
    const at = stored.get(pool.name)?.at;
    return {
      name: pool.name,
      count: pool.count,
      minimum: pool.minimum,
      maximum: pool.maximum,
      present: there.length - (leaving.get(pool.name)?.length ?? 0),
      ...(at !== undefined && { decidedAt: Date.parse(at) }),
      ...(disruption && { disruption }),
      ...(pool.gpu > 0 && { hasGPUs: true as const }),
      ...lastIfTooSmall(
        offerOf(offers, pool, memory.alsoGone(pool.name, there.filter(isReady)), csiNodes, learned[index]!.types),
        daemons,
      ),
    };
  });
  const state = clusterState({
    ...clusterFacts,
    work: { left: MOST_QUESTIONS },
    nodes: lasting.map((node) => asReady(node, +now, comingNode(node, own, poolViews, profile))),
    pods,
    csiNodes: [...csiNodes.values()],
  });
  const came = cameNodes(lasting, podsOn);
  const memories = new Map(
    own.map((pool, index) => [
      pool.name,
      judgePurchases(learned[index]!, pool.name, digestOfPool(pool), { state, demands, nodes: came, now: +now }),
    ]),
  );
  const going = [...interrupted.keys()].flatMap((name) => podsOn.get(name) ?? []);
  const noShrinking = whyNoShrinking(isManaged, provider, shoot);
  const others = pools.reduce((sum, pool) => sum + (isCoppices(pool) ? 0 : pool.count), 0);
  const sizedAs = (sizes: ReadonlyMap<string, number>) =>
    desiredSizes({ cluster, profile, decided: withCounts(stored, sizes) });
  return {
    cluster,
    open,
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
      ...(againAt === undefined ? [] : [againAt]),
      ...startsEnd(lasting, now),
    ],
    replaced: facts?.removing === undefined ? replacedIn(own, stored, parts, nodes) : new Map(),
    isManaged,
    ...(noShrinking !== undefined && { noShrinking }),
    view: {
      state,
      demands: [...demands, ...interruptedDemand(going, rfc3339(now))],
      pools: poolViews.map((view) => withStops(view, memories.get(view.name))),
      nodes: nodeViews(own, poolViews, byPool(lasting), { leaving, podsOn, parts, memory, now: +now }),
      most: Math.min(MAX_NODES, profile.spec.limits?.maxNodesTotal ?? MAX_NODES) - others,
      refused: refusedBy(deps, cluster, profile, sizedAs),
      notReady: lasting.filter((node) => !isReady(node)).map(({ metadata }) => metadata.name),
      hasWork: pods.some((pod) => pod.spec.nodeName && isMovable(pod) && !isSystem(pod)),
      daemons: daemons.map(({ pod }) => pod),
      mayShrink: (sizes) => sizedAs(sizes).every(({ name, count }) => count === (sizes.get(name) ?? count)),
      unneededSince: memory.unneededSince,
      whyBlocked,
      waitMs: (pool) => scaleInAfterMs(written.get(pool)),
      mayTakeNodes: noShrinking === undefined,
      now: +now,
    },
  };
}

/** A node on which a DaemonSet has no room is bought where nothing else takes the pods. */
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

/** What identifies a pool for purchases: not how many nodes it may have. */
export const digestOfPool = ({ machineType, alternatives, labels, taints, zones, spot, gpu }: DesiredPool): string =>
  digestOf([machineType, alternatives, labels, taints, zones, spot, gpu]);

const learnedOf = (
  pool: DesiredPool,
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
  // Nodes of another pool may be others.
  const known = before.pool === undefined || before.pool === digestOfPool(pool) ? before.types : undefined;
  const types = learnNodes(known, gives, ready, (node) => isNew.has(node));
  return { ...before, ...(types && { types }) };
};

/** What a node of a pool that is on its way up will have. */
function comingNode(
  node: Node,
  own: readonly DesiredPool[],
  pools: readonly PoolView[],
  { spec }: CloudProfile,
): ComingNode {
  const template = pools.find(({ name }) => name === poolOf(node))?.offer?.template;
  const type = node.metadata.labels?.[INSTANCE_TYPE];
  return {
    labels: type !== undefined && template?.labels[INSTANCE_TYPE] === type ? template.labels : undefined,
    startupTaints: own.find(({ name }) => name === poolOf(node))?.startupTaints?.map(({ key }) => key),
    devices: devicesOf(spec.machineTypes.find(({ name }) => name === type)),
  };
}

/** Nodes that could take pods, as what was bought is judged by them. */
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

/** A cluster whose nodes may be decided about now, and what is known of it beside its nodes and pods. */
function subjectOf(deps: ObserveDependencies, key: string) {
  const known = deps.clusters.get(key);
  const there = known && whereItIs(known, deps.profiles);
  const open = deps.openClusters.get(key);
  if (!there || !open || !isOpenToDecisions(known)) return undefined;
  const { cluster, profile } = there;
  const decided = deps.decided(cluster);
  if (decided === 'unknown') return undefined;
  const shoot = deps.shoots.get(key);
  const isManaged = !isMadeOf(shoot, cluster);
  return {
    cluster,
    profile,
    open,
    shoot,
    decided,
    provider: deps.provider(profile, hasAccount(cluster, shoot)),
    isManaged,
    facts: isManaged ? deps.managed(key, cluster.metadata.uid) : undefined,
  };
}

/** By name. Whose machine was ended is a node for a while still, and no pod is to come back there. */
const nodesOf = (
  { nodes }: OpenCluster,
  facts: Pick<ManagedFacts, 'doomed'> | undefined,
  pools: readonly DesiredPool[],
  now: number,
): ReadonlyMap<string, Node> =>
  new Map(
    nodes
      .list()
      .filter(({ metadata: { uid } }) => uid === undefined || !facts?.doomed?.includes(uid))
      // An agent that has not taken its taint away by then does not: the node is no room.
      .map((node) => [node.metadata.name, isYoung(node, now) ? withoutStartupTaints(node, pools) : node]),
  );

const isReady = (node: Node): boolean => conditionIsTrue(node, 'Ready');

/** Whether a pod may still come to the node that the scheduler has nominated for it. */
const nominationsOn =
  (nodes: ReadonlyMap<string, Node>, memory: ClusterMemory, now: Date) =>
  ({ metadata, status }: Pod): boolean => {
    const name = status?.nominatedNodeName ?? '';
    const node = nodes.get(name);
    const isThereStill = node !== undefined && isThere(node) && !node.spec.unschedulable;
    return isThereStill && memory.nominatedMs(metadata.uid ?? '', name, +now) < NOMINATION_MS;
  };

/** Whether sizes of its pools may be decided now. */
export function isOpenToDecisions({ metadata, status, ...cluster }: WorkerCluster): boolean {
  const is = (type: string) => findCondition(status?.conditions, type)?.status;
  // Who waits for a quota may need less by now: only what else is refused says that nothing of it is acted on.
  const accepted = findCondition(status?.conditions, 'SpecAccepted');
  return (
    !metadata.deletionTimestamp &&
    !isAttached(cluster) &&
    isAutoscaled({ metadata, ...cluster } as WorkerCluster) &&
    (accepted?.status !== 'False' || accepted.reason === OVER_QUOTA) &&
    is('APIServerAvailable') !== 'False' &&
    status?.hibernation?.asleep !== true &&
    // What the status says of an older spec would have nodes bought for a cluster on its way to sleep.
    // What was seen of it tells whether it sleeps; only what nobody has seen yet counts as said.
    (cluster.spec.hibernation?.enabled !== true ||
      status?.hibernation?.enabled === true ||
      status?.hibernation?.order !== undefined)
  );
}

/** Whether the nodes are machines of the cluster's own Shoot. */
const isMadeOf = (shoot: Shoot | undefined, { metadata }: WorkerCluster): boolean =>
  shoot?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;

/** Why named nodes cannot be taken away; undefined: they can. */
function whyNoShrinking(
  isManaged: boolean,
  provider: Provider | undefined,
  shoot: Shoot | undefined,
): string | undefined {
  if (isManaged && provider?.managed?.removeNodes) return undefined;
  if (isManaged) return 'the cloud chooses itself which nodes of a managed cluster go, so Coppice takes none away';
  return findCondition(shoot?.status?.conditions, 'Rolling')?.status === 'True'
    ? 'machines are being replaced'
    : undefined;
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

/** Sizes as if these were stored. */
const withCounts = (decided: ReadonlyMap<string, DecidedSize>, sizes: ReadonlyMap<string, number>) =>
  new Map<string, DecidedSize>([
    ...decided,
    ...[...sizes].map(([name, count]): [string, DecidedSize] => [name, { count, by: '', why: '' }]),
  ]);

function refusedBy(
  deps: ObserveDependencies,
  cluster: WorkerCluster,
  profile: CloudProfile,
  sizedAs: (sizes: ReadonlyMap<string, number>) => DesiredPool[],
): NodesView['refused'] {
  const { namespace = '', creationTimestamp: createdAt = '' } = cluster.metadata;
  const quotas = deps.quotas.byIndex(BY_NAMESPACE, namespace);
  if (quotas.length === 0) return () => undefined;
  const key = keyOf(cluster);
  const others = claimantsIn(deps, namespace).filter((one) => one.key !== key);
  const held = heldBy(deps, cluster);
  return (sizes) => {
    const asked = askedSize(cluster, profile, sizedAs(sizes));
    return admit({ key, createdAt, profile, held, asked }, others, quotas)[0]?.message;
  };
}

import type { Provider } from '../../../providers/contract.ts';
import { hasAccount } from '../../accounts/has-account.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { ANNOTATIONS, LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import { isAttached, MAX_NODES, profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import { type Ignored, isMovable, isSystem, pendingDemand } from '../../burst/demand.ts';
import { fitNode } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { ClusterState } from '../../burst/fit/state.ts';
import { PROVISION_MS } from '../../burst/nodes/grow.ts';
import type { NodeView, PoolView } from '../../burst/nodes/model.ts';
import type { NodesView } from '../../burst/nodes/plan.ts';
import { whyNodeStays } from '../../burst/nodes/stays.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { type DecidedSize, desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import type { OpenCluster, OpenClusters } from '../../clusters/open-clusters.ts';
import { admit } from '../../cost/admission.ts';
import { askedSize } from '../../cost/size.ts';
import type { Informer } from '../../kube/informer.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { type ClaimantWorld, claimantsIn, heldBy, OVER_QUOTA } from '../quota/claimants.ts';
import type { ClusterMemory } from './memory.ts';
import { offerOf } from './offers.ts';

/** What is looked at. */
export interface ObservedWorld extends ClaimantWorld {
  readonly openClusters: Pick<OpenClusters, 'get'>;
  readonly quotas: Pick<Informer<Quota>, 'byIndex'>;
  readonly capacity: Pick<DepletedOffers, 'known'>;
  readonly decided: NonNullable<ClaimantWorld['decided']>;
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
  now(): Date;
}

/** What was seen of a cluster whose nodes are Coppice's to decide about. */
export interface Seen {
  readonly cluster: WorkerCluster;
  readonly open: OpenCluster;
  readonly pools: readonly DesiredPool[];
  readonly decided: ReadonlyMap<string, DecidedSize>;
  readonly view: NodesView;
  readonly ignored: readonly Ignored[];
  readonly nodes: ReadonlyMap<string, Node>;
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Nodes that are to go by what is on record, by pool; those that others have taken away in their place are in `spared`. */
  readonly leaving: ReadonlyMap<string, readonly string[]>;
  /** Nodes with our mark that nobody takes away any more. */
  readonly spared: readonly string[];
  /** Why nodes cannot be taken away here at all; absent: they can. */
  readonly noShrinking?: string;
}

/** A nomination that is older holds up nobody: Kubernetes keeps those to nodes that will never take the pod. */
const NOMINATION_MS = 2 * 60_000;
const SCALE_IN_AFTER_MS = 10 * 60_000;

/** Whether some pool of the cluster is Coppice's to size. */
export const isAutoscaled = ({ spec }: WorkerCluster): boolean => (spec.pools ?? []).some(isCoppicesPool);
const isCoppicesPool = ({ autoscale }: { autoscale?: string | undefined }): boolean => autoscale === 'Coppice';

/** Why nothing is decided about a cluster now, or what a decision rests on. */
export function observe(world: ObservedWorld, key: string, memory: ClusterMemory): Seen | undefined {
  const cluster = world.clusters.get(key);
  const profile = cluster && world.profiles.get(profileNameOf(cluster));
  const open = world.openClusters.get(key);
  if (!cluster || !profile || !open || !isOpenToDecisions(cluster)) return undefined;
  const decided = world.decided(cluster);
  if (decided === 'unknown') return undefined;
  const onRecord: ReadonlyMap<string, DecidedSize> = decided === 'none' ? new Map() : decided;
  const pools = desiredSizes({ cluster, profile, decided });
  const own = pools.filter(isCoppices);
  const shoot = world.shoots.get(key);
  const now = world.now();

  const nodes = new Map(open.nodes.list().map((node) => [node.metadata.name, node]));
  const pods = open.pods.list();
  const podsOn = byNode(pods);
  memory.keepOnly(new Set(nodes.keys()), new Set(pods.map(({ metadata }) => metadata.uid ?? '')));
  const ofPool = byPool(nodes.values());
  const { leaving, spared } = whoLeaves(own, onRecord, ofPool, nodes);
  const offers = {
    cluster,
    profile,
    provider: world.provider(profile, hasAccount(cluster, shoot)),
    capacity: world.capacity.known(cluster.metadata.uid ?? ''),
    now,
  };
  const poolViews = own.map((pool): PoolView => {
    const there = (ofPool.get(pool.name) ?? []).filter(isThere);
    const at = onRecord.get(pool.name)?.at;
    return {
      name: pool.name,
      count: pool.count,
      minimum: pool.minimum,
      maximum: pool.maximum,
      present: there.length - (leaving.get(pool.name)?.length ?? 0),
      ...(at !== undefined && { decidedAt: Date.parse(at) }),
      ...offerOf(offers, pool, there),
    };
  });
  const { demands, ignored } = pendingDemand(pods, {
    isNominationLive: ({ metadata, status }) => {
      const name = status?.nominatedNodeName ?? '';
      const node = nodes.get(name);
      const isThereStill = node !== undefined && isThere(node) && !node.spec.unschedulable;
      return isThereStill && memory.nominatedMs(metadata.uid ?? '', name, +now) < NOMINATION_MS;
    },
  });
  const noShrinking = whyNoShrinking(cluster, shoot);
  const others = pools.reduce((sum, pool) => sum + (isCoppices(pool) ? 0 : pool.count), 0);
  const waits = new Map((cluster.spec.pools ?? []).map(({ name, scaleInAfter }) => [name, scaleInAfter]));
  const sizedAs = (sizes: ReadonlyMap<string, number>) =>
    desiredSizes({ cluster, profile, decided: withCounts(onRecord, sizes) });
  return {
    cluster,
    open,
    pools: own,
    decided: onRecord,
    ignored,
    nodes,
    podsOn,
    leaving,
    spared,
    ...(noShrinking !== undefined && { noShrinking }),
    view: {
      state: stateOf(nodes, podsOn, +now),
      demands,
      pools: poolViews,
      nodes: nodeViews(own, poolViews, ofPool, { leaving, podsOn, shoot, memory, now: +now }),
      most: Math.min(MAX_NODES, profile.spec.limits?.maxNodesTotal ?? MAX_NODES) - others,
      refused: refusedBy(world, cluster, profile, sizedAs),
      notReady: [...nodes.values()]
        .filter((node) => isThere(node) && !conditionIsTrue(node, 'Ready'))
        .map(({ metadata }) => metadata.name),
      hasWork: pods.some((pod) => pod.spec.nodeName && isMovable(pod) && !isSystem(pod)),
      daemons: daemonsOf(pods),
      mayShrink: (sizes) => sizedAs(sizes).every(({ name, count }) => count === (sizes.get(name) ?? count)),
      unneededSince: memory.unneededSince,
      waitMs: (pool) => parseDuration(waits.get(pool) ?? '') ?? SCALE_IN_AFTER_MS,
      mayTakeNodes: noShrinking === undefined,
      now: +now,
    },
  };
}

function isOpenToDecisions({ metadata, status, ...cluster }: WorkerCluster): boolean {
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
    cluster.spec.hibernation?.enabled !== true
  );
}

/** Why named nodes cannot be taken away; undefined: they can. */
function whyNoShrinking({ metadata }: WorkerCluster, shoot: Shoot | undefined): string | undefined {
  if (!shoot?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid))
    return 'the cloud chooses itself which nodes of a managed cluster go, so Coppice takes none away';
  return findCondition(shoot.status?.conditions, 'Rolling')?.status === 'True'
    ? 'machines are being replaced'
    : undefined;
}

const poolOf = ({ metadata: { labels } }: Node): string =>
  labels?.[LABELS.alternativeOf] ?? labels?.[LABELS.pool] ?? '';

function byPool(nodes: Iterable<Node>): Map<string, Node[]> {
  const found = new Map<string, Node[]>();
  for (const node of nodes) {
    const pool = poolOf(node);
    const known = found.get(pool);
    if (known) known.push(node);
    else found.set(pool, [node]);
  }
  return found;
}

const isThere = ({ metadata }: Node): boolean => metadata.deletionTimestamp === undefined;

function byNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const found = new Map<string, Pod[]>();
  for (const pod of pods) {
    const { nodeName } = pod.spec;
    if (!nodeName || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') continue;
    const there = found.get(nodeName);
    if (there) there.push(pod);
    else found.set(nodeName, [pod]);
  }
  return found;
}

/**
 * Which nodes are on their way out by what is on record. Where the pool has been made larger since, or others were taken in their place,
 * nobody takes them away: they are spared.
 */
function whoLeaves(
  own: readonly DesiredPool[],
  decided: ReadonlyMap<string, DecidedSize>,
  ofPool: ReadonlyMap<string, readonly Node[]>,
  nodes: ReadonlyMap<string, Node>,
): Pick<Seen, 'leaving' | 'spared'> {
  const leaving = new Map<string, readonly string[]>();
  for (const { name, count } of own) {
    const there = (ofPool.get(name) ?? []).filter(isThere);
    const named = (decided.get(name)?.leaving ?? []).filter((node) =>
      there.some(({ metadata }) => metadata.name === node),
    );
    leaving.set(name, named.slice(0, Math.max(0, there.length - count)));
  }
  const going = new Set([...leaving.values()].flat());
  const onRecord = new Set([...decided.values()].flatMap((size) => size.leaving ?? []));
  const spared = [...onRecord].filter(
    (name) => !going.has(name) && nodes.get(name)?.metadata.annotations?.[ANNOTATIONS.emptiedSince],
  );
  return { leaving, spared };
}

/** Taints that a node loses by itself once it is up. */
const STARTUP = [
  'node.kubernetes.io/not-ready',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'node.kubernetes.io/network-unavailable',
];
const STARTUP_PREFIXES = ['startup-taint.', 'status-taint.', 'ignore-taint.'].map(
  (one) => `${one}cluster-autoscaler.kubernetes.io/`,
);

/** A node that has just come counts as it will be: another one would be bought for its pods otherwise. */
function asReady(node: Node, now: number): Node {
  const isYoung = now - Date.parse(node.metadata.creationTimestamp ?? '') < PROVISION_MS;
  if (!node.spec.taints || (!isYoung && !conditionIsTrue(node, 'Ready'))) return node;
  const lasting = node.spec.taints.filter(
    ({ key }) => !STARTUP.includes(key) && !STARTUP_PREFIXES.some((prefix) => key.startsWith(prefix)),
  );
  return { ...node, spec: { ...node.spec, taints: lasting } };
}

function stateOf(
  nodes: ReadonlyMap<string, Node>,
  podsOn: ReadonlyMap<string, readonly Pod[]>,
  now: number,
): ClusterState {
  const state = new ClusterState();
  for (const [name, node] of nodes) {
    if (!isThere(node)) continue;
    state.addNode(fitNode(asReady(node, now)));
    for (const pod of podsOn.get(name) ?? []) state.place(fitPod(pod), name);
  }
  return state;
}

/** One pod of each DaemonSet. */
function daemonsOf(pods: readonly Pod[]) {
  const found = new Map<string, Pod>();
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.find(({ kind, controller }) => kind === 'DaemonSet' && controller);
    if (owner) found.set(owner.uid, pod);
  }
  return [...found.values()].map(fitPod);
}

interface NodesSeen extends Pick<Seen, 'leaving' | 'podsOn'> {
  readonly shoot: Shoot | undefined;
  readonly memory: ClusterMemory;
  readonly now: number;
}

function nodeViews(
  own: readonly DesiredPool[],
  views: readonly PoolView[],
  ofPool: ReadonlyMap<string, readonly Node[]>,
  { leaving, podsOn, shoot, memory, now }: NodesSeen,
): NodeView[] {
  return own.flatMap(({ name: pool }, index) => {
    const view = views[index]!;
    // Of a pool that is divided, the part that was chosen last shrinks first.
    const parts = (shoot?.spec.provider.workers ?? []).filter(
      ({ name, labels, minimum }) => minimum > 0 && (labels?.[LABELS.alternativeOf] ?? name) === pool,
    );
    return (ofPool.get(pool) ?? []).flatMap((node): NodeView[] => {
      const { name, labels, annotations } = node.metadata;
      if (!isThere(node) || leaving.get(pool)?.includes(name)) return [];
      const pods = podsOn.get(name) ?? [];
      const isEmptying = annotations?.[ANNOTATIONS.emptiedSince] !== undefined;
      const whyNotBegun = (): string | undefined =>
        (parts.length > 1 && labels?.[LABELS.pool] !== parts.at(-1)!.name
          ? 'other machines of its pool go first'
          : undefined) ??
        (view.present < view.count ? 'nodes of its pool are yet to come' : undefined) ??
        (conditionIsTrue(node, 'Ready') ? undefined : 'it is not Ready') ??
        (node.spec.unschedulable ? 'somebody has cordoned it' : undefined);
      const stays =
        whyNodeStays(node, pods) ?? memory.leftAlone(name, now)?.why ?? (isEmptying ? undefined : whyNotBegun());
      return [{ name, pool, price: view.offer?.price ?? 0, pods, isEmptying, ...(stays !== undefined && { stays }) }];
    });
  });
}

/** Sizes as if these were on record. */
const withCounts = (decided: ReadonlyMap<string, DecidedSize>, sizes: ReadonlyMap<string, number>) =>
  new Map<string, DecidedSize>([
    ...decided,
    ...[...sizes].map(([name, count]): [string, DecidedSize] => [name, { count, by: '', why: '' }]),
  ]);

function refusedBy(
  world: ObservedWorld,
  cluster: WorkerCluster,
  profile: CloudProfile,
  sizedAs: (sizes: ReadonlyMap<string, number>) => DesiredPool[],
): NodesView['refused'] {
  const { namespace = '', creationTimestamp: createdAt = '' } = cluster.metadata;
  const quotas = world.quotas.byIndex(BY_NAMESPACE, namespace);
  if (quotas.length === 0) return () => undefined;
  const key = keyOf(cluster);
  const others = claimantsIn(world, namespace).filter((one) => one.key !== key);
  const held = heldBy(world, cluster);
  return (sizes) => {
    const asked = askedSize(cluster, profile, sizedAs(sizes));
    return admit({ key, createdAt, profile, held, asked }, others, quotas)[0]?.message;
  };
}

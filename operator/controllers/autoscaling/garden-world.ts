import type { Provider } from '../../../providers/contract.ts';
import { hasAccount } from '../../accounts/has-account.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { pendingDemandInSteps } from '../../burst/demand.ts';
import { clusterStateInSteps } from '../../burst/fit/cluster.ts';
import { INSTANCE_TYPE } from '../../burst/nodes/expected.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { desiredSizes } from '../../capacity/desired-sizes.ts';
import type { OpenCluster, OpenClusters } from '../../clusters/open-clusters.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import { stepOwnerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import type { ManagedFacts } from '../managed/facts.ts';
import { type ClaimantDependencies, claimantsIn, heldBy } from '../quota/claimants.ts';
import { withoutStartupTaints } from '../startup-taints.ts';
import { whereItIs } from '../where-it-is.ts';
import type { KnownFacts } from './cluster-facts.ts';
import { beginEmptying, endEmptying, evictAll, markEmpty } from './empty-node.ts';
import type { ClusterMemory } from './memory.ts';
import {
  asReady,
  byNode,
  type ComingNode,
  daemonSetsOf,
  isThere,
  isYoung,
  partsAsked,
  poolOf,
  startsEnd,
} from './nodes-seen.ts';
import { isOpenToDecisions, NOMINATION_MS } from './observe.ts';
import { devicesOf, offerOf, poolMachinesOf } from './offers.ts';
import type { NodesActs, NodesSight, NodesWorld } from './world.ts';

/** Dependencies for observing a garden. */
interface ObserveDependencies extends ClaimantDependencies {
  readonly openClusters: Pick<OpenClusters, 'get'>;
  readonly quotas: Pick<Informer<Quota>, 'byIndex'>;
  readonly capacity: Pick<DepletedOffers, 'known'>;
  readonly decided: NonNullable<ClaimantDependencies['decided']>;
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
  /** Facts about a managed cluster with this UID; undefined: none. */
  managed(key: string, uid: string | undefined): Pick<ManagedFacts, 'pools' | 'removing' | 'doomed'> | undefined;
  now(): Date;
}

/** Dependencies for observing and changing a garden's nodes. */
export interface GardenNodes extends ObserveDependencies {
  readonly sizes: Pick<DecidedSizes, 'decide'>;
  readonly recordEvent: RecordEvent;
}

/** Work limit of a decision, in checks of a pod against a node: about two seconds. */
const MOST_QUESTIONS = 5_000_000;

/** A cluster's nodes from caches for one cycle, with pauses; undefined: no decision now. */
export function* gardenNodes(deps: GardenNodes, key: string, known: KnownFacts): Steps<NodesWorld | undefined> {
  const subject = subjectOf(deps, key);
  return subject && { ...(yield* sightOf(deps, subject, known)), ...actsOf(deps, subject, key) };
}

type Subject = NonNullable<ReturnType<typeof subjectOf>>;

function* sightOf(deps: GardenNodes, subject: Subject, known: KnownFacts): Steps<NodesSight> {
  const { cluster, profile, open, shoot, decided, provider, isManaged, facts } = subject;
  const { facts: clusterFacts, csiNodes, againAt, whyBlocked = 'unknown', daemonSets } = known;
  const { namespace = '' } = cluster.metadata;
  const now = deps.now();
  const nodes = nodesOf(open, facts, desiredSizes({ cluster, profile, decided }), +now);
  // All of one moment: caches change while the work pauses.
  const pods = open.pods.list();
  yield;
  const podIDs = new Set(pods.map(({ metadata }) => metadata.uid ?? ''));
  yield;
  const podsOn = byNode(pods);
  yield;
  const daemons = daemonSetsOf(pods, daemonSets);
  const noShrinking = whyNoShrinking(isManaged, provider, shoot);
  const offers = {
    cluster,
    profile,
    ...poolMachinesOf({ provider, isManaged }),
    capacity: deps.capacity.known(cluster.metadata),
    now,
  };
  return {
    now: () => deps.now(),
    run: (steps, signal) => tenantSteps.run(stepOwnerOf(cluster, 'autoscaling'), steps, signal),
    cluster,
    profile,
    decided,
    nodes,
    podIDs,
    podsOn,
    daemons,
    waiting: (memory) => pendingDemandInSteps(pods, { isNominationLive: nominationsOn(nodes, memory, now) }),
    offer: (pool, siblings, models) => offerOf(offers, pool, siblings, csiNodes, models),
    room: (there, own, views) =>
      clusterStateInSteps({
        ...clusterFacts,
        work: { left: MOST_QUESTIONS },
        nodes: there.map((node) => asReady(node, +now, comingNode(node, own, views, profile))),
        pods,
        csiNodes: [...csiNodes.values()],
      }),
    parts: partsAsked(isManaged ? undefined : shoot, facts?.pools),
    isRemoving: facts?.removing !== undefined,
    isManaged,
    ...(noShrinking !== undefined && { noShrinking }),
    whyBlocked,
    changesAt: (there) => [...(againAt === undefined ? [] : [againAt]), ...startsEnd(there, now)],
    quotas: deps.quotas.byIndex(BY_NAMESPACE, namespace),
    claimants: () => claimantsIn(deps, namespace),
    held: heldBy(deps, cluster),
  };
}

const actsOf = (deps: GardenNodes, { cluster, open: { client } }: Subject, key: string): NodesActs => ({
  beginEmptying: (node, signal) => beginEmptying(client, node, deps.now(), signal),
  endEmptying: (node, signal) => endEmptying(client, node, signal),
  markEmpty: (node, signal) => markEmpty(client, node, signal),
  evict: (_, pods, turn) => evictAll(client, pods, turn),
  async decide(pool, size, signal) {
    await deps.sizes.decide({ key, uid: cluster.metadata.uid ?? '', pool, size }, signal);
  },
  recordEvent: (type, reason, message) => deps.recordEvent(cluster, type, reason, message),
});

/** Expected properties of a starting node. */
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

/** A cluster that is open to decisions, with its facts. */
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

/** Nodes by name. Excludes those whose machine was ended: the Node exists for a while, and no pod must move there. */
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
      // An agent that has not removed its taint by then will not: the node is no room.
      .map((node) => [node.metadata.name, isYoung(node, now) ? withoutStartupTaints(node, pools) : node]),
  );

/** Whether a nominated node may still take its pod. */
const nominationsOn =
  (nodes: ReadonlyMap<string, Node>, memory: Pick<ClusterMemory, 'nominatedMs'>, now: Date) =>
  ({ metadata, status }: Pod): boolean => {
    const name = status?.nominatedNodeName ?? '';
    const node = nodes.get(name);
    const isThereStill = node !== undefined && isThere(node) && !node.spec.unschedulable;
    return isThereStill && memory.nominatedMs(metadata.uid ?? '', name, +now) < NOMINATION_MS;
  };

/** Whether the Shoot belongs to this WorkerCluster. */
const isMadeOf = (shoot: Shoot | undefined, { metadata }: WorkerCluster): boolean =>
  shoot?.metadata.ownerReferences?.some(({ uid }) => uid === metadata.uid) === true;

/** Why named nodes cannot be removed; undefined: they can. */
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

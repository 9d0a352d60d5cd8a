import { ANNOTATIONS } from '../api/group.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { ReplicaDemand } from '../burst/demand.ts';
import { fitPod } from '../burst/fit/pod.ts';
import { ClusterState as FitState } from '../burst/fit/state.ts';
import { likenessOf } from '../burst/likeness.ts';
import { partsAsked } from '../controllers/autoscaling/nodes-seen.ts';
import { offerOf } from '../controllers/autoscaling/offers.ts';
import type { NodesActs, NodesSight, NodesWorld } from '../controllers/autoscaling/world.ts';
import { EMPTY } from '../controllers/empty-mark.ts';
import { isMovable } from '../kube/pods.ts';
import type { Node } from '../kube/resources.ts';
import { atOnce, oneStep } from '../kube/steps.ts';
import { rehearsedMemberOf, rehearsedReserveOf, SYSTEM_DAEMON } from './members.ts';
import { rehearsedClaimantsIn } from './planning.ts';
import { dateOf, type RehearsedCluster, type Simulation, storeSize } from './state.ts';
import { mayGoTo } from './work-model.ts';

/** Counts actions. */
interface ActCount {
  count: number;
}

/** Nodes of a cluster in the simulated cloud, for one evaluation. */
export const simulatedNodes = (
  simulation: Simulation,
  cluster: RehearsedCluster,
  object: WorkerCluster,
  acts: ActCount,
): NodesWorld => ({ ...sightOf(simulation, cluster, object), ...actsOf(simulation, cluster, acts) });

function sightOf(simulation: Simulation, cluster: RehearsedCluster, object: WorkerCluster): NodesSight {
  const { nodes, decided, key } = cluster;
  const work = simulation.work!;
  const profile = cluster.profile!;
  const { namespace = '' } = object.metadata;
  const offers = {
    cluster: object,
    profile,
    reserve: rehearsedReserveOf(object, profile),
    isOfSeed: false,
    capacity: simulation.capacity.known(object.metadata),
    now: dateOf(simulation),
  };
  return {
    now: () => dateOf(simulation),
    run: async (steps) => atOnce(steps),
    cluster: object,
    profile,
    decided: new Map(decided),
    nodes,
    podIDs: new Set(),
    podsOn: new Map([...nodes.keys()].map((name) => [name, work.podsOn(key, name)])),
    daemons: [SYSTEM_DAEMON],
    waiting: () => oneStep({ demands: demandsOf(simulation, cluster), ignored: [] }),
    offer: (pool) => offerOf(offers, pool, [], new Map()),
    room: (there) => oneStep(roomOf(simulation, cluster, there)),
    parts: partsAsked(cluster.shoot),
    isRemoving: false,
    isManaged: false,
    changesAt: () => [],
    quotas: simulation.scenario.quotas.filter(({ metadata }) => metadata.namespace === namespace),
    claimants: () => rehearsedClaimantsIn(simulation, namespace),
    held: object.status?.admitted,
  };
}

function actsOf(simulation: Simulation, cluster: RehearsedCluster, acts: ActCount): NodesActs {
  const work = simulation.work!;
  const mark = (node: Node, since: string | undefined) => {
    acts.count++;
    const { name } = node.metadata;
    const { [ANNOTATIONS.emptiedSince]: _, ...others } = node.metadata.annotations ?? {};
    const annotations = { ...others, ...(since !== undefined && { [ANNOTATIONS.emptiedSince]: since }) };
    const isClosed = since !== undefined;
    cluster.nodes.set(name, {
      ...node,
      metadata: { ...node.metadata, annotations },
      spec: { ...node.spec, unschedulable: isClosed },
    });
    work.cordon(cluster.key, name, isClosed);
  };
  return {
    async beginEmptying(node) {
      mark(node, dateOf(simulation).toISOString());
    },
    async endEmptying(node) {
      mark(node, undefined);
    },
    async markEmpty(node) {
      const since = node.metadata.annotations?.[ANNOTATIONS.emptiedSince] ?? '';
      if (!since.endsWith(EMPTY)) mark(node, `${since}${EMPTY}`);
    },
    // Its pods go at once, and the next evaluation at the same moment finds the node empty.
    async evict({ metadata: { name } }, pods) {
      work.moveFrom(cluster.key, name, simulation.now);
      return { left: pods.filter(isMovable), blocked: undefined };
    },
    async decide(pool, size) {
      acts.count++;
      storeSize(simulation, cluster, pool, size);
    },
    recordEvent() {},
  };
}

/** Nodes with their allocatable and system pods. */
function roomOf({ work }: Simulation, { key }: RehearsedCluster, nodes: readonly Node[]): FitState {
  const state = new FitState();
  for (const { metadata, spec } of nodes) {
    const { name } = metadata;
    const there = work!.nodeOf(key, name);
    if (!there) continue;
    const { fit, daemons } = there;
    state.addNode(spec.unschedulable ? { ...fit, unschedulable: true } : fit);
    for (const daemon of daemons) state.place(daemon, name);
    for (const { group, count } of work!.groupsOn(key, name)) state.place(fitPod(group.object), name, count);
  }
  return state;
}

/** Pending pods for this cluster: its own, and, where it alone may grow, all that the hub cannot place. */
function demandsOf({ work, scenario, epoch }: Simulation, { key, object, profile }: RehearsedCluster): ReplicaDemand[] {
  const overflowing = scenario.overflow === key ? rehearsedMemberOf(object!, profile) : undefined;
  return [...work!.groups.values()].flatMap((group): ReplicaDemand[] => {
    const isHubs = group.cluster === undefined && overflowing !== undefined && mayGoTo(group, overflowing);
    const isHere = group.cluster === key || isHubs;
    if (!isHere || group.waitingCount === 0) return [];
    return [
      {
        who: group.name,
        replica: fitPod(group.object),
        keys: Array.from({ length: group.waitingCount }, (_, replica) => `${group.rank}/${replica}`),
        since: new Date(epoch + group.waiting[0]!.since).toISOString(),
        source: 'PendingPods',
        isSystem: false,
        likeness: likenessOf(group.object),
      },
    ];
  });
}

import { ALPHA_API_VERSION, LABELS } from '../api/group.ts';
import { EVERY_NAMESPACE, type Hub } from '../api/hub.ts';
import { profileNameOf, type WorkerCluster } from '../api/workercluster.ts';
import type { Movable, Supply } from '../burst/clusters/model.ts';
import { arrivalFailureOf } from '../controllers/burst/arrival.ts';
import type { BurstActs, BurstSight, BurstWorld, ClusterPatch } from '../controllers/burst/world.ts';
import { isAsleep } from '../controllers/membership/member.ts';
import { keyOf } from '../kube/resources.ts';
import { demandProblem } from './admission.ts';
import { poolNow, rehearsedPoolsSeen } from './growth.ts';
import { hubSays } from './hub-work.ts';
import { customKinds, membersAlikeTo } from './kinds.ts';
import { createCluster, deleteCluster } from './lifecycle.ts';
import { isUnderused, rehearsedMemberOf, rehearsedReserveOf } from './members.ts';
import { rewrite } from './places.ts';
import { rehearsedClaimantsIn } from './planning.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { dateOf, newCluster, type RehearsedCluster, type Simulation, storeSize } from './state.ts';
import { tellOutcome } from './tell-outcome.ts';

/** The operator's limit of pending pods read per cluster. */
const MOST_PENDING = 500;

/** The world of a rehearsed policy: clusters of the simulated cloud, and a hub that places workloads at once. */
export const simulatedWorld = (simulation: Simulation, rehearsed: RehearsedPolicy): BurstWorld => ({
  ...simulatedSight(simulation, rehearsed),
  ...simulatedActs(simulation, rehearsed),
});

const hubNamed = (name: string): Hub =>
  ({
    apiVersion: ALPHA_API_VERSION,
    kind: 'Hub',
    metadata: { name },
    spec: { type: 'Karmada', allowedNamespaces: [EVERY_NAMESPACE] },
    status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '' }] },
  }) as unknown as Hub;

/** The object as in an API server: with the spec of its own place. */
const objectOf = (state: RehearsedCluster | undefined): WorkerCluster | undefined =>
  state?.object && state.place > 0 ? { ...state.object, spec: state.spec } : state?.object;

const wantedBy = ({ pools }: RehearsedCluster): number =>
  [...pools.values()].reduce((sum, pool) => sum + pool.wanted, 0);

/**
 * Whether a hub could place workloads there if it were open: as in a garden, a cluster with desired nodes needs one
 * first.
 */
const isUsable = (state: RehearsedCluster): boolean => state.serves && (state.hasHadNode || wantedBy(state) === 0);

/** Whether the hub may place workloads there, or already does. */
const isJoined = (state: RehearsedCluster): boolean =>
  state.object !== undefined &&
  isUsable(state) &&
  !isAsleep(state.object) &&
  !state.object.metadata.labels?.[LABELS.burstWarm];

function simulatedSight(simulation: Simulation, { policy }: RehearsedPolicy): BurstSight {
  const { clusters, scenario, capacity } = simulation;
  const work = simulation.work!;
  const hub = hubNamed(policy.spec.hub);
  const stateOf = (cluster: WorkerCluster) => clusters.get(keyOf(cluster));
  const ownWork = (key: string) => [...work.groups.values()].filter((group) => group.cluster === key);
  const waitingIn = (cluster: WorkerCluster) =>
    ownWork(keyOf(cluster))
      .flatMap(({ pod, waitingCount }) => Array.from({ length: Math.min(MOST_PENDING, waitingCount) }, () => pod))
      .slice(0, MOST_PENDING);
  const objects = () => [...clusters.values()].flatMap((state) => objectOf(state) ?? []);
  return {
    now: () => dateOf(simulation),
    policies: { byIndex: () => [policy] },
    hubs: { get: () => hub },
    clusters: {
      get: (key) => objectOf(clusters.get(key)),
      byIndex: (_, namespace) => objects().filter(({ metadata }) => metadata.namespace === namespace),
    },
    profiles: scenario.profiles,
    quotas: { byIndex: (_, namespace) => scenario.quotas.filter(({ metadata }) => metadata.namespace === namespace) },
    capacity,
    claimants: (namespace) => rehearsedClaimantsIn(simulation, namespace),
    heldBy: ({ status }) => status?.admitted,
    decided: (cluster) => stateOf(cluster)?.decided ?? 'none',
    sleepOrder: (key) => clusters.get(key)?.sleepOrder ?? 'none',
    hear: async () => hubSays(simulation),
    asksOf: async () => undefined,
    members: () =>
      [...clusters.values()].flatMap((state) =>
        isJoined(state) && !state.object?.metadata.deletionTimestamp ? (objectOf(state) ?? []) : [],
      ),
    member(_, cluster) {
      const state = stateOf(cluster);
      const candidate = state ? state.candidate : cluster.metadata.labels?.[LABELS.burstCandidate];
      const profile = scenario.profiles.get(profileNameOf(cluster));
      // The member as the hub will see it.
      return {
        ...rehearsedMemberOf(cluster, profile),
        ...(!state?.serves && { alike: membersAlikeTo(simulation, candidate) }),
      };
    },
    nameIn: (_, { metadata }) => metadata.name,
    // The simulated hub reports no placements: workloads run as soon as they are placed.
    workOn: () => [],
    keeps: (_, cluster, profile) => ({ reserve: rehearsedReserveOf(cluster, profile) }),
    room: (_, cluster) => roomIn(simulation, stateOf(cluster)),
    pending: waitingIn,
    lacking: waitingIn,
    pools(_, cluster) {
      const state = stateOf(cluster);
      return state && rehearsedPoolsSeen(simulation, state);
    },
    poolNow: (growth) => poolNow(simulation, growth),
    sight(its, cluster) {
      const key = keyOf(cluster);
      const state = clusters.get(key)!;
      const joined = isJoined(state);
      return {
        isJoined: joined,
        isReady: isUsable(state),
        // As in a garden, pods waiting for a node of the cluster count as workload; a cluster that does not answer
        // is unknown.
        isWorkless: state.serves
          ? !work.isBusy(key) && !ownWork(key).some(({ waitingCount }) => waitingCount > 0)
          : undefined,
        isUnderused: joined ? isUnderused(simulation, its, key) : undefined,
        wanted: wantedBy(state),
      };
    },
    failure(cluster) {
      const { machineRefusal: description = '', machineRefusalCode: code } = stateOf(cluster) ?? {};
      const refused = description && code ? [{ description, codes: [code] }] : [];
      const lastErrors = [...(cluster.status?.lastErrors ?? []), ...refused];
      return arrivalFailureOf({ ...cluster, status: { ...cluster.status, lastErrors } });
    },
    readyNodes: (cluster) => [...(stateOf(cluster)?.nodes.values() ?? [])],
    sleepsBySpec: (_, { metadata, ...cluster }) =>
      !metadata.deletionTimestamp &&
      metadata.labels?.[LABELS.burstPolicy] === undefined &&
      isAsleep({ metadata, ...cluster }) &&
      !clusters.get(keyOf({ metadata, ...cluster }))?.sleepOrder,
    movable: async (_, cluster): Promise<Movable> => work.movable(keyOf(cluster), customKinds(simulation)),
    // The simulated hub moves workloads at once.
    emptying: (_, cluster) => ({ hasBegun: true, isDone: !work.isBusy(keyOf(cluster)) }),
    isMoving: () => objects().some(({ metadata }) => metadata.labels?.[LABELS.burstEmptying] !== undefined),
    whyRefused: async ({ spec }) => demandProblem(spec),
    live: async (name, namespace) => objectOf(clusters.get(`${namespace}/${name}`)),
    claims: () => false,
  };
}

function roomIn({ work }: Simulation, state: RehearsedCluster | undefined): Supply['nodes'] {
  return [...(state?.nodes.keys() ?? [])].flatMap((name) => {
    const there = work!.room.node(work!.nameOf(state!.key, name));
    if (!there) return [];
    const pods = [...there.pods].flatMap(([pod, count]) => Array.from({ length: count }, () => pod));
    return [{ node: { ...there.node, name }, pods }];
  });
}

function simulatedActs(simulation: Simulation, rehearsed: RehearsedPolicy): BurstActs {
  const { clusters } = simulation;
  const work = simulation.work!;
  return {
    receipts: {
      read: async () => rehearsed.receipt,
      madeFrom: (next) => next,
      async save(_, receipt) {
        rehearsed.receipt = receipt;
      },
      async remove() {},
    },
    async hold() {},
    async create(cluster) {
      const { labels } = cluster.metadata;
      const key = keyOf(cluster);
      const state = newCluster(key, cluster, simulation.scenario, labels?.[LABELS.burstCandidate]);
      clusters.set(key, state);
      if (labels?.[LABELS.burstWarm]) work.close(key);
      createCluster(simulation, state, cluster.spec);
    },
    async patch(cluster, patch) {
      change(simulation, clusters.get(keyOf(cluster))!, patch);
    },
    async delete(cluster) {
      deleteCluster(simulation, clusters.get(keyOf(cluster))!);
    },
    async decide({ key, pool, size }) {
      storeSize(simulation, clusters.get(key)!, pool, size);
    },
    async orderSleep(key, _, order) {
      const state = clusters.get(key)!;
      // Withdrawing a sleep order, or ordering to be awake, wakes the cluster.
      if (order ? !order.asleep : state.sleepOrder?.asleep === true) state.hasHadNode = false;
      if (order?.asleep) work.close(key);
      else if (state.sleepOrder?.asleep) work.reopen(key);
      state.sleepOrder = order;
      simulation.toPlan.add(state);
    },
    // Reclaimed machines are recorded where the cloud reclaims them.
    noteInterruptions() {},
    told() {},
    tell: async (_, outcome) => tellOutcome(simulation, rehearsed, outcome),
    async fail(_, error) {
      throw error;
    },
    async answer() {},
    recordEvent() {},
  };
}

/** Changes a cluster's spec or its labels, by which the hub places workloads or moves them away. */
function change(
  simulation: Simulation,
  state: RehearsedCluster,
  { metadata: { labels = {} }, spec }: ClusterPatch,
): void {
  const work = simulation.work!;
  const { key } = state;
  const { metadata } = state.object!;
  const next = Object.entries({ ...metadata.labels, ...labels }).filter(
    (one): one is [string, string] => one[1] !== null,
  );
  state.object = { ...state.object!, metadata: { ...metadata, labels: Object.fromEntries(next) } };
  if (labels[LABELS.burstEmptying]) work.moveAway(key, simulation.now);
  else if (labels[LABELS.burstEmptying] === null || labels[LABELS.burstWarm] === null) work.reopen(key);
  if (!spec) return;
  rewrite(simulation, state, { ...state.spec, ...spec });
  // Its autoscaler runs again: pools may grow or shrink.
  state.sizedFor = -1;
}

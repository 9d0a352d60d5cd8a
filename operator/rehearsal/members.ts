import type { BurstPolicy } from '../api/burstpolicy.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import { isSizedByCloud } from '../api/pools.ts';
import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import type { HubMember } from '../burst/clusters/model.ts';
import { clusterOfferOf, EXPECTED_SYSTEM_POD, type OfferInputs, offeredBy } from '../burst/clusters/offer.ts';
import { daemonsOn } from '../burst/fit/daemons.ts';
import type { FitNode } from '../burst/fit/model.ts';
import { MANAGED_RESERVES, type Reserve } from '../burst/fit/reserve.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import type { Daemon } from '../controllers/autoscaling/nodes-seen.ts';
import { allocatableOfMachine } from '../controllers/autoscaling/offers.ts';
import { emptiesUnderused, hasLittleWork } from '../controllers/burst/own-clusters.ts';
import { labelsOf, zonesOf } from '../controllers/membership/member-labels.ts';
import type { Node } from '../kube/resources.ts';
import type { PoolState, RehearsedCluster, SimulatedMachine, Simulation } from './state.ts';

/** The only part of a hub's spec that a rehearsal reads. */
const HUB = { type: 'Karmada' } as HubSpec;
/** Control plane mode of a cluster in the simulated cloud. */
export const modeOf = ({ spec }: Pick<WorkerCluster, 'spec'>, profile: CloudProfile | undefined) =>
  spec.mode ?? profile?.spec.defaults?.mode ?? 'Hosted';

/** Node reserve as the operator computes it for this cloud. */
export const rehearsedReserveOf = (cluster: Pick<WorkerCluster, 'spec'>, profile: CloudProfile): Reserve => {
  const managed = MANAGED_RESERVES[profile.spec.type];
  if (managed === undefined) return 'none';
  return modeOf(cluster, profile) === 'Managed' ? managed : 'machines';
};

/** Memoized per pair of immutable objects: each evaluation reads all clusters. */
function oncePerCluster<P extends CloudProfile | undefined, T>(make: (cluster: WorkerCluster, profile: P) => T) {
  const known = new WeakMap<WorkerCluster, { readonly profile: P; readonly made: T }>();
  return (cluster: WorkerCluster, profile: P): T => {
    const before = known.get(cluster);
    if (before && before.profile === profile) return before.made;
    const made = make(cluster, profile);
    known.set(cluster, { profile, made });
    return made;
  };
}

/** A cluster as the hub knows it, or would know it once created. */
export const rehearsedMemberOf = oncePerCluster(
  (cluster: WorkerCluster, profile: CloudProfile | undefined): HubMember => {
    const region = cluster.spec.region ?? profile?.spec.defaults?.region ?? profile?.spec.regions[0]?.name;
    const mode = modeOf(cluster, profile);
    const made: WorkerCluster = { ...cluster, status: { ...(region && { region }), mode, ...cluster.status } };
    const name = cluster.metadata.name;
    return { name, labels: labelsOf(made, HUB, { profile }), zones: zonesOf(made, { profile }) };
  },
);

/** Input of a cluster's offers. */
export const offerInputs = (
  cluster: WorkerCluster,
  profile: CloudProfile,
  { currency, assumedHourly }: Pick<OfferInputs, 'currency' | 'assumedHourly'>,
): OfferInputs => ({
  cluster,
  profile,
  member: rehearsedMemberOf(cluster, profile),
  reserve: rehearsedReserveOf(cluster, profile),
  currency,
  assumedHourly,
});

const ANY = 'USD';

/** Offers for the next nodes of a cluster's pools, priced in the currency of its profile. */
export const offeredPools = oncePerCluster((cluster: WorkerCluster, profile: CloudProfile) => {
  const { currency = ANY } = profile.spec.controlPlaneFee ?? {};
  return clusterOfferOf(offerInputs(cluster, profile, { currency })).pools;
});

/**
 * The spec in the rehearsal: for a pool sized by a cloud's autoscaler Coppice's decider stands in, since there is no
 * cloud. Clouds remove empty nodes by about the same rules.
 */
export function playedSpec(cluster: WorkerCluster, profile: CloudProfile | undefined): WorkerClusterSpec {
  const { spec } = cluster;
  if (!profile || !spec.pools || modeOf(cluster, profile) !== 'Managed') return spec;
  const ofCloud = new Set(
    desiredSizes({ cluster, profile })
      .filter(isSizedByCloud)
      .map(({ name }) => name),
  );
  return {
    ...spec,
    pools: spec.pools.map((pool) => (ofCloud.has(pool.name) ? { ...pool, autoscale: 'Coppice' as const } : pool)),
  };
}

/** System pods of each node, modelled as one DaemonSet. */
export const SYSTEM_DAEMON: Daemon = { name: 'kube-system/system', pod: EXPECTED_SYSTEM_POD };

/** A pool's node as scheduling sees it. */
export function fitNodeOf(cluster: RehearsedCluster, pool: PoolState, node: string): FitNode | undefined {
  const { profile, shoot, object } = cluster;
  const type = profile?.spec.machineTypes.find(({ name }) => name === pool.machineType);
  if (!profile || !type || !object) return undefined;
  const wanted = cluster.wanted.find(({ name }) => name === pool.name);
  const [zone, ...others] = wanted?.zones ?? [];
  return {
    name: node,
    labels: {
      ...wanted?.labels,
      'node.kubernetes.io/instance-type': type.name,
      'topology.kubernetes.io/region': shoot?.spec.region ?? '',
      // Same as in the planner, which promises no zone where there are several.
      ...(zone !== undefined && others.length === 0 && { 'topology.kubernetes.io/zone': zone }),
      [LABELS.pool]: pool.name,
      'kubernetes.io/arch': type.architecture ?? 'amd64',
      'kubernetes.io/os': 'linux',
    },
    taints: wanted?.taints ?? [],
    unschedulable: false,
    allocatable: offeredBy(type, { reserve: rehearsedReserveOf(object, profile) }),
    attachLimits: new Map(),
  };
}

/** A node becomes Ready and takes workloads. */
export function nodeJoins(
  simulation: Simulation,
  cluster: RehearsedCluster,
  { machine, askedAt }: SimulatedMachine,
): void {
  cluster.hasHadNode = true;
  const { profile, object } = cluster;
  const pool = cluster.pools.get(machine.pool)!;
  const room = simulation.work && fitNodeOf(cluster, pool, machine.nodeName);
  const type = profile?.spec.machineTypes.find(({ name }) => name === pool.machineType);
  if (!room || !type || !profile || !object) return;
  const fit = { ...room, allocatable: allocatableOfMachine(type, rehearsedReserveOf(object, profile)) };
  cluster.nodes.set(machine.nodeName, labelled(cluster.nodes.get(machine.nodeName)!, room));
  // Machines of a new cluster have been awaited since the cluster was ordered.
  const since = askedAt === cluster.servesSince ? cluster.orderedAt : askedAt;
  simulation.work?.addNode(
    {
      cluster: cluster.key,
      node: machine.nodeName,
      fit,
      daemons: daemonsOn(fit, [SYSTEM_DAEMON.pod]),
      member: rehearsedMemberOf(object, profile),
      readyAt: simulation.now,
      startupMs: simulation.now - since,
    },
    room,
  );
}

const labelled = (node: Node, { labels, taints }: FitNode): Node => ({
  ...node,
  metadata: { ...node.metadata, labels },
  spec: { ...node.spec, taints: [...taints] },
});

/** Whether a cluster is underused; undefined: unknown, or irrelevant to its policy. */
export function isUnderused({ work }: Simulation, policy: BurstPolicy, key: string): boolean | undefined {
  const used = emptiesUnderused(policy) ? work!.utilization(key) : undefined;
  return used === undefined ? undefined : hasLittleWork(policy, used);
}

import type { BurstPolicy } from '../api/burstpolicy.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import type { HubSpec } from '../api/hub.ts';
import { isSizedByCloud } from '../api/pools.ts';
import { formatCpu } from '../api/quantity.ts';
import type { WorkerCluster, WorkerClusterSpec } from '../api/workercluster.ts';
import type { HubMember } from '../burst/clusters/model.ts';
import { type OfferInputs, offeredBy, offerOf, SYSTEM } from '../burst/clusters/offer.ts';
import { daemonsOn } from '../burst/fit/daemons.ts';
import type { FitNode } from '../burst/fit/model.ts';
import { fitPod } from '../burst/fit/pod.ts';
import { MANAGED_RESERVES, type Reserve } from '../burst/fit/reserve.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import type { Daemon } from '../controllers/autoscaling/nodes-seen.ts';
import { allocatableOfMachine } from '../controllers/autoscaling/offers.ts';
import { emptiesUnderused, hasLittleWork } from '../controllers/burst/own-clusters.ts';
import { labelsOf, zonesOf } from '../controllers/membership/member-labels.ts';
import type { Node } from '../kube/resources.ts';
import type { ClusterState, PoolState, SimulatedMachine, Simulation } from './state.ts';

/** All that a rehearsed hub asks of a hub's spec. */
const HUB = { type: 'Karmada' } as HubSpec;
/** Who would run the control plane in the cloud that is played. */
export const modeOf = ({ spec }: Pick<WorkerCluster, 'spec'>, profile: CloudProfile | undefined) =>
  spec.mode ?? profile?.spec.defaults?.mode ?? 'Hosted';

/** As the operator reckons it for the cloud that is played here. */
export const reserveOf = (cluster: Pick<WorkerCluster, 'spec'>, profile: CloudProfile): Reserve => {
  const managed = MANAGED_RESERVES[profile.spec.type];
  if (managed === undefined) return 'none';
  return modeOf(cluster, profile) === 'Managed' ? managed : 'machines';
};

/** The same for each pair of objects, which nobody changes: each look asks about all clusters. */
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

/** How the hub knows a cluster, or would know one that is not there yet. */
export const memberOf = oncePerCluster((cluster: WorkerCluster, profile: CloudProfile | undefined): HubMember => {
  const region = cluster.spec.region ?? profile?.spec.defaults?.region ?? profile?.spec.regions[0]?.name;
  const mode = modeOf(cluster, profile);
  const made: WorkerCluster = { ...cluster, status: { ...(region && { region }), mode, ...cluster.status } };
  const name = cluster.metadata.name;
  return { name, labels: labelsOf(made, HUB, { profile }), zones: zonesOf(made, { profile }) };
});

/** What offers of such a cluster rest on. */
export const offerInputs = (
  cluster: WorkerCluster,
  profile: CloudProfile,
  { currency, assumedHourly }: Pick<OfferInputs, 'currency' | 'assumedHourly'>,
): OfferInputs => ({
  cluster,
  profile,
  member: memberOf(cluster, profile),
  reserve: reserveOf(cluster, profile),
  currency,
  assumedHourly,
});

const ANY = 'USD';

/** What the next nodes of the pools of a cluster would be, with their prices in the currency of its profile. */
export const offeredPools = oncePerCluster((cluster: WorkerCluster, profile: CloudProfile) => {
  const { currency = ANY } = profile.spec.controlPlaneFee ?? {};
  return offerOf(offerInputs(cluster, profile, { currency })).pools;
});

/**
 * The spec as it is played: where a cloud's own autoscaler sizes a pool, Coppice's decider stands in for it, since there is no cloud. A cloud
 * takes empty nodes away as well, by about the same rules.
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

/** What the system takes of each node: here it is one DaemonSet. */
export const SYSTEM_DAEMON: Daemon = {
  name: 'kube-system/system',
  pod: fitPod({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'system', namespace: 'kube-system' },
    spec: {
      tolerations: [{ operator: 'Exists' }],
      containers: [
        { name: 'system', resources: { requests: { cpu: formatCpu(SYSTEM.cpu), memory: String(SYSTEM.memory) } } },
      ],
    },
  }),
};

/** What a node of a pool is to work. */
export function fitNodeOf(cluster: ClusterState, pool: PoolState, node: string): FitNode | undefined {
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
      // As the planner has it: of several zones it promises none.
      ...(zone !== undefined && others.length === 0 && { 'topology.kubernetes.io/zone': zone }),
      [LABELS.pool]: pool.name,
      'kubernetes.io/arch': type.architecture ?? 'amd64',
      'kubernetes.io/os': 'linux',
    },
    taints: wanted?.taints ?? [],
    unschedulable: false,
    allocatable: offeredBy(type, { reserve: reserveOf(object, profile) }),
    attachLimits: new Map(),
  };
}

/** A node is Ready, and takes work. */
export function nodeJoins(simulation: Simulation, cluster: ClusterState, { machine, askedAt }: SimulatedMachine): void {
  cluster.hasHadNode = true;
  const { profile, object } = cluster;
  const pool = cluster.pools.get(machine.pool)!;
  const room = simulation.work && fitNodeOf(cluster, pool, machine.nodeName);
  const type = profile?.spec.machineTypes.find(({ name }) => name === pool.machineType);
  if (!room || !type || !profile || !object) return;
  const fit = { ...room, allocatable: allocatableOfMachine(type, reserveOf(object, profile)) };
  cluster.nodes.set(machine.nodeName, labelled(cluster.nodes.get(machine.nodeName)!, room));
  // Machines of a new cluster were waited for since that was ordered.
  const since = askedAt === cluster.servesSince ? cluster.orderedAt : askedAt;
  simulation.work?.addNode(
    {
      cluster: cluster.key,
      node: machine.nodeName,
      fit,
      daemons: daemonsOn(fit, [SYSTEM_DAEMON.pod]),
      member: memberOf(object, profile),
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

/** Whether a cluster has little work; undefined: nobody can tell, or its policy does not ask. */
export function isUnderused({ work }: Simulation, policy: BurstPolicy, key: string): boolean | undefined {
  const used = emptiesUnderused(policy) ? work!.utilization(key) : undefined;
  return used === undefined ? undefined : hasLittleWork(policy, used);
}

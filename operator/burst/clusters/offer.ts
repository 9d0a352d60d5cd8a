import type { CloudProfile, MachineType } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import { type DesiredPool, isSizedByCloud } from '../../api/pools.ts';
import { formatCpu, readBytes, readCpu } from '../../api/quantity.ts';
import { MAX_NODES, type WorkerPool } from '../../api/worker-pool.ts';
import type { WorkerCluster, WorkerClusterSpec } from '../../api/workercluster.ts';
import { desiredSizes, isCoppices, type SizeInputs } from '../../capacity/desired-sizes.ts';
import { clusterBilling } from '../../cost/billing.ts';
import { type Micros, parseMoney } from '../../cost/money.ts';
import { machinePrice, priceOf } from '../../cost/price.ts';
import { askedSize } from '../../cost/size.ts';
import { withoutDaemons } from '../fit/daemons.ts';
import type { FitPod, NodeTemplate } from '../fit/model.ts';
import { fitPod } from '../fit/pod.ts';
import { allocatableOfType, type Reserve } from '../fit/reserve.ts';
import type { ClusterOffer, ClusterPrice, HubMember, OfferedPool, PlannedNodes } from './model.ts';

/** Pods per node when the machine type does not say: kubelet's default. */
const DEFAULT_PODS = 110;
/** Assumed share of system pods on a new node: DNS, tunnels, agents of hubs. Millicores and bytes. */
const SYSTEM = { cpu: 100, memory: 128 * 2 ** 20, pods: 1 };

/** The same as a DaemonSet's pod: expected on a new node of a cluster whose DaemonSets are unknown. */
export const EXPECTED_SYSTEM_POD = fitPod({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'system', namespace: 'kube-system' },
  spec: {
    tolerations: [{ operator: 'Exists' }],
    containers: [
      { name: 'system', resources: { requests: { cpu: formatCpu(SYSTEM.cpu), memory: String(SYSTEM.memory) } } },
    ],
  },
});

type Allocatable = NodeTemplate['allocatable'];

/** Inputs of an offer. */
export interface OfferInputs {
  /** The cluster, planned or existing. */
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  readonly member: HubMember;
  /** Formula for kubelet's reserved resources. */
  readonly reserve: Reserve;
  /** Expected DaemonSets of its nodes, from similar clusters. Absent: none. */
  readonly daemons?: readonly FitPod[] | undefined;
  /** Room that the hub counts for a node of this size and free room. Absent: all free room. */
  readonly counts?: ((free: Allocatable, size: Allocatable) => Allocatable) | undefined;
  readonly currency: string;
  /** Assumed price per hour when a price is missing; undefined: then the offer has no price. */
  readonly assumedHourly?: string | undefined;
  /**
   * A policy grants nodes to pools that Coppice sizes, and counts the grants. Absent: such pools count with their
   * maximum.
   */
  readonly grantsNodes?: true | undefined;
}

/** Offer of a cluster with this spec: room and price. Pure. */
export function clusterOfferOf(inputs: OfferInputs): ClusterOffer {
  const { cluster, profile, member } = inputs;
  const pools = desiredSizes({ cluster, profile });
  return {
    member,
    pools: pools.flatMap((pool) => poolOf(inputs, pool)),
    price: (nodes) => priceWith(inputs, nodes),
  };
}

/** Nodes of a cluster when it is ready or awake again: the last decided sizes. Pure. */
export const offeredNodesOf = (inputs: Omit<OfferInputs, 'currency'> & Pick<SizeInputs, 'decided'>): PlannedNodes[] =>
  desiredSizes(inputs).flatMap((pool) => {
    const [offered] = poolOf({ ...inputs, currency: '' }, pool);
    return offered ? [{ template: offered.template, count: pool.count }] : [];
  });

/**
 * The spec with at least these nodes per pool, and at most the granted ones. Pure.
 * @param granted by pool. Absent: each keeps its maximum
 */
export function withNodes(
  spec: WorkerClusterSpec,
  nodes: Readonly<Record<string, number>>,
  granted: Readonly<Record<string, { readonly nodes: number }>> = {},
): WorkerClusterSpec {
  if (!spec.pools) return spec;
  const pools = spec.pools.map((pool) => {
    const wanted = nodes[pool.name] ?? 0;
    const raised =
      wanted > (pool.minimum ?? 0) && spec.dataPlaneNodes === undefined ? { ...pool, minimum: wanted } : pool;
    const most = granted[pool.name]?.nodes;
    return most === undefined ? raised : { ...raised, maximum: Math.max(most, raised.minimum ?? 0) };
  });
  return { ...spec, pools };
}

/** The cluster with pool maximums raised to these sizes. Pure. */
export function withRoomFor(
  cluster: WorkerCluster,
  growths: readonly { readonly pool: string; readonly to: number }[],
): WorkerCluster {
  const larger = (pool: WorkerPool) =>
    Math.max(0, ...growths.flatMap((one) => (one.pool === pool.name ? [one.to] : [])));
  const pools = cluster.spec.pools?.map((pool) =>
    pool.maximum !== undefined && pool.maximum < larger(pool) ? { ...pool, maximum: larger(pool) } : pool,
  );
  return pools && growths.length > 0 ? { ...cluster, spec: { ...cluster.spec, pools } } : cluster;
}

/**
 * The spec with the smallest minimums that its template allows, for pools that Coppice sizes: the minimums of the
 * purchase would keep unneeded nodes. Other pools keep their size. At least one node of the cheapest pool stays,
 * because a hub places nothing on a cluster without nodes. Pure.
 * @param there the same cluster in its actual place, whose prices count
 * @param nodes as bought
 * @returns undefined: no change
 */
export function withMinimumsOf(
  spec: WorkerClusterSpec,
  { cluster, profile }: Pick<OfferInputs, 'cluster' | 'profile'>,
  template: WorkerClusterSpec,
  nodes: Readonly<Record<string, number>>,
): WorkerClusterSpec | undefined {
  const leasts = new Map((template.pools ?? []).filter(isCoppices).map(({ name, minimum = 0 }) => [name, minimum]));
  const least = ({ name, minimum = 0 }: WorkerPool): number =>
    minimum === nodes[name] ? Math.min(minimum, leasts.get(name) ?? minimum) : minimum;
  const hasOne = spec.pools?.some((pool) => least(pool) > 0);
  const [only, ...more] = hasOne ? [] : (spec.pools ?? []).filter(({ minimum = 0 }) => minimum > 0);
  const kept = more.length > 0 ? cheapestOf(pricesOfMinimums(cluster, profile)) : only;
  const pools = spec.pools?.map((pool) => ({ pool, minimum: pool.name === kept?.name ? 1 : least(pool) }));
  if (!pools?.some(({ pool, minimum }) => minimum < (pool.minimum ?? 0))) return undefined;
  return { ...spec, pools: pools.map(({ pool, minimum }) => (minimum === pool.minimum ? pool : { ...pool, minimum })) };
}

/** Price per node and hour of pools with a minimum. */
function pricesOfMinimums(cluster: WorkerCluster, profile: CloudProfile) {
  const region = regionOf({ cluster, profile });
  return desiredSizes({ cluster, profile }).flatMap(({ name, machineType, spot, minimum }) => {
    const type = profile.spec.machineTypes.find((one) => one.name === machineType);
    return minimum > 0 ? [{ name, price: type && machinePrice(type, region, spot) }] : [];
  });
}

/** The cheapest pool, ties by name. undefined: no pools. */
export const cheapestOf = <P extends { readonly name: string; readonly price: Micros | undefined }>(
  pools: readonly P[],
): P | undefined =>
  [...pools].sort((a, b) => Number((a.price ?? 0n) - (b.price ?? 0n)) || (a.name < b.name ? -1 : 1))[0];

/** Number of nodes that counts for a cluster: pools with a cloud's autoscaler count with their maximum. */
export const countedNodes = ({ pools }: ClusterOffer, nodes: ReadonlyMap<string, number>): number =>
  pools.reduce(
    (sum, { name, minimum, autoscaledTo = 0 }) => sum + Math.max(nodes.get(name) ?? minimum, autoscaledTo),
    0,
  );

/** Region of a cluster, else of its profile. */
export const regionOf = ({ cluster: { spec }, profile }: Pick<OfferInputs, 'cluster' | 'profile'>): string =>
  spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name ?? '';

/** The offered pool; empty when the profile lacks its machine type: admission will refuse the spec. */
function poolOf(inputs: OfferInputs, pool: DesiredPool): OfferedPool[] {
  const { cluster, profile, currency } = inputs;
  const type = profile.spec.machineTypes.find(({ name }) => name === pool.machineType);
  if (!type) return [];
  const region = regionOf(inputs);
  const [zone, ...others] = pool.zones;
  const made: NodeTemplate = {
    id: pool.name,
    labels: {
      ...pool.labels,
      'node.kubernetes.io/instance-type': type.name,
      'topology.kubernetes.io/region': region,
      // With several zones, the zone of a new node is unknown.
      ...(zone !== undefined && others.length === 0 && { 'topology.kubernetes.io/zone': zone }),
      [LABELS.pool]: pool.name,
      'kubernetes.io/arch': type.architecture ?? 'amd64',
      'kubernetes.io/os': 'linux',
    },
    taints: pool.taints,
    allocatable: offeredBy(type, { reserve: inputs.reserve }),
    attachLimits: new Map(),
  };
  const forWork = (free: Allocatable) => withoutDaemons(made, free, inputs.daemons ?? []);
  const template = { ...made, allocatable: offeredBy(type, inputs, forWork) };
  const price = type.price?.currency === currency ? machinePrice(type, region, pool.spot) : undefined;
  const most = cluster.spec.dataPlaneNodes === undefined ? Math.min(MAX_NODES, pool.maximum) : pool.count;
  const mode = cluster.spec.mode ?? profile.spec.defaults?.mode;
  const isGranted = isCoppices(pool) && inputs.grantsNodes === true;
  const autoscales = (isCoppices(pool) && !isGranted) || (mode === 'Managed' && isSizedByCloud(pool));
  return [
    {
      name: pool.name,
      template,
      minimum: pool.count,
      most: Math.max(pool.count, most),
      ...(autoscales && Number.isFinite(pool.maximum) && { autoscaledTo: pool.maximum }),
      ...(isGranted && { isGranted }),
      price,
    },
  ];
}

/** Room for work on a machine type of which no node exists yet; none when the profile's quantities are invalid. */
export function offeredBy(
  type: MachineType,
  { reserve, counts }: Pick<OfferInputs, 'reserve' | 'counts'>,
  forWork: (free: Allocatable) => Allocatable = (free) => free,
): Allocatable {
  try {
    const sold = {
      millicores: readCpu(type.cpu),
      bytes: readBytes(type.memory),
      gpus: gpusOf(type),
      pods: type.pods ?? DEFAULT_PODS,
    };
    const offered = allocatableOfType(sold, reserve);
    const left = (of: keyof typeof SYSTEM) => Math.max(0, offered[of] - SYSTEM[of]);
    const free = forWork({ ...offered, cpu: left('cpu'), memory: left('memory'), pods: left('pods') });
    return counts?.(free, offered) ?? free;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return { cpu: 0, memory: 0, storage: 0, others: new Map(), pods: 0 };
  }
}

/** Sizes of the cluster with these nodes per pool: expected, counted by quotas, and reachable by autoscalers. Pure. */
export function sizeWith(
  { cluster, profile, grantsNodes }: Pick<OfferInputs, 'cluster' | 'profile' | 'grantsNodes'>,
  nodes: Readonly<Record<string, number>>,
) {
  const made = { ...cluster, spec: withNodes(cluster.spec, nodes) };
  const pools = desiredSizes({ cluster: made, profile });
  const asked = askedSize(made, profile, pools);
  const withCounts = (count: (pool: DesiredPool) => number): ClusterSize => ({
    ...asked,
    pools: asked.pools.map((one) => {
      const pool = pools.find(({ name }) => name === one.name);
      return pool ? { ...one, count: count(pool) } : one;
    }),
  });
  const counted = new Map(asked.pools.map(({ name, count }) => [name, count]));
  const now = withCounts(({ count }) => count);
  const most = withCounts((pool) =>
    Math.max(counted.get(pool.name) ?? 0, isCoppices(pool) && !grantsNodes ? pool.maximum : pool.count),
  );
  return { now, asked, most };
}

/** What a cluster costs less per hour, and in what budgets count, than with these nodes; undefined: unknown. Pure. */
export function savedBy(
  inputs: Pick<OfferInputs, 'cluster' | 'profile' | 'currency' | 'assumedHourly' | 'grantsNodes'>,
  before: Readonly<Record<string, number>>,
): { readonly hourly: Micros; readonly most: Micros; readonly mostNodes: number } | undefined {
  const [was, is] = [priceWith(inputs, new Map(Object.entries(before))), priceWith(inputs, new Map())];
  if (typeof was === 'string' || typeof is === 'string') return undefined;
  const countOf = (nodes: Readonly<Record<string, number>>) =>
    sizeWith(inputs, nodes).most.pools.reduce((sum, { count }) => sum + count, 0);
  return { hourly: was.hourly - is.hourly, most: was.most - is.most, mostNodes: countOf(before) - countOf({}) };
}

function priceWith(
  inputs: Pick<OfferInputs, 'cluster' | 'profile' | 'currency' | 'assumedHourly' | 'grantsNodes'>,
  nodes: ReadonlyMap<string, number>,
): ClusterPrice | string {
  const { profile, currency, assumedHourly } = inputs;
  const size = sizeWith(inputs, Object.fromEntries(nodes));
  const [now, most] = [priceOf(size.now, profile), priceOf(size.most, profile)];
  const isKnown = most.unpricedCount === 0 && (most.currency === currency || (most.hourly ?? 0n) === 0n);
  const hasPrices = most.currency !== undefined;
  const billing = clusterBilling(size.now, profile);
  if (isKnown && hasPrices) return { hourly: now.hourly ?? 0n, most: most.hourly ?? 0n, ...(billing && { billing }) };
  if (assumedHourly !== undefined) {
    const assumed: Micros = parseMoney(assumedHourly);
    return { hourly: assumed, most: assumed, ...(billing && { billing }) };
  }
  const missing = most.unpriced[0] ?? `CloudProfile ${profile.metadata.name} has no prices in ${currency}`;
  return `not all of it has a price in ${currency} (${missing}), and assumedHourly does not say for how much it counts`;
}

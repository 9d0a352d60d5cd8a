import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile, MachineType } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { readBytes, readCpu } from '../../api/quantity.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { NodeTemplate } from '../../burst/fit/model.ts';
import { allocatableOf, attachLimitsOf, type CSINode } from '../../burst/fit/node.ts';
import { allocatableOfType, MANAGED_RESERVES, type Reserve, type Sold } from '../../burst/fit/reserve.ts';
import { INTERRUPTION_TAINTS } from '../../burst/nodes/interruption.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { bestOffer, isInterrupted } from '../../capacity/allocation.ts';
import { type KnownCapacity, machineTypesOf, marketFor } from '../../capacity/offers.ts';
import { machinePrice } from '../../cost/price.ts';
import type { Node, Taint } from '../../kube/resources.ts';

import { STARTUP_PREFIXES } from './nodes-seen.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
const REGION = 'topology.kubernetes.io/region';
const ZONE = 'topology.kubernetes.io/zone';
/** Pods on a node where the machine type does not say: kubelet's own default. */
const DEFAULT_PODS = 110;

/** What has no price is bought last. */
const UNPRICED = Number.MAX_SAFE_INTEGER / 1e6;

/** What offers of a cluster rest on. */
export interface OfferView {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  readonly provider: Pick<Provider, 'name' | 'inCloud' | 'simulated'> | undefined;
  /** Whether the cloud runs the control plane, and says what its nodes keep. */
  readonly isManaged: boolean;
  readonly capacity: KnownCapacity;
  readonly now: Date;
}

/** What the next node of a pool would be, and what it would cost in an hour (millionths); or why there is none. Pure. */
export function offerOf(
  { cluster, profile, provider, isManaged, capacity, now }: OfferView,
  pool: DesiredPool,
  siblings: readonly Node[],
  csiNodes: ReadonlyMap<string, CSINode>,
): Pick<PoolView, 'offer' | 'soldOut'> {
  const region = cluster.spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name ?? '';
  const place = { profile: profileNameOf(cluster), region, spot: pool.spot };
  const market = marketFor(place, capacity, now);
  const best = bestOffer({ machineTypes: machineTypesOf(pool), zones: pool.zones }, market);
  if (!best) return { soldOut: 'all its machine types are sold out' };
  const type = profile.spec.machineTypes.find(({ name }) => name === best.machineType);
  if (!type) return { soldOut: `CloudProfile ${profile.metadata.name} has no machine type ${best.machineType}` };
  const price = machinePrice(type, region, pool.spot);
  const ofType = siblings.filter(
    ({ metadata, status }) => metadata.labels?.[INSTANCE_TYPE] === type.name && status?.allocatable?.cpu !== undefined,
  );
  const [sibling] = ofType;
  const [zone, ...others] = best.zones;
  const isZoned = sibling ? sibling.metadata.labels?.[ZONE] !== undefined : !isOfSeed(provider);
  const {
    [HOSTNAME]: _,
    [ZONE]: __,
    ...known
  } = sibling?.metadata.labels ?? {
    ...pool.labels,
    [INSTANCE_TYPE]: type.name,
    [REGION]: region,
    [LABELS.pool]: pool.name,
    'kubernetes.io/arch': type.architecture ?? 'amd64',
    'kubernetes.io/os': 'linux',
  };
  const template: NodeTemplate = {
    id: pool.name,
    // In which of several zones it comes to be is not known: a pod that asks for one of them is not promised it.
    labels: { ...known, ...(isZoned && zone !== undefined && others.length === 0 && { [ZONE]: zone }) },
    taints: [...pool.taints, ...taintsOfAll(ofType, pool)],
    allocatable: sibling
      ? allocatableOf(sibling.status?.allocatable)
      : allocatableOfType(soldOf(type), reserveOf({ provider, isManaged })),
    // Its machine type decides how many volumes it may have attached: a sibling has as many.
    attachLimits: attachLimitsOf(sibling && csiNodes.get(sibling.metadata.name)),
  };
  const isLast = isInterrupted(best, market);
  return { offer: { template, price: price === undefined ? UNPRICED : Number(price), ...(isLast && { isLast }) } };
}

/** Whether machines are containers of the seed, which have all that their type says and no zones. */
const isOfSeed = (provider: OfferView['provider']): boolean => !provider?.inCloud && !provider?.simulated;

/**
 * Of Kubernetes itself, those that a node loses once it is up, and those of machines that a cloud takes away: they tell of one node, and of
 * a moment. Where a cloud took the only node of a pool, no other was bought for its pods.
 */
const PASSING = [
  'node.kubernetes.io/',
  'node.cloudprovider.kubernetes.io/',
  ...STARTUP_PREFIXES,
  ...INTERRUPTION_TAINTS,
];

/**
 * Taints that the pool does not have, and all its nodes do: somebody gives them to each node that comes. Without them one node after the other
 * would be bought for a pod that takes none of them.
 */
function taintsOfAll(nodes: readonly Node[], pool: DesiredPool): Taint[] {
  const [first, ...others] = nodes.map(({ spec }) => spec.taints ?? []);
  return (first ?? []).filter(
    ({ key }) =>
      !pool.taints.some((taint) => taint.key === key) &&
      !PASSING.some((prefix) => key.startsWith(prefix)) &&
      others.every((taints) => taints.some((taint) => taint.key === key)),
  );
}

/** Who decides what the kubelet of a new node keeps; where that is not known, whoever is known to keep most. */
function reserveOf({ provider, isManaged }: Pick<OfferView, 'provider' | 'isManaged'>): Reserve {
  if (isManaged) return MANAGED_RESERVES[provider?.name ?? ''] ?? 'gke';
  return provider?.inCloud ? 'machines' : 'none';
}

const soldOf = (type: MachineType): Sold => ({
  millicores: readCpu(type.cpu),
  bytes: readBytes(type.memory),
  gpus: gpusOf(type),
  pods: type.pods ?? DEFAULT_PODS,
});

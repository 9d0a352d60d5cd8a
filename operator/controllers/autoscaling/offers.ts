import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile, MachineType } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { parseBytes, parseCpu } from '../../api/quantity.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { NodeTemplate } from '../../burst/fit/model.ts';
import { allocatableOf } from '../../burst/fit/node.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { bestOffer } from '../../capacity/allocation.ts';
import { isDepleted, type KnownCapacity, machineTypesOf } from '../../capacity/offers.ts';
import { machinePrice } from '../../cost/price.ts';
import type { Node } from '../../kube/resources.ts';

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
  readonly provider: Pick<Provider, 'inCloud' | 'simulated'> | undefined;
  readonly capacity: KnownCapacity;
  readonly now: Date;
}

/** What the next node of a pool would be, and what it would cost in an hour (millionths); or why there is none. Pure. */
export function offerOf(
  { cluster, profile, provider, capacity, now }: OfferView,
  pool: DesiredPool,
  siblings: readonly Node[],
): Pick<PoolView, 'offer' | 'soldOut'> {
  const region = cluster.spec.region ?? profile.spec.defaults?.region ?? profile.spec.regions[0]?.name ?? '';
  const place = { profile: profileNameOf(cluster), region, spot: pool.spot };
  const best = bestOffer(
    { machineTypes: machineTypesOf(pool), zones: pool.zones },
    { isDepleted: (machineType, zone) => isDepleted(capacity, { ...place, machineType, zone }, now) },
  );
  if (!best) return { soldOut: 'all its machine types are sold out' };
  const type = profile.spec.machineTypes.find(({ name }) => name === best.machineType);
  if (!type) return { soldOut: `CloudProfile ${profile.metadata.name} has no machine type ${best.machineType}` };
  const price = machinePrice(type, region, pool.spot);
  const sibling = siblings.find(
    ({ metadata, status }) => metadata.labels?.[INSTANCE_TYPE] === type.name && status?.allocatable?.cpu !== undefined,
  );
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
    taints: pool.taints,
    allocatable: sibling ? allocatableOf(sibling.status?.allocatable) : allocatableOf(guessed(type, provider)),
    attachLimits: new Map(),
  };
  return { offer: { template, price: price === undefined ? UNPRICED : Number(price) } };
}

/** Whether machines are containers of the seed, which have all that their type says and no zones. */
const isOfSeed = (provider: OfferView['provider']): boolean => !provider?.inCloud && !provider?.simulated;

/**
 * What a node of a type offers of which none was seen yet. Machines of clouds keep some for kubelet and system, and have less memory than is
 * sold: rather too little than too much, or a node would be bought on which its pod does not fit.
 */
function guessed(type: MachineType, provider: OfferView['provider']): Record<string, string> {
  const [cpu, memory] = [parseCpu(type.cpu), parseBytes(type.memory)];
  const isReal = provider?.inCloud === true || provider === undefined;
  const gpus = gpusOf(type);
  return {
    cpu: `${isReal ? Math.max(0, Math.floor(cpu * 0.94) - 100) : cpu}m`,
    memory: String(isReal ? Math.max(0, Math.floor(memory * 0.9) - 800 * 2 ** 20) : memory),
    pods: String(type.pods ?? DEFAULT_PODS),
    ...(gpus > 0 && { 'nvidia.com/gpu': String(gpus) }),
  };
}

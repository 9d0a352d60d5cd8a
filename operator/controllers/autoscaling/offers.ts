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
import { INSTANCE_TYPE, ZONE } from '../../burst/nodes/expected.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { bestOffer, isInterrupted } from '../../capacity/allocation.ts';
import { type KnownCapacity, machineTypesOf, marketFor } from '../../capacity/offers.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import { machinePrice } from '../../cost/price.ts';
import type { Node } from '../../kube/resources.ts';

const REGION = 'topology.kubernetes.io/region';
/** Pods on a node where the machine type does not say: kubelet's own default. */
const DEFAULT_PODS = 110;

/** What has no price is bought last. */
const UNPRICED = Number.MAX_SAFE_INTEGER / 1e6;

/** What offers of a cluster rest on. */
export interface OfferView {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** Who decides what the kubelet of a new node keeps. */
  readonly reserve: Reserve;
  /** Whether machines are containers of the seed, which have all that their type says and no zones. */
  readonly isOfSeed: boolean;
  readonly capacity: KnownCapacity;
  readonly now: Date;
}

/**
 * What the next node of a pool would be, and what it would cost in an hour (millionths); or why there is none. Pure.
 * @param models what learnNodes() knows; absent: nothing
 */
export function offerOf(
  { cluster, profile, reserve, isOfSeed, capacity, now }: OfferView,
  pool: DesiredPool,
  siblings: readonly Node[],
  csiNodes: ReadonlyMap<string, CSINode>,
  models?: PoolMemory['types'],
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
  const isZoned = sibling ? sibling.metadata.labels?.[ZONE] !== undefined : !isOfSeed;
  const known = models?.[type.name];
  const given = {
    [INSTANCE_TYPE]: type.name,
    [REGION]: region,
    [LABELS.pool]: pool.name,
    'kubernetes.io/arch': type.architecture ?? 'amd64',
    'kubernetes.io/os': 'linux',
  };
  const template: NodeTemplate = {
    id: pool.name,
    labels: {
      ...(known?.labels ?? given),
      ...pool.labels,
      // In which of several zones it comes to be is not known: a pod that asks for one of them is not promised it.
      ...(isZoned && zone !== undefined && others.length === 0 && { [ZONE]: zone }),
    },
    taints: [...pool.taints, ...(known?.taints ?? [])],
    allocatable: sibling
      ? { ...allocatableOf(sibling.status?.allocatable), others: othersOfAll(ofType, devicesOf(type)) }
      : allocatableOfMachine(type, reserve),
    // Its machine type decides how many volumes it may have attached: a sibling has as many.
    attachLimits: attachLimitsOf(sibling && csiNodes.get(sibling.metadata.name)),
  };
  const isLast = isInterrupted(best, market);
  return { offer: { template, price: price === undefined ? UNPRICED : Number(price), ...(isLast && { isLast }) } };
}

/** Devices that a machine type has, by the resource that its nodes offer once their device plugin runs. */
export const devicesOf = (type: MachineType | undefined): ReadonlyMap<string, number> =>
  type ? allocatableOfMachine(type, 'none').others : new Map();

/**
 * What a new node offers besides CPU, memory and disk, by its siblings: of devices that its type has, what one of them offers, since the
 * plugin of another may not run yet; of all else what every one does, since somebody may have given one of them more by hand.
 */
function othersOfAll(nodes: readonly Node[], devices: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const each = nodes.map(({ status }) => allocatableOf(status?.allocatable).others);
  const names = new Set(each.flatMap((others) => [...others.keys()]));
  return new Map(
    [...names].map((name) => {
      const amounts = each.map((others) => others.get(name) ?? 0);
      return [name, devices.has(name) ? Math.max(...amounts) : Math.min(...amounts)];
    }),
  );
}

/** Who makes the machines of a cluster, and whether a cloud runs its control plane, and says what its nodes keep. */
interface MadeBy {
  readonly provider: Pick<Provider, 'name' | 'inCloud' | 'simulated'> | undefined;
  readonly isManaged: boolean;
}

/** Who decides what the kubelet of a new node keeps, and whether its machine is a container of the seed. */
export const machinesOf = ({ provider, isManaged }: MadeBy): Pick<OfferView, 'reserve' | 'isOfSeed'> => ({
  reserve: reserveOf({ provider, isManaged }),
  isOfSeed: !provider?.inCloud && !provider?.simulated,
});

/** Where it is not known, whoever is known to keep most. */
function reserveOf({ provider, isManaged }: MadeBy): Reserve {
  if (isManaged) return MANAGED_RESERVES[provider?.name ?? ''] ?? 'gke';
  return provider?.inCloud ? 'machines' : 'none';
}

/** What the kubelet of a machine of this type offers to all pods. @param reserve who decides what it keeps */
export const allocatableOfMachine = (type: MachineType, reserve: Reserve): NodeTemplate['allocatable'] =>
  allocatableOfType(soldOf(type), reserve);

const soldOf = (type: MachineType): Sold => ({
  millicores: readCpu(type.cpu),
  bytes: readBytes(type.memory),
  gpus: gpusOf(type),
  pods: type.pods ?? DEFAULT_PODS,
});

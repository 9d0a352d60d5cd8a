import type { Provider } from '../../../providers/contract.ts';
import type { CloudProfile, MachineType } from '../../api/cloudprofile.ts';
import { gpusOf } from '../../api/gpu.ts';
import { LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { readBytes, readCpu } from '../../api/quantity.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { NodeTemplate } from '../../burst/fit/model.ts';
import { allocatableOf, attachLimitsOf, type CSINode } from '../../burst/fit/node.ts';
import { allocatableOfType, MANAGED_RESERVES, type NominalSize, type Reserve } from '../../burst/fit/reserve.ts';
import { INSTANCE_TYPE, ZONE } from '../../burst/nodes/expected.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import { bestOffer, isInterrupted } from '../../capacity/allocation.ts';
import { type KnownCapacity, machineTypesOf, marketFor } from '../../capacity/offers.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import { machinePrice } from '../../cost/price.ts';
import type { Node } from '../../kube/resources.ts';

const REGION = 'topology.kubernetes.io/region';
/** Pods per node when the machine type does not say: kubelet's default. */
const DEFAULT_PODS = 110;

/** Price of unpriced offers, which are bought last. */
const UNPRICED = Number.MAX_SAFE_INTEGER / 1e6;

/** Inputs of a cluster's offers. */
interface OfferView {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** Formula for kubelet's reserved resources. */
  readonly reserve: Reserve;
  /** Whether machines are pods of the seed, without zones and with the full nominal size. */
  readonly isOfSeed: boolean;
  readonly capacity: KnownCapacity;
  readonly now: Date;
}

/**
 * Expected next node of a pool with its price per hour (millionths); or why there is none. Pure.
 * @param models from learnNodes(); absent: none
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
      // With several zones the zone is unknown: no pod is promised one of them.
      ...(isZoned && zone !== undefined && others.length === 0 && { [ZONE]: zone }),
    },
    taints: [...pool.taints, ...(known?.taints ?? [])],
    allocatable: sibling
      ? { ...allocatableOf(sibling.status?.allocatable), others: othersOfAll(ofType, devicesOf(type)) }
      : allocatableOfMachine(type, reserve),
    // Attach limits depend on the machine type: copy those of a sibling.
    attachLimits: attachLimitsOf(sibling && csiNodes.get(sibling.metadata.name)),
  };
  const isLast = isInterrupted(best, market);
  return { offer: { template, price: price === undefined ? UNPRICED : Number(price), ...(isLast && { isLast }) } };
}

/** Devices of a machine type, by the resource name that its device plugin registers. */
export const devicesOf = (type: MachineType | undefined): ReadonlyMap<string, number> =>
  type ? allocatableOfMachine(type, 'none').others : new Map();

/**
 * Other resources of a new node, from its siblings: known devices as on any sibling, because a plugin may not run yet;
 * others only if on every sibling, because people may have added them by hand.
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

/** Provider of a cluster's machines, and whether a cloud manages it, for kubelet's reserved resources. */
interface MadeBy {
  readonly provider: Pick<Provider, 'name' | 'inCloud' | 'simulated'> | undefined;
  readonly isManaged: boolean;
}

/** Formula for kubelet's reserved resources, and whether machines are pods of the seed. */
export const poolMachinesOf = ({ provider, isManaged }: MadeBy): Pick<OfferView, 'reserve' | 'isOfSeed'> => ({
  reserve: reserveOf({ provider, isManaged }),
  isOfSeed: !provider?.inCloud && !provider?.simulated,
});

/** When unknown, the formula that reserves most. */
function reserveOf({ provider, isManaged }: MadeBy): Reserve {
  if (isManaged) return MANAGED_RESERVES[provider?.name ?? ''] ?? 'gke';
  return provider?.inCloud ? 'machines' : 'none';
}

/** Allocatable resources of a machine type. @param reserve formula */
export const allocatableOfMachine = (type: MachineType, reserve: Reserve): NodeTemplate['allocatable'] =>
  allocatableOfType(soldOf(type), reserve);

const soldOf = (type: MachineType): NominalSize => ({
  millicores: readCpu(type.cpu),
  bytes: readBytes(type.memory),
  gpus: gpusOf(type),
  pods: type.pods ?? DEFAULT_PODS,
});

import type { CloudProfile } from '../api/cloudprofile.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { whyInterrupted } from '../burst/nodes/interruption.ts';
import type { DepletedOffers } from '../capacity/depleted-offers.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import { machineTypesOf, type Offer } from '../capacity/offers.ts';
import type { Node } from '../kube/resources.ts';
import { isThere, poolOf } from './autoscaling/nodes-seen.ts';
import { type ClusterInPlace, whereItIs } from './where-it-is.ts';

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
const ZONE = 'topology.kubernetes.io/zone';

/** Remembers a cluster's interrupted offers, for all buyers of the namespace. */
export function noteInterrupted(
  { profiles, capacity }: { profiles: Parameters<typeof whereItIs>[1]; capacity: Pick<DepletedOffers, 'interrupted'> },
  cluster: WorkerCluster,
  nodes: readonly Node[],
): void {
  const there = whereItIs(cluster, profiles);
  if (!there) return;
  const { namespace } = cluster.metadata;
  for (const { offer, taken } of interruptedOffers(there, nodes)) capacity.interrupted(offer, { namespace, taken });
}

/** Interrupted spot machines of one offer. */
interface Interrupted {
  readonly offer: Offer;
  /** UIDs of their nodes. */
  readonly taken: readonly string[];
}

/**
 * Interrupted spot machines of a cluster, by offer. Tenants write node labels: only values in both the pool and the
 * CloudProfile count, and a node without a zone is ignored. Pure.
 */
function interruptedOffers({ cluster, profile }: ClusterInPlace, nodes: readonly Node[]): Interrupted[] {
  const going = nodes.filter((node) => isThere(node) && whyInterrupted(node) !== undefined);
  if (going.length === 0) return [];
  const pools = desiredSizes({ cluster, profile });
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }) };
  const offers = new Map<string, { offer: Offer; taken: string[] }>();
  for (const node of going) {
    const { name, uid = name, labels = {} } = node.metadata;
    const ofNode = poolOf(node);
    const pool = pools.find((one) => one.name === ofNode);
    const machineType = labels[INSTANCE_TYPE] ?? pool?.machineType;
    if (!pool?.spot || machineType === undefined || !machineTypesOf(pool).includes(machineType)) continue;
    const zone = pool.zones.length > 1 ? pool.zones.find((one) => one === labels[ZONE]) : (pool.zones[0] ?? '');
    if (zone === undefined) continue;
    const offer = { ...place, zone, machineType, spot: true };
    if (!isOfProfile(profile, offer)) continue;
    const key = `${zone}/${machineType}`;
    const taken = offers.get(key)?.taken ?? [];
    offers.set(key, { offer, taken });
    taken.push(uid);
  }
  return [...offers.values()];
}

function isOfProfile({ spec }: CloudProfile, { region, zone, machineType }: Offer): boolean {
  const known = spec.regions.find(({ name }) => name === region);
  if (!known || !spec.machineTypes.some(({ name }) => name === machineType)) return false;
  return zone === '' || (known.zones ?? []).some(({ name }) => name === zone);
}

import type { CloudProfile } from '../api/cloudprofile.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { whyInterrupted } from '../burst/nodes/interruption.ts';
import type { DepletedOffers } from '../capacity/depleted-offers.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import { machineTypesOf, type Offer } from '../capacity/offers.ts';
import type { Node } from '../kube/resources.ts';
import { poolOf } from './autoscaling/nodes-seen.ts';
import { type ClusterInPlace, whereItIs } from './where-it-is.ts';

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';
const ZONE = 'topology.kubernetes.io/zone';

/** Remembers what a cloud takes away of a cluster, for whoever buys machines there. */
export function noteInterrupted(
  { profiles, capacity }: { profiles: Parameters<typeof whereItIs>[1]; capacity: Pick<DepletedOffers, 'interrupted'> },
  cluster: WorkerCluster,
  nodes: readonly Node[],
): void {
  const there = whereItIs(cluster, profiles);
  if (there) for (const offer of interruptedOffers(there, nodes)) capacity.interrupted(offer);
}

/**
 * Spot machines of a cluster that its cloud takes away now, each offer once. Who owns the cluster writes labels of its nodes and may have asked for anything:
 * only what both the pool and the CloudProfile have counts. A node that does not say of which zone it is tells nothing. Pure.
 */
export function interruptedOffers({ cluster, profile }: ClusterInPlace, nodes: readonly Node[]): Offer[] {
  const going = nodes.filter((node) => whyInterrupted(node) !== undefined);
  if (going.length === 0) return [];
  const pools = desiredSizes({ cluster, profile });
  const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }) };
  const offers = new Map<string, Offer>();
  for (const node of going) {
    const { labels = {} } = node.metadata;
    const pool = pools.find(({ name }) => name === poolOf(node));
    const machineType = labels[INSTANCE_TYPE] ?? pool?.machineType;
    if (!pool?.spot || machineType === undefined || !machineTypesOf(pool).includes(machineType)) continue;
    const zone = pool.zones.length > 1 ? pool.zones.find((one) => one === labels[ZONE]) : (pool.zones[0] ?? '');
    if (zone === undefined) continue;
    const offer = { ...place, zone, machineType, spot: true };
    if (isOfProfile(profile, offer)) offers.set(`${zone}/${machineType}`, offer);
  }
  return [...offers.values()];
}

function isOfProfile({ spec }: CloudProfile, { region, zone, machineType }: Offer): boolean {
  const known = spec.regions.find(({ name }) => name === region);
  const hasZone = zone === '' || known?.zones?.some(({ name }) => name === zone);
  return known !== undefined && hasZone === true && spec.machineTypes.some(({ name }) => name === machineType);
}

import { LABELS } from '../api/group.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { whyInterrupted } from '../burst/nodes/interruption.ts';
import type { DepletedOffers } from '../capacity/depleted-offers.ts';
import { desiredSizes } from '../capacity/desired-sizes.ts';
import type { Offer } from '../capacity/offers.ts';
import type { Node } from '../kube/resources.ts';
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

/** Spot machines of a cluster that its cloud takes away now, as they were on offer. A node that does not say of which zone it is tells nothing. Pure. */
export function interruptedOffers({ cluster, profile }: ClusterInPlace, nodes: readonly Node[]): Offer[] {
  const going = nodes.filter((node) => whyInterrupted(node) !== undefined);
  if (going.length === 0) return [];
  const pools = desiredSizes({ cluster, profile });
  return going.flatMap(({ metadata: { labels = {} } }): Offer[] => {
    const name = labels[LABELS.alternativeOf] ?? labels[LABELS.pool];
    const pool = pools.find((one) => one.name === name);
    const machineType = labels[INSTANCE_TYPE] ?? pool?.machineType;
    if (!pool?.spot || machineType === undefined) return [];
    const zones = pool.zones.length > 1 ? pool.zones.filter((zone) => zone === labels[ZONE]) : pool.zones;
    if (zones.length === 0 && pool.zones.length > 0) return [];
    const place = { profile: profile.metadata.name, region: regionOf({ cluster, profile }) };
    return [{ ...place, zone: zones[0] ?? '', machineType, spot: true }];
  });
}

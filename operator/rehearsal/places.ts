import { profileNameOf, type WorkerCluster, type WorkerClusterSpec } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { atPlace, inEachPlace, nextPlace } from '../capacity/places.ts';
import { capacityConditionOf, dividePools } from '../controllers/workercluster/capacity.ts';
import { resolveSizes } from '../controllers/workercluster/resolve.ts';
import type { WorkerClusterView } from '../controllers/workercluster/view.ts';
import { modeOf } from './members.ts';
import type { Scenario } from './scenario.ts';
import { dateOf, newMeter, newPool, type RehearsedCluster, type Simulation } from './state.ts';

/** A possible cluster's spec for each of its places: only managed clusters fall back. */
export function mayComeTo(cluster: WorkerCluster, profiles: Scenario['profiles']): WorkerCluster[] {
  const isManaged = modeOf(cluster, profiles.get(profileNameOf(cluster))) === 'Managed';
  return isManaged ? inEachPlace(cluster) : [cluster];
}

/** The cluster's current spec for its own place. */
const writtenOf = ({ object, spec }: RehearsedCluster): WorkerCluster => ({ ...object!, spec });

/** Changes the spec, also of a cluster that has fallen back to another place. */
export function rewrite(simulation: Simulation, cluster: RehearsedCluster, spec: WorkerClusterSpec): void {
  cluster.spec = spec;
  cluster.object = { ...cluster.object!, spec: atPlace(writtenOf(cluster), cluster.place).spec };
  simulation.toPlan.add(cluster);
}

/** The fallback places of the cluster's spec. */
export const fallbacksOf = (
  { scenario }: Simulation,
  cluster: RehearsedCluster,
): NonNullable<WorkerClusterView['fallbacks']> =>
  inEachPlace(writtenOf(cluster))
    .slice(1)
    .map((there) => ({ cluster: there, profile: scenario.profiles.get(profileNameOf(there)) }));

/** The place to which the operator would move a cluster whose machines are sold out; undefined: it stays. */
export function placeInstead(simulation: Simulation, cluster: RehearsedCluster, view: WorkerClusterView) {
  const { object, profile, place, isMade } = cluster;
  // The simulated cloud has no mode of its own: only clusters that the cloud would manage move, and only before
  // their first completion.
  if (!object || !profile || isMade || modeOf(object, profile) !== 'Managed') return undefined;
  const left = simulation.capacity.leftPlaces(object.metadata.uid ?? '');
  const next = nextPlace(writtenOf(cluster), place, left);
  if (next === undefined) return undefined;
  const now = dateOf(simulation);
  const region = regionOf({ cluster: object, profile });
  const seen = {
    ...resolveSizes(view, now),
    elsewhere: { name: nameOfPlace(simulation, cluster, next), decided: false },
  };
  const { divided: pools } = dividePools(seen, region, now);
  return capacityConditionOf(seen, { divided: pools, mode: 'Managed', region }, now).moves ? next : undefined;
}

/** Name of a place for messages. */
export function nameOfPlace({ scenario }: Simulation, cluster: RehearsedCluster, place: number): string {
  const there = atPlace(writtenOf(cluster), place);
  const profile = scenario.profiles.get(profileNameOf(there));
  return `${profile ? regionOf({ cluster: there, profile }) : ''} of ${profileNameOf(there)}`;
}

/** Moves a cluster without remaining resources to another place. Its past cost is kept. */
export function goTo(simulation: Simulation, cluster: RehearsedCluster, place: number): void {
  const { manifest, profile, pools, controlPlane } = cluster;
  cluster.left.push({ manifest: atPlace(manifest, cluster.place), profile, pools: [...pools.values()], controlPlane });
  cluster.place = place;
  cluster.hasHadNode = false;
  cluster.profile = simulation.scenario.profiles.get(profileNameOf(atPlace(writtenOf(cluster), place)));
  // Requested nodes continue to wait.
  cluster.pools = new Map([...pools].map(([name, { line }]) => [name, { ...newPool(name), line }]));
  cluster.controlPlane = newMeter();
  rewrite(simulation, cluster, cluster.spec);
}

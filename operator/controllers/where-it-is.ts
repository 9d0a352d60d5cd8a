import type { CloudProfile } from '../api/cloudprofile.ts';
import { profileNameOf, type WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { inEachPlace } from '../capacity/places.ts';

/** A cluster as written for one of its places, with that place's CloudProfile. */
export interface ClusterInPlace {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
}

/**
 * The cluster in its present place by its status: after a fallback with that place's machine types, zones and region.
 * Without a known region in the status, its own place. undefined: unknown CloudProfile. Pure.
 * @param region known region; absent: that of its status
 */
export function whereItIs(
  written: WorkerCluster,
  profiles: { get(name: string): CloudProfile | undefined },
  region = written.status?.region,
): ClusterInPlace | undefined {
  const known = inEachPlace(written).flatMap((cluster): ClusterInPlace[] => {
    const profile = profiles.get(profileNameOf(cluster));
    return profile ? [{ cluster, profile }] : [];
  });
  return known.find((place) => regionOf(place) === region) ?? known.find(({ cluster }) => cluster === written);
}

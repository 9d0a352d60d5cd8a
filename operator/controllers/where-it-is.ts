import type { CloudProfile } from '../api/cloudprofile.ts';
import { profileNameOf, type WorkerCluster } from '../api/workercluster.ts';
import { regionOf } from '../burst/clusters/offer.ts';
import { inEachPlace } from '../capacity/places.ts';

/** A cluster as it would be written for one of its places, with the CloudProfile of that. */
export interface ClusterInPlace {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
}

/**
 * A cluster in the place that it is in by its status: one that fell back has the machine types, zones and region of that. Where its status
 * names no region, or one that is in no place of its spec, it is in its own. undefined: the CloudProfile is not known. Pure.
 * @param region that it is known to be in; absent: that of its status
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

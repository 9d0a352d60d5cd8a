import type { CloudProfile } from '../../api/cloudprofile.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { atPlace, inEachPlace, nextPlace, placeOf } from '../../capacity/places.ts';
import type { ManagedFacts } from '../managed/facts.ts';
import type { WorkerClusterView } from './view.ts';

/** Place of a cluster, and its alternatives. */
interface Placed extends Required<Pick<WorkerClusterView, 'fallbacks'>>, Pick<WorkerClusterView, 'elsewhere'> {
  /** 0: its own place; otherwise the number of the fallback. */
  readonly place: number;
  /** The cluster as written for that place. */
  readonly cluster: WorkerCluster;
}

/** Finds the place of a cluster among its allowed ones. */
export function placeCluster(
  written: WorkerCluster,
  facts: ManagedFacts | undefined,
  memory: Pick<DepletedOffers, 'leftPlaces'>,
  profileOf: (cluster: WorkerCluster) => CloudProfile | undefined,
): Placed {
  const left = memory.leftPlaces(written.metadata.uid ?? '');
  const region = (cluster: WorkerCluster): string | undefined => {
    const { defaults, regions } = profileOf(cluster)?.spec ?? {};
    return cluster.spec.region ?? defaults?.region ?? regions?.[0]?.name;
  };
  const place = placeOf(written, facts?.exists ? facts.madeIn : undefined, left, region);
  const next = nextPlace(written, place, left);
  const [, ...others] = inEachPlace(written);
  const goal = next === undefined ? undefined : atPlace(written, next);
  return {
    place,
    cluster: atPlace(written, place),
    fallbacks: others.map((cluster) => ({ cluster, profile: profileOf(cluster) })),
    ...(goal && {
      elsewhere: { name: `${region(goal) ?? ''} of ${profileNameOf(goal)}`, decided: left.has(place) },
    }),
  };
}

import { technicalID } from '../api/names.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { keyOf } from '../kube/resources.ts';

const BY_TECHNICAL_ID = 'technicalID';

/** Index of WorkerClusters and Shoots by technical ID, in all modes. */
export const byTechnicalID = {
  [BY_TECHNICAL_ID]: ({ metadata }: { metadata: { namespace?: string; name: string } }) => [
    technicalID(metadata.namespace ?? '', metadata.name),
  ],
};

/** A cache with index byTechnicalID. */
interface Indexed<T> {
  byIndex(index: string, value: string): readonly T[];
}

type Cluster = Pick<WorkerCluster, 'metadata' | 'status'>;

/** Other WorkerClusters and Shoots with the same technical ID, in any mode. */
export function othersOfSameID<W extends Cluster, S extends Pick<Shoot, 'metadata'>>(
  { metadata: { namespace = '', name } }: Pick<Cluster, 'metadata'>,
  clusters: Indexed<W>,
  shoots: Indexed<S>,
): { clusters: readonly W[]; shoots: readonly S[] } {
  const id = technicalID(namespace, name);
  const isOther = (one: W | S) => one.metadata.namespace !== namespace || one.metadata.name !== name;
  return {
    clusters: clusters.byIndex(BY_TECHNICAL_ID, id).filter(isOther),
    shoots: shoots.byIndex(BY_TECHNICAL_ID, id).filter(isOther),
  };
}

/**
 * Holder of a cluster's technical ID, as text; undefined: nobody. Long names collide when their hashes do, which can be
 * provoked: namespaces, stacks, tags and DNS names would be mixed up. Of two new clusters the older one gets it.
 */
export function technicalIDTakenBy(
  cluster: Cluster,
  clusters: Indexed<Cluster>,
  shoots: Indexed<Pick<Shoot, 'metadata'>>,
): string | undefined {
  const others = othersOfSameID(cluster, clusters, shoots);
  const [shoot] = others.shoots;
  if (shoot) return `Shoot ${keyOf(shoot as Shoot)}`;
  const first = others.clusters.find((one) => one.status?.admitted !== undefined || isOlder(one, cluster));
  return first && `WorkerCluster ${keyOf(first as WorkerCluster)}`;
}

const isOlder = (one: Cluster, other: Cluster): boolean => ageOf(one) < ageOf(other);

const ageOf = ({ metadata }: Cluster): string =>
  `${metadata.creationTimestamp ?? ''} ${metadata.namespace}/${metadata.name}`;

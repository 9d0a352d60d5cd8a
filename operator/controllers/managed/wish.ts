import { createHash } from 'node:crypto';
import type { Adoption, ManagedCluster, Owner } from '../../../providers/cloud.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { ManagedWish } from './facts.ts';

/** Text that is equal for equal values, whatever the order of their fields. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, canonical(inner)]),
  );
}

const hash = (value: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify(canonical(value)))
    .digest('hex')
    .slice(0, 16);

/** What a run of the programs depends on: equal hashes need no run. undefined: nothing is wished. */
export const wishHash = ({ desired, clouds, cluster }: ManagedWish): string | undefined =>
  desired && hash({ desired, version: clouds?.version, uid: cluster.metadata.uid });

/** Changes whenever the controller may have to do something else. */
export const wishSignature = (wish: ManagedWish): string => {
  const { metadata, spec } = wish.cluster;
  return hash({
    wish: wishHash(wish),
    uid: metadata.uid,
    removed: isToBeRemoved(wish),
    place: [spec.cloudProvider, spec.cloudProfile, spec.region],
    held: metadata.finalizers,
    credentials: spec.credentialsRef,
    drift: spec.drift,
    operation: metadata.annotations?.[ANNOTATIONS.operation],
    profile: wish.profile?.spec,
  });
};

/** Whom everything in the cloud belongs to. */
export function ownerOf({ metadata: { name, namespace = '', uid = '' } }: WorkerCluster, garden: string): Owner {
  return { technicalID: technicalID(namespace, name), uid, name, namespace, garden };
}

/** Whether the status says that something was begun in the cloud: for when the receipt is lost. */
export function wasBegun({ status }: WorkerCluster): boolean {
  const infrastructure = findCondition(status?.conditions, 'InfrastructureReady');
  return infrastructure !== undefined && infrastructure.reason !== 'Pending';
}

/** Whether what there is in the cloud is to be taken away. */
export const isToBeRemoved = ({ cluster, moves, held }: ManagedWish): boolean =>
  moves === true || (cluster.metadata.deletionTimestamp !== undefined && !held);

/** Enough of a cluster to take it away when nobody knows any more how it was described. */
export function unknownCluster({ cluster, profile }: Pick<ManagedWish, 'cluster' | 'profile'>): ManagedCluster {
  const region = cluster.status?.region ?? cluster.spec.region ?? profile?.spec.defaults?.region ?? '';
  const adopt = adoptionOf(cluster.spec);
  return { ...clusterIn(region, profile), ...(adopt && { adopt }) };
}

/** The cluster that a spec takes over, with what becomes of it in the end. */
export const adoptionOf = ({ adopt }: WorkerCluster['spec']): Adoption | undefined =>
  adopt && { id: adopt.id, deletionPolicy: adopt.deletionPolicy ?? 'Release' };

/** A cluster as the profile's defaults have it, without pools: what was made in its place is found by name and tags. */
export function clusterIn(region: string, profile: CloudProfile | undefined): ManagedCluster {
  const { pods, services } = profile?.spec.defaults ?? {};
  const known = profile?.spec.regions.find((candidate) => candidate.name === region);
  return {
    region,
    zones: (known?.zones ?? []).map((zone) => zone.name),
    kubernetesVersion: profile?.spec.kubernetes.versions?.[0]?.version ?? '',
    cidrs: { ...DEFAULT_RANGES, ...(pods && { pods }), ...(services && { services }) },
    pools: [],
    authorizedNetworks: [],
  };
}

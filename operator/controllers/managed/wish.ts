import { createHash } from 'node:crypto';
import type { Adoption, Owner, WantedCluster } from '../../../providers/cloud.ts';
import { type CloudProfile, DEFAULT_RANGES } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import { technicalID } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { ManagedWish } from './facts.ts';

/** Text that is equal for equal values, independent of field order. */
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

/** Hash of a run's inputs: equal hashes need no run. undefined: no wish. */
export const wishHash = ({ desired, clouds, cluster }: ManagedWish): string | undefined =>
  desired && hash({ desired, version: clouds?.version, uid: cluster.metadata.uid });

/** Key that changes whenever the controller may have to act. */
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

/** Owner of the cluster's cloud resources. */
export function cloudOwnerOf({ metadata: { name, namespace = '', uid = '' } }: WorkerCluster, garden: string): Owner {
  return { technicalID: technicalID(namespace, name), uid, name, namespace, garden };
}

/** Whether the status shows begun work in the cloud, for a lost receipt. */
export function wasBegun({ status }: WorkerCluster): boolean {
  const infrastructure = findCondition(status?.conditions, 'InfrastructureReady');
  return infrastructure !== undefined && infrastructure.reason !== 'Pending';
}

/** Whether the cloud resources must be deleted. */
export const isToBeRemoved = ({ cluster, moves, held }: ManagedWish): boolean =>
  moves === true || (cluster.metadata.deletionTimestamp !== undefined && !held);

/** Minimal description of a cluster for its deletion. */
export function unknownCluster({ cluster, profile }: Pick<ManagedWish, 'cluster' | 'profile'>): WantedCluster {
  const region = cluster.status?.region ?? cluster.spec.region ?? profile?.spec.defaults?.region ?? '';
  const adopt = adoptionOf(cluster.spec);
  return { ...clusterIn(region, profile), ...(adopt && { adopt }) };
}

/** Adoption in the spec, with its deletion policy. */
export const adoptionOf = ({ adopt }: WorkerCluster['spec']): Adoption | undefined =>
  adopt && { id: adopt.id, deletionPolicy: adopt.deletionPolicy ?? 'Release' };

/** A cluster from the profile's defaults without pools: names and tags find its resources. */
export function clusterIn(region: string, profile: CloudProfile | undefined): WantedCluster {
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

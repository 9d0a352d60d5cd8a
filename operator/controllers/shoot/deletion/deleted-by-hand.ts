import type { Shoot } from '../../../api/shoot.ts';
import type { WorkerCluster } from '../../../api/workercluster.ts';
import type { HoldsOf } from '../../../clusters/deletion-gate.ts';

/**
 * Whether somebody deleted the Shoot of a WorkerCluster that stays. Pure. An admission policy refuses that now. An
 * older deletion cannot have meant to destroy and recreate the cluster: the Shoot stays until its WorkerCluster is
 * deleted.
 * @param owner the WorkerCluster of the Shoot's name; undefined: none
 */
export const isDeletedByHand = ({ metadata }: Shoot, owner: WorkerCluster | undefined): boolean =>
  metadata.deletionTimestamp !== undefined &&
  owner !== undefined &&
  owner.metadata.deletionTimestamp === undefined &&
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.metadata.uid);

/** Holds of a Shoot. One that was deleted by hand has only its WorkerCluster, since other holders wait for that. */
export const shootHolds =
  (
    shoots: { get(key: string): Shoot | undefined },
    clusters: { get(key: string): WorkerCluster | undefined },
    holds: HoldsOf,
  ): HoldsOf =>
  (namespace, name) => {
    const key = `${namespace}/${name}`;
    const shoot = shoots.get(key);
    if (!shoot || !isDeletedByHand(shoot, clusters.get(key))) return holds(namespace, name);
    const advice = `its Shoot was deleted by hand, and all of it runs on. Delete WorkerCluster ${name} to have it taken apart`;
    return [{ by: `WorkerCluster ${name}`, advice }];
  };

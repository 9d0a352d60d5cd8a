import type { Shoot } from '../../../api/shoot.ts';
import type { WorkerCluster } from '../../../api/workercluster.ts';
import type { HoldsOf } from '../../../clusters/deletion-gate.ts';

/**
 * Whether somebody deleted the Shoot of a WorkerCluster that stays. Pure. An admission policy refuses that by now. Where it was possible,
 * nobody meant a cluster to be taken apart and made anew: it stays until its WorkerCluster is deleted.
 * @param owner the WorkerCluster of the Shoot's name; undefined: there is none
 */
export const isDeletedByHand = ({ metadata }: Shoot, owner: WorkerCluster | undefined): boolean =>
  metadata.deletionTimestamp !== undefined &&
  owner !== undefined &&
  owner.metadata.deletionTimestamp === undefined &&
  (metadata.ownerReferences ?? []).some(({ uid }) => uid === owner.metadata.uid);

/** What holds a Shoot: its WorkerCluster alone where the Shoot was deleted by hand, since other holders wait for the WorkerCluster. */
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

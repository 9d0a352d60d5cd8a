import { isDeepStrictEqual } from 'node:util';
import { isTrue } from '../../api/conditions.ts';
import { ANNOTATIONS } from '../../api/group.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { ChangeEvent } from '../../kube/store.ts';
import { BUCKETS_READY } from './conditions.ts';

/** Whether a change of a shoot matters for its backups; most status changes do not. */
export function backupsConcern(event: ChangeEvent<Shoot>, seeds: { get(name: string): Seed | undefined }): boolean {
  const { type, object, old } = event;
  const name = object.status?.seedName ?? old?.status?.seedName;
  if (name === undefined || !seeds.get(name)?.spec.backup) return false;
  return type !== 'updated' || !isDeepStrictEqual(concern(object), old && concern(old));
}

const concern = ({ metadata, status }: Shoot) => [
  metadata.uid,
  metadata.deletionTimestamp,
  metadata.annotations?.[ANNOTATIONS.backupRequestedAt],
  metadata.annotations?.[ANNOTATIONS.ignore],
  status?.seedName,
  // From zero to ready members: etcd can be asked.
  (status?.controlPlane?.ready ?? 0) > 0,
  status?.lastOperation?.type === 'Create' && status.lastOperation.state !== 'Succeeded',
];

/** Whether a change of a seed matters for its shoots' backups. */
export function seedConcernsBackups({ object, old }: ChangeEvent<Seed>): boolean {
  const of = (seed: Seed | undefined) => [
    seed?.spec.backup,
    seed?.spec.backup && isTrue(seed.status?.conditions, BUCKETS_READY),
  ];
  return !isDeepStrictEqual(of(object), of(old));
}

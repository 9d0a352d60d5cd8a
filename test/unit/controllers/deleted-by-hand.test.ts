import { expect, it } from 'vitest';
import type { Shoot } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { judgeDeletion } from '../../../operator/clusters/deletion-gate.ts';
import { isDeletedByHand, shootHolds } from '../../../operator/controllers/shoot/deletion/deleted-by-hand.ts';
import { buildShoot, buildWorkerCluster } from '../../kit/builders/objects.ts';

const DELETED = { deletionTimestamp: '2026-11-28T12:00:00Z' };
const cluster = (metadata: object = {}) =>
  buildWorkerCluster({ metadata: { name: 'blue', namespace: 'shop', uid: 'c', ...metadata } });
const shoot = (metadata: object = {}) =>
  buildShoot({ metadata: { name: 'blue', namespace: 'shop', ownerReferences: [{ uid: 'c' }], ...metadata } });
const membership = [{ by: 'Membership blue', advice: 'it leaves Hub local first' }];
const said = (of: Shoot | undefined, owner: WorkerCluster | undefined) => {
  const holds = shootHolds({ get: () => of }, { get: () => owner }, () => membership);
  return judgeDeletion(holds('shop', 'blue'), false, new Date()).message;
};

it('a Shoot that was deleted by hand is held by its WorkerCluster, not by an endless Membership', () => {
  expect(said(shoot(DELETED), cluster())).toBe(
    'WorkerCluster blue holds the cluster: its Shoot was deleted by hand, and all of it runs on. Delete WorkerCluster blue to have it taken apart',
  );
});

it.each<[string, Shoot | undefined, WorkerCluster | undefined]>([
  ['whose WorkerCluster is deleted', shoot(DELETED), cluster(DELETED)],
  ['without a WorkerCluster', shoot(DELETED), undefined],
  ['of an earlier WorkerCluster of the name', shoot(DELETED), cluster({ uid: 'other' })],
  ['without owners', shoot({ ...DELETED, ownerReferences: undefined }), cluster()],
  ['that is not deleted', shoot(), cluster()],
])('a Shoot %s is held as before', (_, of, owner) => {
  expect(isDeletedByHand(of!, owner)).toBe(false);
  expect(said(of, owner)).toBe('Membership blue holds the cluster: it leaves Hub local first');
});

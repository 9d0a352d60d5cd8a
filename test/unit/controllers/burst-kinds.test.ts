import { expect, it } from 'vitest';
import type { CustomKind } from '../../../operator/hubs/contract.ts';
import { MEMBERSHIPS } from '../../../operator/kube/resources.ts';
import { BurstScene, demand, MINUTE, policyNamed, SECOND } from '../../kit/burst/scene.ts';

const TRAIN = 'ResourceBinding shop/train';

/** A kind that these members serve, and that the hub brings nowhere. */
const servedBy = (...names: string[]): CustomKind => ({
  kind: 'batch.volcano.sh/v1alpha1 Job',
  servedBy: new Set(names),
  isBroughtTo: () => false,
});

it('work of a custom kind has clusters bought when an older one of the same candidate serves it', async () => {
  const scene = new BurstScene();
  scene.objects.put(policyNamed('peak', { minimumClusters: 1, candidates: [policyNamed('peak').spec.candidates[0]!] }));
  await scene.look(SECOND);
  const [first] = scene.clusters();
  scene.join(first!, 0);
  const { name } = first!.metadata;
  scene.demands = [demand(TRAIN, 6, { customKind: servedBy() })];
  await scene.looks(2 * MINUTE);
  expect(scene.clusters()).toHaveLength(1);
  expect(scene.policy()?.status?.demand).toMatchObject([
    { state: 'Refused', message: expect.stringContaining('cloud: a new cluster of it will not serve batch.volcano') },
  ]);
  scene.demands = [demand(TRAIN, 6, { customKind: servedBy(name) })];
  await scene.looks(2 * MINUTE);
  // One is enough: until it has joined it is believed to serve what the first one does.
  expect(scene.clusters()).toHaveLength(2);
  expect(scene.policy()?.status?.demand).toMatchObject([{ state: 'RoomOrdered' }]);
});

it('a cluster that has just come is no proof of what others like it will serve, and has time to serve it', async () => {
  const scene = new BurstScene();
  scene.objects.put(policyNamed('peak', { minimumClusters: 1, candidates: [policyNamed('peak').spec.candidates[0]!] }));
  await scene.look(SECOND);
  const [first] = scene.clusters();
  scene.join(first!, 0);
  const membership = scene.objects.find<any>(MEMBERSHIPS, `${first!.metadata.name}.production`, 'shop')!;
  const seen = new Date(scene.now).toISOString();
  const conditions = [{ type: 'CapacityVisible', status: 'True', lastTransitionTime: seen }];
  scene.objects.put({ ...membership, status: { ...membership.status, conditions } });
  scene.demands = [demand(TRAIN, 6, { customKind: servedBy(first!.metadata.name) })];
  await scene.looks(2 * MINUTE);
  expect(scene.clusters()).toHaveLength(1);
  await scene.looks(5 * MINUTE);
  expect(scene.clusters()).toHaveLength(2);
});

import { expect, it } from 'vitest';
import type { CustomKind } from '../../../operator/hubs/contract.ts';
import { MEMBERSHIPS } from '../../../operator/kube/resources.ts';
import { BurstTestbed, demand, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

const TRAIN = 'ResourceBinding shop/train';

/** A kind that these members serve, and that the hub brings nowhere. */
const servedBy = (...names: string[]): CustomKind => ({
  kind: 'batch.volcano.sh/v1alpha1 Job',
  servedBy: new Set(names),
  isBroughtTo: () => false,
});

it('work of a custom kind buys clusters when an older one of the candidate serves the kind', async () => {
  const testbed = new BurstTestbed();
  testbed.objects.put(
    policyNamed('peak', { minimumClusters: 1, candidates: [policyNamed('peak').spec.candidates[0]!] }),
  );
  await testbed.look(SECOND);
  const [first] = testbed.clusters();
  testbed.join(first!, 0);
  const { name } = first!.metadata;
  testbed.demands = [demand(TRAIN, 6, { customKind: servedBy() })];
  await testbed.looks(2 * MINUTE);
  expect(testbed.clusters()).toHaveLength(1);
  expect(testbed.policy()?.status?.demand).toMatchObject([
    { state: 'Refused', message: expect.stringContaining('cloud: a new cluster of it will not serve batch.volcano') },
  ]);
  testbed.demands = [demand(TRAIN, 6, { customKind: servedBy(name) })];
  await testbed.looks(2 * MINUTE);
  // One is enough: until it has joined it is believed to serve what the first one does.
  expect(testbed.clusters()).toHaveLength(2);
  expect(testbed.policy()?.status?.demand).toMatchObject([{ state: 'RoomOrdered' }]);
});

it('a new cluster proves nothing about served kinds before it had time to serve them', async () => {
  const testbed = new BurstTestbed();
  testbed.objects.put(
    policyNamed('peak', { minimumClusters: 1, candidates: [policyNamed('peak').spec.candidates[0]!] }),
  );
  await testbed.look(SECOND);
  const [first] = testbed.clusters();
  testbed.join(first!, 0);
  const membership = testbed.objects.find<any>(MEMBERSHIPS, `${first!.metadata.name}.production`, 'shop')!;
  const seen = new Date(testbed.now).toISOString();
  const conditions = [{ type: 'CapacityVisible', status: 'True', lastTransitionTime: seen }];
  testbed.objects.put({ ...membership, status: { ...membership.status, conditions } });
  testbed.demands = [demand(TRAIN, 6, { customKind: servedBy(first!.metadata.name) })];
  await testbed.looks(2 * MINUTE);
  expect(testbed.clusters()).toHaveLength(1);
  await testbed.looks(5 * MINUTE);
  expect(testbed.clusters()).toHaveLength(2);
});

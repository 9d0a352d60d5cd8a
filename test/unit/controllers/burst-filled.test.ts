import { beforeEach, describe, expect, it } from 'vitest';
import type { Membership } from '../../../operator/api/membership.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { PlacedSource } from '../../../operator/hubs/contract.ts';
import { MEMBERSHIPS } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { BurstTestbed, demand, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

const WEB = 'ResourceBinding shop/web';
let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(
    policyNamed('peak', {
      scaleIn: { idleFor: '5s', minimumLife: '1s' },
      cooldown: { scaleIn: '1s', scaleOut: '1s' },
      trigger: { pendingFor: '1s' },
    }),
  );
});

const seconds = async (count: number) => {
  for (let past = 0; past < count; past++) await testbed.look(SECOND);
};

/** A cluster that was bought for work, had it, and is empty for three seconds. */
async function idleCluster(): Promise<WorkerCluster> {
  testbed.demands = [demand(WEB, 1)];
  await seconds(5);
  const [cluster] = testbed.clusters();
  testbed.join(cluster!, 1);
  testbed.demands = [];
  await seconds(2);
  testbed.empty(cluster!);
  await seconds(3);
  expect(testbed.clusters()).toHaveLength(1);
  return cluster!;
}

const placed = (members: readonly string[], more: Partial<PlacedSource> = {}): PlacedSource => ({
  source: WEB,
  members,
  workload: { namespace: 'shop', name: 'web' },
  ...more,
});

const pod = (cluster: WorkerCluster, name: string) =>
  buildPod({
    metadata: {
      name,
      namespace: 'shop',
      ownerReferences: [{ apiVersion: '', kind: 'ReplicaSet', name: 'web-7d', uid: '' }],
    },
    spec: { nodeName: `${cluster.metadata.name}-0`, containers: [] },
  });
const podsOf = (cluster: WorkerCluster) => testbed.open.get(`shop/${cluster.metadata.name}`)!;

describe('a bought cluster that its hub fills again', () => {
  it('stays while placed work has no pods yet, and until these have ended', async () => {
    const cluster = await idleCluster();
    testbed.decidedFor = [placed([cluster.metadata.name])];
    await seconds(60);
    expect(testbed.clusters()).toHaveLength(1);
    podsOf(cluster).pods = [pod(cluster, 'web-7d-x')];
    await seconds(10);
    testbed.empty(cluster);
    await seconds(4);
    expect(testbed.clusters()).toHaveLength(1);
    // Its pods were seen: that the hub still names the cluster keeps it no longer.
    await seconds(6);
    expect(testbed.clusters()).toEqual([]);
  });

  it('is not kept by pods of other work: the placed ones are awaited', async () => {
    const cluster = await idleCluster();
    testbed.decidedFor = [placed([cluster.metadata.name])];
    podsOf(cluster).pods = [{ ...pod(cluster, 'batch-1'), metadata: { name: 'batch-1', namespace: 'shop' } }];
    await seconds(2);
    testbed.empty(cluster);
    await seconds(60);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('is removed after fifteen minutes without a pod, whatever the hub reports', async () => {
    const cluster = await idleCluster();
    testbed.decidedFor = [placed([cluster.metadata.name])];
    await testbed.looks(14 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
    await testbed.looks(3 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
  });

  it.each([
    ['by what is copied to every member', {}, 0],
    ['by what is divided among all members', { isDivided: true as const }, 1],
  ])('%s: %j keeps %i', async (_what, more, kept) => {
    const cluster = await idleCluster();
    const standing = { ...cluster, metadata: { name: 'own', namespace: 'shop' } };
    testbed.join(testbed.objects.put(standing), 1);
    testbed.decidedFor = [placed([cluster.metadata.name, 'own'], more)];
    await seconds(30);
    expect(testbed.clusters().filter(({ metadata }) => metadata.name !== 'own')).toHaveLength(kept);
  });

  it('is idle from the last time that work needed it', async () => {
    const cluster = await idleCluster();
    // For three seconds work waits that it has room for; then somebody takes that back.
    testbed.demands = [demand(WEB, 1)];
    await seconds(3);
    testbed.demands = [];
    await seconds(4);
    expect(testbed.clusters()).toHaveLength(1);
    await seconds(3);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.receipt()!.decisions[0]).toMatchObject({ action: 'Remove', cluster: cluster.metadata.name });
  });
});

describe('a bought cluster without work that waiting work would use', () => {
  it('is not idle, and its status is written once', async () => {
    const cluster = await idleCluster();
    const idleSince = () => testbed.policy()!.status!.clusters![0]!.idleSince;
    testbed.demands = [demand(WEB, 1)];
    await testbed.look(10 * SECOND);
    testbed.objects.writes.length = 0;
    await testbed.looks(60 * SECOND);
    expect(testbed.objects.writes).toEqual([]);
    expect(idleSince()).toBeUndefined();
    testbed.objects.put(policyNamed('peak'));
    testbed.demands = [];
    await testbed.looks(30 * SECOND);
    expect(idleSince()).toBe(new Date(testbed.now - 20 * SECOND).toISOString().replace('.000', ''));
    expect(testbed.clusters()).toEqual([cluster]);
  });

  it('is not idle for work of another policy', async () => {
    const cluster = await idleCluster();
    testbed.objects.put(policyNamed('younger', {}, testbed.now));
    // Its work comes to nothing of this policy, which decides before the one that needs the cluster.
    testbed.objects.put(policyNamed('peak', { namespaces: ['other'], scaleIn: { minimumLife: '1s' } }));
    testbed.demands = [demand(WEB, 1)];
    await testbed.looks(40 * SECOND);
    testbed.objects.writes.length = 0;
    await testbed.looks(5 * MINUTE);
    expect(testbed.objects.writes).toEqual([]);
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.policy()!.status!.clusters).toMatchObject([{ name: cluster.metadata.name }]);
  });
});

describe('a bought cluster missing from its hub', () => {
  it('is not Joined, and is removed without work', async () => {
    const cluster = await idleCluster();
    testbed.demands = [demand(WEB, 1, { accepts: () => false })];
    const membership = testbed.objects.find<Membership>(MEMBERSHIPS, `${cluster.metadata.name}.production`, 'shop')!;
    testbed.objects.put({ ...membership, status: { ...membership.status, state: 'Joining' } } as Membership);
    await testbed.look(SECOND);
    expect(testbed.policy()!.status!.clusters).toMatchObject([{ phase: 'Making' }]);
    await seconds(10);
    expect(testbed.clusters()).toEqual([]);
  });
});

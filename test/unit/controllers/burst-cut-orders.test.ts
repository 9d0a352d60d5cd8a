import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstCandidate, BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { BurstMemory } from '../../../operator/controllers/burst/memory.ts';
import { BurstTestbed, demand, Killed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

const [first] = policyNamed('peak').spec.candidates;
const QUICK: Partial<BurstPolicySpec> = {
  trigger: { pendingFor: '1s' },
  cooldown: { scaleIn: '1s', scaleOut: '1s' },
  candidates: [first!],
};
let testbed: BurstTestbed;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak', QUICK));
});

const look = () =>
  testbed.look(SECOND).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
    testbed.lives = Number.POSITIVE_INFINITY;
    testbed.memory = new BurstMemory();
  });
const wants = async (replicas: number, seconds: number) => {
  testbed.demands = [demand('ResourceBinding shop/web', replicas)];
  for (let past = 0; past < seconds; past++) await look();
};
const poolOf = (cluster = testbed.clusters()[0]) => cluster!.spec.pools![0]!;
const minimum = () => poolOf().minimum;
const bought = () => testbed.receipt()!.purchases[0]!;
const cuts = () => testbed.receipt()!.decisions.filter(({ action }) => action === 'Cut');

describe('an order of which a part of the work is gone', () => {
  it('is cut to the nodes that the rest needs, and budgets count these', async () => {
    await wants(8, 5);
    expect(minimum()).toBe(8);
    expect(bought()).toMatchObject({ nodes: { a: 8 }, rate: '0.8', most: '0.8' });
    await wants(3, 15);
    expect(minimum()).toBe(8);
    await wants(3, 3);
    expect(minimum()).toBe(3);
    expect(testbed.clusters()).toHaveLength(1);
    expect(bought()).toMatchObject({ nodes: { a: 3 }, rate: '0.3', most: '0.3' });
    expect(cuts()).toEqual([
      expect.objectContaining({
        candidate: 'cloud',
        hourly: '0.5',
        why: 'it starts with 3 of 8 nodes of pool a: the work that waits for it needs no more',
      }),
    ]);
    expect(testbed.policy()?.status).toMatchObject({ hourly: '0.3', clusters: [{ hourly: '0.3' }] });
    expect(testbed.events).toContainEqual(expect.stringMatching(/^OrderCut WorkerCluster .*3 of 8 nodes of pool a/));
    testbed.objects.writes.length = 0;
    await wants(3, 60);
    expect(testbed.objects.writes.filter((write) => write.includes('WorkerCluster'))).toEqual([]);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    for (let past = 0; past < 5; past++) await look();
    expect(testbed.outcomes().at(-1)).toMatch(/^Buy Succeeded/);
  });

  it('keeps all nodes while the rest flickers, and the most that was needed in that time', async () => {
    await wants(8, 5);
    for (let times = 0; times < 4; times++) {
      await wants(3, 10);
      await wants(8, 2);
    }
    expect(minimum()).toBe(8);
    await wants(3, 8);
    await wants(5, 2);
    await wants(2, 8);
    expect(minimum()).toBe(5);
    await wants(2, 20);
    expect(minimum()).toBe(2);
  });

  it('gets another purchase for work that comes back', async () => {
    await wants(8, 5);
    await wants(3, 20);
    await wants(8, 10);
    expect(minimum()).toBe(3);
    expect(testbed.receipt()!.purchases.map(({ nodes }) => nodes)).toEqual([{ a: 3 }, { a: 5 }]);
  });

  it("is never cut below its template's minimum, nor where somebody has changed it, nor when suspended", async () => {
    const pools = [{ name: 'a', minimum: 4, maximum: 10 }];
    const { template } = first!;
    const candidates: BurstCandidate[] = [{ ...first!, template: { ...template, spec: { ...template.spec, pools } } }];
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates }));
    await wants(8, 5);
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates, suspend: true }));
    await wants(1, 30);
    expect(minimum()).toBe(8);
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates }));
    const made = testbed.clusters()[0]!;
    const withMinimum = (least: number): WorkerCluster => ({
      ...made,
      spec: { ...made.spec, pools: [{ ...poolOf(made), minimum: least }] },
    });
    testbed.objects.put(withMinimum(9));
    await wants(1, 30);
    expect(minimum()).toBe(9);
    testbed.objects.put(withMinimum(8));
    await wants(1, 30);
    expect(minimum()).toBe(4);
  });

  it('is not cut once it has joined, nor while more waits than is considered', async () => {
    await wants(8, 5);
    testbed.demands = Array.from({ length: 6_000 }, () => demand('ResourceBinding shop/huge', 1));
    for (let past = 0; past < 25; past++) await look();
    expect(minimum()).toBe(8);
    testbed.join(testbed.clusters()[0]!, 1);
    await wants(1, 30);
    expect(minimum()).toBe(8);
  });

  it('is not cut for a policy while it is to have the work of another one', async () => {
    const two: Partial<BurstPolicySpec> = { ...QUICK, namespaces: ['shop'] };
    testbed.objects.put(policyNamed('peak', two));
    testbed.objects.put(policyNamed('other', { ...QUICK, namespaces: ['else'], maximumClusters: 1 }));
    const both = (own: number, others: number) => [
      demand('ResourceBinding shop/web', own),
      ...(others > 0 ? [demand('ResourceBinding else/web', others, { namespace: 'else' })] : []),
    ];
    testbed.demands = both(8, 0);
    for (let past = 0; past < 5; past++) await look();
    testbed.demands = both(3, 4);
    for (let past = 0; past < 30; past++) await look();
    expect(testbed.clusters()).toHaveLength(1);
    expect(minimum()).toBe(8);
    testbed.demands = both(3, 0);
    for (let past = 0; past < 20; past++) await look();
    expect(minimum()).toBe(3);
  });

  it('gives its grants back with the nodes', async () => {
    const pools = [{ name: 'a', minimum: 1, maximum: 10, autoscale: 'Coppice' as const }];
    const { template } = first!;
    const candidates: BurstCandidate[] = [{ ...first!, template: { ...template, spec: { ...template.spec, pools } } }];
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates }));
    await wants(8, 5);
    expect(bought()).toMatchObject({ granted: { a: { nodes: 8 } }, most: '0.8' });
    await wants(3, 20);
    expect(poolOf()).toMatchObject({ minimum: 3, maximum: 3 });
    expect(bought()).toMatchObject({ nodes: { a: 3 }, granted: { a: { nodes: 3 } }, rate: '0.3', most: '0.3' });
  });

  it.each([1, 2, 3])(
    'is cut, and recorded once, when the operator is killed after %i further writes',
    async (lives) => {
      await wants(8, 5);
      await wants(3, 14);
      testbed.lives = lives;
      await wants(3, 40);
      expect(testbed.lives, 'was killed').toBe(Number.POSITIVE_INFINITY);
      expect(minimum()).toBe(3);
      expect(bought()).toMatchObject({ nodes: { a: 3 }, rate: '0.3' });
      expect(cuts()).toHaveLength(1);
      expect(testbed.clusters()).toHaveLength(1);
    },
  );

  it('is recorded also where it joined while no operator ran, so that its nodes are given back as usual', async () => {
    await wants(8, 5);
    await wants(3, 15);
    testbed.lives = 1;
    while (testbed.lives === 1) await wants(3, 1);
    testbed.lives = Number.POSITIVE_INFINITY;
    testbed.memory = new BurstMemory();
    expect([minimum(), bought().nodes]).toEqual([3, { a: 8 }]);
    testbed.join(testbed.clusters()[0]!, 3);
    testbed.demands = [];
    await testbed.look(MINUTE);
    await testbed.look(SECOND);
    expect(bought()).toMatchObject({ nodes: { a: 3 }, joinedAt: expect.any(String) });
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import { BurstTestbed, demand, MINUTE, policyNamed, SECOND, START } from '../../kit/burst/testbed.ts';

const WEB = 'ResourceBinding shop/web';
const QUICK: Partial<BurstPolicySpec> = {
  scaleIn: { idleFor: '5s', minimumLife: '1s' },
  cooldown: { scaleIn: '1s', scaleOut: '1s' },
  trigger: { pendingFor: '1s' },
};
let testbed: BurstTestbed;
const [first] = policyNamed('peak').spec.candidates;
beforeEach(() => {
  testbed = new BurstTestbed();
  testbed.objects.put(policyNamed('peak', { ...QUICK, candidates: [first!] }));
});

const seconds = async (count: number) => {
  for (let past = 0; past < count; past++) await testbed.look(SECOND);
};
const wants = async (replicas: number, during: number) => {
  testbed.demands = replicas > 0 ? [demand(WEB, replicas)] : [];
  await seconds(during);
};
const bought = () => testbed.receipt()!.decisions.filter(({ action }) => action === 'Buy').length;
/** A cluster that came and got no work, as its work had gone. */
async function unused(): Promise<void> {
  await wants(1, 10);
  testbed.join(testbed.clusters()[0]!, 0);
  await wants(0, 10);
  expect(testbed.clusters()).toEqual([]);
}

describe('an order whose work is gone', () => {
  it('is cancelled after 15 s without waiting work, and its candidate is cooled down', async () => {
    await wants(1, 10);
    await wants(0, 15);
    expect(testbed.clusters()).toHaveLength(1);
    await wants(0, 2);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.receipt()!.rests.cloud).toMatchObject({ failures: 1, why: expect.stringContaining('had no work') });
    expect(testbed.outcomes().at(-1)).toMatch(/^Buy GivenBack: .* before it was in the hub/);
  });

  it('is reduced to the remaining work', async () => {
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates: [first!], maximumNodes: 20 }));
    await wants(14, 5);
    expect(testbed.clusters()).toHaveLength(2);
    await wants(4, 20);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('is kept while the work is briefly gone, or more waits than is considered', async () => {
    await wants(1, 10);
    await wants(0, 10);
    await wants(1, 10);
    await wants(0, 10);
    const many = Array.from({ length: 6_000 }, (_, index) =>
      demand(`ResourceBinding shop/many-${index}`, 1, { each: { cpu: '64' } }),
    );
    testbed.demands = many;
    await seconds(20);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('is kept where an older policy that cannot decide may serve the work', async () => {
    testbed.objects.put(
      policyNamed('older', { ...QUICK, budget: { hourly: '0.01', currency: 'USD' } }, START - MINUTE),
    );
    await wants(1, 10);
    expect(testbed.clusters()).toHaveLength(1);
    const { receipts } = testbed.deps;
    const older = await receipts.read('shop/older');
    await receipts.save('shop/older', { ...older!, purchases: 'unreadable' } as never, older);
    await wants(1, 60);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it("is kept where its work is beyond the limit of the hub's demands", async () => {
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates: [first!], namespaces: ['shop'] }));
    await wants(1, 10);
    // Of one source, which is looked at as a whole or not at all.
    testbed.demands = Array.from({ length: 6_000 }, () => demand('ResourceBinding shop/huge', 1));
    await seconds(20);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('is forgotten when its cluster is gone', async () => {
    await wants(1, 10);
    await wants(0, 20);
    expect(testbed.receipt()!.purchases).toEqual([]);
    const later = testbed.now + SECOND;
    for (const key of ['coming', 'underused'])
      expect(testbed.memory.idle(`uid-of-peak/1/${key}`, true, later)).toBe(later);
  });

  it('is kept for a scheduled peak without waiting work', async () => {
    testbed.objects.put(policyNamed('peak', { ...QUICK, minimumClusters: 1 }));
    await wants(0, 60);
    expect(testbed.clusters()).toHaveLength(1);
  });
});

describe('a candidate whose clusters were unused', () => {
  it('is cooled down: alternating demand of 20 s buys two clusters in ten minutes, not one every 41 s', async () => {
    const orderedAt = new Map<string, number>();
    for (let second = 0; second < 600; second++) {
      await wants(second % 40 < 20 ? 1 : 0, 1);
      const [cluster] = testbed.clusters();
      if (!cluster) continue;
      const { name } = cluster.metadata;
      orderedAt.set(name, orderedAt.get(name) ?? second);
      // A cluster takes half a minute to come.
      if (second - orderedAt.get(name)! === 30) testbed.join(cluster, 0);
    }
    expect(bought()).toBe(2);
  });

  it('is still bought for work that waited as long as its startup', async () => {
    await unused();
    await wants(1, 5);
    expect(testbed.clusters()).toEqual([]);
    expect(testbed.policy()!.status!.demand).toMatchObject([
      { state: 'Refused', message: expect.stringContaining('work that has waited as long as a start takes') },
    ]);
    await wants(1, 10);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('is not cooled down after one had work', async () => {
    await unused();
    await wants(1, 15);
    testbed.join(testbed.clusters()[0]!, 1);
    await wants(0, 5);
    expect(testbed.receipt()!.rests).toEqual({});
  });
});

describe('a template that cannot be created', () => {
  const versioned = (version: string) => {
    const spec = { ...first!.template.spec, kubernetes: { version } };
    testbed.objects.put(
      policyNamed('peak', { ...QUICK, candidates: [{ ...first!, template: { ...first!.template, spec } }] }),
    );
  };

  it.each([
    ['version', { kubernetes: { version: '1.20.0' } }, 'offers no Kubernetes 1.20.0'],
    ['region', { region: 'mars-1' }, 'has no region "mars-1"'],
    [
      'machine type',
      { pools: [{ name: 'a', machineType: 'small', machineTypes: ['small', 'huge'], maximum: 3 }] },
      'no machine type "huge"',
    ],
  ])('for its %s is refused before it is bought', async (_what, more, why) => {
    const template = { ...first!.template, spec: { ...first!.template.spec, ...more } };
    testbed.objects.put(policyNamed('peak', { ...QUICK, candidates: [{ ...first!, template }] }));
    await wants(1, 60);
    expect(bought()).toBe(0);
    expect(testbed.policy()!.status!.demand).toMatchObject([
      { state: 'Refused', message: expect.stringContaining(why) },
    ]);
  });

  it('is retried at once after a correction, despite earlier cool-downs', async () => {
    versioned('1.20.0');
    await wants(1, 5);
    const receipt = testbed.receipt()!;
    const until = new Date(testbed.now + 60 * MINUTE).toISOString();
    // As it was written down for a purchase whose version nobody knew.
    const rests = { cloud: { failures: 3, until, why: 'no Kubernetes 1.20.0', orderedAt: until } };
    await testbed.deps.receipts.save('shop/peak', { ...receipt, rests }, await testbed.deps.receipts.read('shop/peak'));
    versioned('1.36.3');
    await wants(1, 3);
    expect(bought()).toBe(1);
  });
});

import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPeak } from '../../../operator/api/burstpolicy.ts';
import { peaksOf } from '../../../operator/controllers/burst/peaks.ts';
import { BurstTestbed, demand, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';

const at = (text: string) => Date.parse(`2026-11-${text}:00Z`);
const peak = (more: Partial<BurstPeak> = {}): BurstPeak => ({
  name: 'sale',
  start: '0 13 * * *',
  duration: '2h',
  clusters: 2,
  ...more,
});

describe('a schedule', () => {
  it.each<[string, Partial<BurstPeak>, string, [string, string]]>([
    ['before it begins: the next time', {}, '23T12:00', ['23T13:00', '23T15:00']],
    ['while it lasts', {}, '23T14:59', ['23T13:00', '23T15:00']],
    ['when it is over: tomorrow', {}, '23T15:00', ['24T13:00', '24T15:00']],
    ['its clusters are ordered before', { leadTime: '10m' }, '23T12:50', ['23T12:50', '23T15:00']],
    ['by clocks of its zone', { timeZone: 'Europe/Berlin' }, '23T12:30', ['23T12:00', '23T14:00']],
    ['longer than until the next one', { duration: '30h' }, '23T12:59', ['22T13:00', '23T19:00']],
  ])('%s', (_, more, now, [from, until]) => {
    expect(peaksOf({ schedule: [peak(more)] }, at(now))).toEqual([
      { name: 'sale', candidate: undefined, clusters: 2, from: at(from), until: at(until) },
    ]);
  });

  it('that never applies requests nothing', () => {
    expect(peaksOf({ schedule: [peak({ start: '0 0 30 2 *' })] }, at('23T12:00'))).toEqual([]);
  });
});

describe('a policy with a schedule', () => {
  let testbed: BurstTestbed;
  beforeEach(() => {
    testbed = new BurstTestbed();
  });
  /** Begins an hour after the testbed does. */
  const schedule = [peak({ leadTime: '5m', duration: '1h' })];

  it('creates clusters in time, keeps them although empty, and removes them at the end', async () => {
    testbed.objects.put(policyNamed('peak', { schedule }));
    await testbed.looks(54 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    await testbed.looks(MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([1, 1]);
    expect(testbed.policy()!.status).toMatchObject({
      clusterCount: 2,
      peaks: [{ name: 'sale', clusters: 2, since: '2026-11-23T12:55:00Z', until: '2026-11-23T14:00:00Z' }],
      decisions: [{ action: 'Buy', why: expect.stringMatching(/^peak sale is to have 2 clusters/) }, { action: 'Buy' }],
    });
    for (const cluster of testbed.clusters()) testbed.join(cluster, 0);
    await testbed.looks(63 * MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
    await testbed.looks(5 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    await testbed.looks(MINUTE);
    expect(testbed.policy()!.status!.peaks).toBeUndefined();
  });

  it('replaces a failed cluster from another candidate', async () => {
    testbed.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    await testbed.look();
    const [first] = testbed.clusters();
    const condition = { type: 'Ready', status: 'False', message: 'none left', codes: ['ERR_INFRA_RESOURCES_DEPLETED'] };
    testbed.objects.put({ ...first!, status: { conditions: [condition] } } as never);
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.region)).toEqual(['there']);
  });

  it('works with a hub that reports no unplaced work; without a schedule nothing is done', async () => {
    testbed.demands = undefined;
    testbed.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    testbed.objects.put(policyNamed('other'));
    await testbed.look();
    expect(testbed.clusters()).toHaveLength(1);
    expect(testbed.says('Ready')).toBe('True ScheduleOnly');
    expect(testbed.says('Ready', 'other')).toBe('False NoDemand');
  });

  it('keeps the minimum of clusters without a schedule, replaces a deleted one, and removes surplus ones', async () => {
    testbed.demands = undefined;
    testbed.objects.put(policyNamed('peak', { minimumClusters: 2 }));
    await testbed.look();
    expect(testbed.clusters()).toHaveLength(2);
    expect(testbed.says('Ready')).toBe('True ScheduleOnly');
    expect(testbed.policy()!.status!.peaks).toBeUndefined();
    for (const cluster of testbed.clusters()) testbed.join(cluster, 0);
    await testbed.looks(2 * 60 * MINUTE);
    expect(testbed.receipt()!.decisions.map(({ action }) => action)).toEqual(['Buy', 'Buy']);
    const [gone] = testbed.clusters();
    testbed.objects.objects.delete(`workerclusters/shop/${gone!.metadata.name}`);
    await testbed.looks(MINUTE);
    expect(testbed.clusters()).toHaveLength(2);
    expect(testbed.receipt()!.decisions[0]).toMatchObject({
      action: 'Buy',
      why: 'the policy is to have 2 clusters at least (minimumClusters), and 1 is there',
    });
    testbed.join(testbed.clusters()[1]!, 0);
    testbed.objects.put(policyNamed('peak', { minimumClusters: 1 }));
    await testbed.looks(60 * MINUTE);
    expect(testbed.clusters()).toHaveLength(1);
  });

  it('creates clusters with a node also after a reclaim, from another pool', async () => {
    const pools = [
      { name: 'spot', spot: true, minimum: 0, maximum: 8 },
      { name: 'ondemand', minimum: 0, maximum: 4 },
    ];
    const template = { spec: { cloudProvider: 'cloud', controlPlaneNodes: 1 as const, pools } };
    const offer = { profile: 'cloud', region: 'here', zone: '', machineType: 'small', spot: true };
    testbed.depleted = [{ ...offer, until: testbed.now + MINUTE, interrupted: true }];
    testbed.objects.put(policyNamed('peak', { minimumClusters: 1, candidates: [{ name: 'cloud', template }] }));
    await testbed.look();
    expect(testbed.clusters().map(({ spec }) => spec.pools!.map(({ minimum }) => minimum))).toEqual([[0, 1]]);
  });

  it('buys for work that its scheduled clusters do not take', async () => {
    testbed.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    testbed.demands = [demand('ResourceBinding shop/web', 3)];
    await testbed.looks(2 * MINUTE);
    expect(testbed.clusters().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([1, 2]);
  });

  it('only reports its result in a dry run, once', async () => {
    testbed.objects.put(policyNamed('peak', { schedule, dryRun: true }));
    await testbed.looks(58 * MINUTE);
    expect(testbed.clusters()).toEqual([]);
    const writes = testbed.objects.writes.length;
    await testbed.looks(50 * SECOND);
    expect(testbed.objects.writes).toHaveLength(writes);
    expect(testbed.policy()!.status!.decisions).toMatchObject([{ action: 'Buy', dryRun: true }]);
  });
});

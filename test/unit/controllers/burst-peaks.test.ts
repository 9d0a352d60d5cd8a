import { beforeEach, describe, expect, it } from 'vitest';
import type { BurstPeak } from '../../../operator/api/burstpolicy.ts';
import { peaksOf } from '../../../operator/controllers/burst/peaks.ts';
import { BurstScene, demand, MINUTE, policyNamed, SECOND } from '../../kit/burst/scene.ts';

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

  it('that never comes asks for nothing', () => {
    expect(peaksOf({ schedule: [peak({ start: '0 0 30 2 *' })] }, at('23T12:00'))).toEqual([]);
  });
});

describe('a policy with a schedule', () => {
  let scene: BurstScene;
  beforeEach(() => {
    scene = new BurstScene();
  });
  /** Begins an hour after the scene does. */
  const schedule = [peak({ leadTime: '5m', duration: '1h' })];

  it('has clusters made in time, keeps them though they are empty, and gives them back when it is over', async () => {
    scene.objects.put(policyNamed('peak', { schedule }));
    await scene.looks(54 * MINUTE);
    expect(scene.clusters()).toEqual([]);
    await scene.looks(MINUTE);
    expect(scene.clusters().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([1, 1]);
    expect(scene.policy()!.status).toMatchObject({
      clusterCount: 2,
      peaks: [{ name: 'sale', clusters: 2, since: '2026-11-23T12:55:00Z', until: '2026-11-23T14:00:00Z' }],
      decisions: [{ action: 'Buy', why: expect.stringMatching(/^peak sale is to have 2 clusters/) }, { action: 'Buy' }],
    });
    for (const cluster of scene.clusters()) scene.join(cluster, 0);
    await scene.looks(63 * MINUTE);
    expect(scene.clusters()).toHaveLength(2);
    await scene.looks(5 * MINUTE);
    expect(scene.clusters()).toEqual([]);
    await scene.looks(MINUTE);
    expect(scene.policy()!.status!.peaks).toBeUndefined();
  });

  it('has what fails made again, by another candidate', async () => {
    scene.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    await scene.look();
    const [first] = scene.clusters();
    const condition = { type: 'Ready', status: 'False', message: 'none left', codes: ['ERR_INFRA_RESOURCES_DEPLETED'] };
    scene.objects.put({ ...first!, status: { conditions: [condition] } } as never);
    await scene.looks(2 * MINUTE);
    expect(scene.clusters().map(({ spec }) => spec.region)).toEqual(['there']);
  });

  it('keeps to it with a hub that does not tell which work has no place; one without has nothing to do', async () => {
    scene.demands = undefined;
    scene.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    scene.objects.put(policyNamed('other'));
    await scene.look();
    expect(scene.clusters()).toHaveLength(1);
    expect(scene.says('Ready')).toBe('True ScheduleOnly');
    expect(scene.says('Ready', 'other')).toBe('False NoDemand');
  });

  it('has its least number of clusters without a schedule, makes one that is gone again, and gives back what is more', async () => {
    scene.demands = undefined;
    scene.objects.put(policyNamed('peak', { minimumClusters: 2 }));
    await scene.look();
    expect(scene.clusters()).toHaveLength(2);
    expect(scene.says('Ready')).toBe('True ScheduleOnly');
    expect(scene.policy()!.status!.peaks).toBeUndefined();
    for (const cluster of scene.clusters()) scene.join(cluster, 0);
    await scene.looks(2 * 60 * MINUTE);
    expect(scene.receipt()!.decisions.map(({ action }) => action)).toEqual(['Buy', 'Buy']);
    const [gone] = scene.clusters();
    scene.objects.objects.delete(`workerclusters/shop/${gone!.metadata.name}`);
    await scene.looks(MINUTE);
    expect(scene.clusters()).toHaveLength(2);
    expect(scene.receipt()!.decisions[0]).toMatchObject({
      action: 'Buy',
      why: 'the policy is to have 2 clusters at least (minimumClusters), and 1 is there',
    });
    scene.join(scene.clusters()[1]!, 0);
    scene.objects.put(policyNamed('peak', { minimumClusters: 1 }));
    await scene.looks(60 * MINUTE);
    expect(scene.clusters()).toHaveLength(1);
  });

  it('buys for work beside it what its clusters do not take', async () => {
    scene.objects.put(policyNamed('peak', { schedule: [peak({ leadTime: '1h', clusters: 1 })] }));
    scene.demands = [demand('ResourceBinding shop/web', 3)];
    await scene.looks(2 * MINUTE);
    expect(scene.clusters().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([1, 2]);
  });

  it('only says what it would have in a dry run, once', async () => {
    scene.objects.put(policyNamed('peak', { schedule, dryRun: true }));
    await scene.looks(58 * MINUTE);
    expect(scene.clusters()).toEqual([]);
    const writes = scene.objects.writes.length;
    await scene.looks(50 * SECOND);
    expect(scene.objects.writes).toHaveLength(writes);
    expect(scene.policy()!.status!.decisions).toMatchObject([{ action: 'Buy', dryRun: true }]);
  });
});

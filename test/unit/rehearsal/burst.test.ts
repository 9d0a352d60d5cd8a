import { describe, expect, it } from 'vitest';
import { rehearsalChart } from '../../../operator/cli/render/rehearsal-chart.ts';
import { nodesAlone } from '../../../operator/rehearsal/baselines.ts';
import { boundOf } from '../../../operator/rehearsal/bound/bound.ts';
import { areaOf, highest, lingeringLevels, stretchLevels } from '../../../operator/rehearsal/bound/levels.ts';
import { rehearse } from '../../../operator/rehearsal/rehearse.ts';
import { surveyTrace } from '../../../operator/rehearsal/survey.ts';
import { readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import { cluster, file, HOUR, profile } from './fixtures.ts';
import { HEADER, playWork as play, policy, SLOW, STANDING } from './policy-fixtures.ts';

const MINUTE = 60_000;

describe('the work of a rehearsal', () => {
  it('lists the policy fields that are not rehearsed', async () => {
    const drains = policy({ scaleIn: { drainDeadline: '5m' } });
    const { scenario } = await play('20m,web,1,,1500m,1Gi,,', [STANDING, drains]);
    expect(scenario.ignored).toEqual(['scaleIn.drainDeadline of BurstPolicy peak']);
    expect((await play('20m,web,1,,1500m,1Gi,,')).scenario.ignored).toEqual([]);
  });

  it('runs where there is room; for the rest the planner buys a cluster, and removes it when idle', async () => {
    const { report, told } = await play('20m,web,2,,1500m,1Gi,,\n1h,web,5,,,,,\n3h,web,2,,,,,\n5h,web,2,,,,,');
    expect(told('bought', 'given-back')).toEqual([
      '01:00:30 bought: 3 replicas (1500m CPU, 1Gi memory each) of web (1500m CPU, 1Gi) have no place; public takes 3 of them for 0.8 USD an hour',
      '03:10:00 given-back: it has no work any more',
    ]);
    const { waits, waited, waitedAfterStabilisation, waitedBeyondStartup, bought } = report.work!;
    expect(waits).toMatchObject({ count: 5, p50: 7 * MINUTE + 30_000 });
    // Half a minute to be sure, five for the control plane, two for the nodes.
    expect(waited).toEqual({ count: 3, p50: 450_000, p95: 450_000, p99: 450_000, max: 450_000 });
    expect(waitedAfterStabilisation.p95).toBe(420_000);
    expect(waitedBeyondStartup.p95).toBe(30_000);
    expect(bought).toMatchObject({ clusters: 1, peakClusters: 1, peakNodes: 3 });
    // Three machines at 0.1 USD from 1:05:30 to 3:10:00, and a control plane at 0.5 USD from 1:00:30.
    expect(bought.costs).toEqual([
      { currency: 'USD', amount: BigInt(Math.round(300_000 * (124.5 / 60) + 500_000 * (129.5 / 60))) },
    ]);
    expect(report.bought).toMatchObject([{ candidate: 'public', made: 1, peak: 3 }]);
    expect(report.clusters.map(({ name }) => name)).toEqual(['private']);
  });

  it('finds the minimum number of clusters from beginning to end', async () => {
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n3h,web,2,,,,,\n5h,web,2,,,,,';
    const { report, told } = await play(rows, [STANDING, policy({ minimumClusters: 1 })]);
    expect(told('bought', 'given-back')).toEqual([
      '00:00:00 bought: the policy is to have 1 cluster at least (minimumClusters), and 0 are there',
    ]);
    expect(report.work!.waits.max).toBeLessThan(MINUTE);
  });

  it('gets no more nodes than its policy permits, and the limit is named', async () => {
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,5,,,,,\n3h,web,2,,,,,\n5h,web,2,,,,,';
    const { report, told } = await play(rows, [STANDING, policy({ maximumNodes: 3 })]);
    expect(told('bought')).toEqual([]);
    expect(report.work!.refusals).toMatchObject([
      { why: expect.stringMatching(/4 nodes with those .* of its 3 nodes \(maximumNodes\)/) },
    ]);
    // The cloud's own autoscaler may have it at 4 at any time.
    expect((await play(rows, [STANDING, policy({ maximumNodes: 4 })])).told('bought')).toHaveLength(1);
  });

  it("below its policy's minimum priority waits", async () => {
    const rows = '20m,web,2,,1500m,1Gi,,,\n1h,low,2,,1500m,1Gi,,,,-5\n2h,web,3,,,,,,\n4h,web,3,,,,,,';
    const header = `${HEADER},priority`;
    const least = await play(rows, [STANDING, policy({ minimumPriority: 0 })], SLOW, header);
    expect(least.told('bought')).toEqual([expect.stringMatching(/^02:00:30 bought: 1 replica .* of web/)]);
    expect(least.report.work!.waiting).toBe(2);
    expect((await play(rows, [STANDING, policy()], SLOW, header)).told('bought')[0]).toMatch(/^01:00:30 .* of low/);
  });

  it('keeps a bought cluster for its minimum life, and buys nothing for short work', async () => {
    const short = await play('20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n1h20s,web,2,,,,,\n3h,web,2,,,,,');
    expect(short.told('bought')).toEqual([]);
    expect(short.report.work).toMatchObject({ cancelled: 1, waiting: 0 });
    const brief = await play('20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n1h10m,web,2,,,,,\n3h,web,2,,,,,');
    expect(brief.told('given-back')).toEqual(['01:30:30 given-back: it has no work any more']);
  });

  it('that ends before its cluster came has the order cancelled after the waiting time', async () => {
    const brief = await play('20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n1h4m,web,2,,,,,\n3h,web,2,,,,,');
    expect(brief.told('given-back')).toEqual(['01:04:30 given-back: it has no work any more']);
  });

  describe('that comes for four minutes of each hour, with clusters that take twelve', () => {
    const NEVER_IN_TIME = { controlPlane: { creation: { p50: '10m' } }, machines: { creation: { p50: '2m' } } };
    const stays = policy({ scaleIn: { idleFor: '10m', minimumLife: '30m' } });
    const hours = Array.from({ length: 24 }, (_, hour) => [
      `${hour * 60 + 10}m,web,3,,1500m,1Gi,,`,
      `${hour * 60 + 14}m,web,2,,1500m,1Gi,,`,
    ]);

    it('orders eight clusters a day instead of 24, each cancelled before it exists', async () => {
      const { report, told } = await play(hours.flat().join('\n'), [STANDING, stays], NEVER_IN_TIME);
      expect(report.work!.bought.clusters).toBe(8);
      // Before: 24 clusters of 45 minutes each.
      expect(told('given-back')).toHaveLength(8);
      expect(report.work!.bought.costs[0]!.amount).toBeLessThan(500_000n);
    });

    it("is served once it stays as long as a cluster's startup", async () => {
      const day = [...hours.slice(0, 5).flat(), '5h10m,web,3,,1500m,1Gi,,', '9h,web,2,,,,,'];
      const { report, told } = await play(day.join('\n'), [STANDING, stays], NEVER_IN_TIME);
      // The rest, until 05:34, ends when this work has waited as long as an order did in vain: nothing more is known of its start.
      expect(told('bought').at(-1)).toMatch(/^05:14:/);
      expect(report.work!.waiting).toBe(0);
    });
  });

  describe('with little left on a bought cluster', () => {
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,api,1,,900m,1Gi,,\n90m,web,0,,,,,\n6h,api,1,,,,,';
    const scaleIn = { idleFor: '10m', minimumLife: '30m', consolidationPolicy: 'WhenEmptyOrUnderutilized' };
    const empties = policy({ scaleIn });

    it('keeps the cluster, unless its policy empties it onto free room elsewhere, at lower cost without waits', async () => {
      const stays = await play(rows);
      expect(stays.told('emptied', 'given-back')).toEqual([]);
      const { report, told } = await play(rows, [STANDING, empties]);
      expect(told('emptied', 'kept', 'given-back')).toEqual([
        '01:30:30 emptied: it has little work: 1 replica (900m CPU, 1Gi memory each) of api, for which there is room on shop/private',
        '01:30:40 given-back: it has no work any more',
      ]);
      expect(report.work!.waited.count).toBe(stays.report.work!.waited.count);
      const [before, after] = [stays, { report }].map(({ report: { work } }) => work!.bought.costs[0]!.amount);
      expect(Number(after)).toBeLessThan(Number(before) / 4);
    });

    it('keeps the cluster while the room elsewhere is taken, and where jobs would restart', async () => {
      const full = await play(rows.replace('90m,web,0', '90m,web,2'), [STANDING, empties]);
      expect(full.told('emptied', 'given-back')).toEqual([]);
      const ofJobs = '20m,web,2,,1500m,1Gi,,\n1h,api,,1,900m,1Gi,4h,\n90m,web,0,,,,,\n6h,web,0,,,,,';
      const jobs = await play(ofJobs, [STANDING, empties]);
      expect(jobs.told('emptied')).toEqual([]);
    });
  });

  it('on a reclaimed machine waits again, and a job restarts', async () => {
    const spot = cluster('spot', {
      mode: 'Hosted',
      dataPlaneNodes: undefined,
      pools: [{ name: 'pool', machineType: 'm', minimum: 1, maximum: 1, spot: true }],
    });
    const rough = { ...SLOW, seed: 4, spot: { interruptionsPerHour: 0.6 } };
    const { told, report } = await play('20m,batch,,1,1500m,1Gi,2h\n12h,other,0,,1,1Gi,', [spot], rough);
    const ran = report.standings.filter(({ at, running }) => at < 12 * HOUR && running > 0);
    const ended = report.standings.find(({ at, demand }) => at > ran[0]!.at && demand === 0)!.at;
    const lost = told('interrupted').filter(
      (line) => line > '00:20' && line < new Date(ended).toISOString().slice(11, 19),
    );
    expect(lost.length).toBeGreaterThan(0);
    // Once when it came, and once after each loss; the last time it ran for two hours.
    expect(report.work?.waits.count).toBe(1 + lost.length);
    expect(ended - ran.at(-1)!.at).toBe(2 * HOUR);
  });

  it('is served by another cloud after a spot machine was reclaimed, although that cloud costs less', async () => {
    const [{ name, template }] = policy().spec.candidates;
    const as = (more: object) => ({ spec: { ...template.spec, pools: [{ ...template.spec.pools[0], ...more }] } });
    const spot = { name: 'spot', assumedHourly: '0.1', template: as({ spot: true, zones: ['north-a'] }) };
    const both = policy({ candidates: [spot, { name, template: as({}) }] });
    const slow = { controlPlane: { creation: { p50: '5m' } }, machines: { creation: { p50: '20m' } } };
    const rough = { ...slow, seed: 1, spot: { interruptionsPerHour: 1.5 } };
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n5h,web,2,,,,,';
    const { told } = await play(rows, [STANDING, both], rough);
    expect(told('interrupted')).toContainEqual(expect.stringMatching(/^02:13:07 /));
    expect(told('bought').find((line) => line > '02:13:07')).toMatch(/^02:13:40 .*; public takes 1 of them/);
  });

  it.each([
    ['of its own cluster', 'own', 1],
    // As the operator has it: what replaces a node that was lost long after its pool was sized is not counted on.
    ['of a hub', '', 2],
  ])(
    '%s has another pool grow than the one whose spot machine its cloud has just taken away, though that costs less',
    async (_, where, grown) => {
      const pool = { machineType: 'm', minimum: 0, maximum: 5, autoscale: 'Coppice' };
      const growing = cluster('own', {
        mode: 'Hosted',
        dataPlaneNodes: undefined,
        pools: [
          { ...pool, name: 'spot', spot: true, zones: ['north-a'], minimum: 1 },
          { ...pool, name: 'steady' },
        ],
      });
      const grow = [{ name: 'own', clusterSelector: {}, maximumNodes: 5, assumedHourly: '0.1' }];
      const rough = { ...SLOW, seed: 1, spot: { interruptionsPerHour: 1.5 } };
      const rows = `20m,web,1,,1500m,1Gi,,,${where}\n31m,web,2,,,,,,${where}\n40m,web,2,,,,,,${where}`;
      const { told } = await play(rows, [growing, policy({ grow })], rough);
      expect(told('interrupted')).toContainEqual(expect.stringMatching(/^00:30:55 .*pool spot/));
      expect(told('asked').filter((line) => line > '00:31')).toEqual([
        expect.stringMatching(new RegExp(`^00:31:.. asked: pool steady: ${grown} x m `)),
      ]);
    },
  );

  it.each([
    ['of its own cluster', 'own'],
    ['of a hub', ''],
  ])('%s has pools grow as far as the CloudProfile lets the cluster, as with the operator', async (_, where) => {
    const limited = { ...profile, spec: { ...profile.spec, limits: { maxNodesTotal: 3 } } };
    const pool = { name: 'a', machineType: 'm', minimum: 0, maximum: 10, autoscale: 'Coppice' };
    const growing = cluster('own', { mode: 'Hosted', dataPlaneNodes: undefined, pools: [pool] });
    const grow = [{ name: 'own', clusterSelector: {}, maximumNodes: 10, assumedHourly: '0.1' }];
    // Too little for a cluster.
    const only = policy({ grow, budget: { hourly: '0.45', currency: 'USD' } });
    const rows = Array.from({ length: 6 }, (_, index) => `${10 + index}m,web-${index},1,,1500m,1Gi,,,${where}`).join(
      '\n',
    );
    const { told, report } = await play(`${rows}\n2h,web-0,1,,,,,,${where}`, [limited, growing, only]);
    expect(told('refused')).toEqual([]);
    expect(report.clusters[0]).toMatchObject({ peak: 3 });
  });

  it('finds a cluster that was bought for its scheduled peak', async () => {
    const known = policy({
      schedule: [{ name: 'sale', start: '50 0 * * *', duration: '3h', clusters: 1 }],
      scaleIn: { idleFor: '10m', minimumLife: '30m' },
    });
    const { told } = await play('20m,web,1,,1500m,1Gi,,\n5h,web,1,,,,,', [STANDING, known]);
    expect(told('bought', 'given-back').map((line) => line.slice(0, 14))).toEqual(['00:50:00 bough', '03:50:00 given']);
  });

  it('ends at the end of its life', async () => {
    const jobs = '20m,batch,,1,1500m,1Gi,100m\n1h,batch,,3,1500m,1Gi,1h\n8h,batch,,1,1500m,1Gi,1h';
    const { report } = await play(jobs, [STANDING]);
    expect(report.work?.waits).toMatchObject({ count: 5 });
    // Two nodes: the third of four has to wait for the end of one, and the fourth, too.
    expect(report.work?.waited).toEqual({ count: 2, p50: HOUR, p95: HOUR, p99: HOUR, max: HOUR });
  });

  it('with jobs of one moment is served like jobs of separate names, in part where there is no more room', async () => {
    // Three clusters of four machines beside two that stand, for jobs of a machine each.
    const none = '\n9h,end,,1,100m,1Mi,1m,';
    const together = `20m,batch,,40,1500m,1Gi,20m,${none}`;
    const apart = Array.from({ length: 40 }, (_, index) => `20m,batch-${index},,1,1500m,1Gi,20m,`).join('\n') + none;
    const [one, many] = [await play(together), await play(apart)];
    expect(one.report.work).toMatchObject({ neverRan: { count: 0 }, bought: { clusters: 3, peakNodes: 12 } });
    const figures = ({ report: { work } }: typeof one) => ({ ...work, refusals: [] });
    expect(figures(one)).toEqual(figures(many));
    // 14 at once are three rounds; the first twelve machines are there after some minutes.
    expect(one.report.work!.waits.max).toBeLessThan(HOUR);
  });

  it("beyond the operator's limit of jobs is considered in order of arrival", async () => {
    const rows = '20m,batch,,5000,1500m,1Gi,9h,\n30m,late,,9,1,1Gi,9h,\n31m,end,,1,100m,1Mi,1m,';
    const { report, told } = await play(rows, [STANDING, policy({ maximumClusters: 1 })]);
    expect(told('bought')).toEqual([expect.stringContaining('of batch (')]);
    expect(report.work!.waiting).toBeGreaterThan(5000);
  });

  it('of one cluster grows its pools, and buys nothing', async () => {
    const growing = cluster('own', {
      mode: 'Hosted',
      dataPlaneNodes: undefined,
      pools: [{ name: 'pool', machineType: 'm', minimum: 0, maximum: 5, autoscale: 'Coppice', scaleInAfter: '10m' }],
    });
    const rows = '0,web,0,,1500m,1Gi,,,own\n1h,web,3,,,,,,own\n2h,web,1,,,,,,own\n4h,web,1,,,,,,own';
    const { told, report } = await play(rows, [growing, policy()]);
    expect(told('bought')).toEqual([]);
    expect(told('asked')).toEqual(['01:00:00 asked: pool pool: 3 x m (0 -> 3)']);
    expect(told('scaled-in')).toEqual(['02:10:00 scaled-in: pool pool: 2 machines taken away (3 -> 1)']);
    expect(report.work?.waited).toMatchObject({ count: 3, max: 2 * MINUTE });
  });

  it('is placed on clusters with its labels only', async () => {
    const { report, told } = await play('0,web,1,,1500m,1Gi,,tier=public\n1h,web,1,,,,,tier=public');
    expect(told('bought')).toHaveLength(1);
    expect(report.work?.waited.count).toBe(1);
  });

  describe('with node rules', () => {
    const template = policy().spec.candidates[0].template.spec;
    const tainted = {
      name: 'batch',
      machineType: 'm',
      maximum: 2,
      zones: ['north-b'],
      labels: { kind: 'batch' },
      taints: [{ key: 'dedicated', value: 'batch', effect: 'NoSchedule' }],
    };
    const pools = [...template.pools, tainted];
    const both = policy({ candidates: [{ name: 'public', template: { spec: { ...template, pools } } }] });
    const header = `${HEADER},nodeSelector,tolerations`;
    const rows = (nodeSelector: string, tolerations: string) => {
      const line = (at: string) => `${at},web,1,,1500m,1Gi,,,,${nodeSelector},${tolerations}`;
      return [line('0'), line('2h')].join('\n');
    };
    const asked = async (nodeSelector: string, tolerations: string) => {
      const { told, report } = await play(rows(nodeSelector, tolerations), [STANDING, both], SLOW, header);
      return [told('asked').filter((text) => !text.includes('servers')), report.work!.waits.count] as const;
    };

    it('gets matching nodes, and runs there', async () => {
      const own = [['00:05:30 asked: pool batch: 1 x m (0 -> 1)'], 1];
      expect(await asked('kind=batch', 'dedicated=batch:NoSchedule')).toEqual(own);
      expect(await asked('topology.kubernetes.io/zone=north-b', 'dedicated')).toEqual(own);
    });

    it('waits for ever where none is offered, and the report says why', async () => {
      const { told, report } = await play(rows('kind=batch', ''), [STANDING, both], SLOW, header);
      expect(told('bought')).toEqual([]);
      expect(report.work).toMatchObject({ waiting: 1, refusals: [{ why: expect.stringMatching(/taint/) }] });
      await expect(play(rows('kind', ''), [both], SLOW, header)).rejects.toThrow(
        'nodeSelector: "kind" is no key=value',
      );
      await expect(play(rows('a=b', '=:'), [both], SLOW, header)).rejects.toThrow(
        'tolerations: "=:" is no key=value:Effect',
      );
    });
  });

  it('is deterministic, byte by byte', async () => {
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,6,,,,,\n1h30m,batch,,4,1,1Gi,1h\n3h,web,2,,,,,\n9h,web,2,,,,,';
    const rough = { ...SLOW, seed: 3, machines: { creation: { p50: '1m', p95: '4m' }, failureRate: 0.1 } };
    const run = async () => {
      const { report, told } = await play(rows, undefined, rough);
      const text = JSON.stringify([report, told('bought', 'given-back', 'asked')], (_, value: unknown) =>
        typeof value === 'bigint' ? String(value) : value instanceof Map ? [...value] : value,
      );
      const { start, end, standings } = report;
      return [text, rehearsalChart({ title: 'peak', start, end, dated: false, currency: 'USD', standings })];
    };
    const [text, chart] = await run();
    expect(await run()).toEqual([text, chart]);
    // Viewers that know no variables of CSS draw all in black.
    expect(chart).not.toContain('var(');
  });

  it('is rejected without a size, or out of order', async () => {
    await expect(play('0,web,2')).rejects.toThrow('work.csv:2: workload web does not say what a replica asks for');
    await expect(play('0,web,2,3,1,1Gi,1h')).rejects.toThrow('work.csv:2: workload web has either replicas or jobs');
    await expect(play('0,web,,3,1,1Gi')).rejects.toThrow('work.csv:2: workload web: jobs, and only these, have a life');
    await expect(play('0,web,1,,1,much')).rejects.toThrow('work.csv:2: memory: is no quantity');
    await expect(play('0,web,1,,1,1Gi,,tier')).rejects.toThrow('clusterLabels: "tier" is no key=value');
  });
});

const PEAK = '20m,web,2,,1500m,1Gi,,\n1h,web,5,,,,,\n3h,web,2,,,,,\n5h,web,2,,,,,';

describe('the bounds beside a policy', () => {
  it('state the least cost, and what minimumLife enforces', async () => {
    const { scenario, report, trace } = await play(PEAK);
    const bound = await boundOf(scenario, scenario.policy!, trace(), report);
    // Three replicas, one on a machine of 0.1 USD, for two hours; standing for five, with a control plane.
    expect(bound).toMatchObject({ least: 600_000n, forcedByMinimumLife: 0n, peakNodes: 3, standing: 4_000_000n });
    // A cluster for these two hours, at 0.5 an hour.
    expect(bound?.controlPlanes).toBe(1_000_000n);
    const short = await play('20m,web,2,,1500m,1Gi,,\n1h,web,5,,,,,\n1h10m,web,2,,,,,\n5h,web,2,,,,,');
    const forced = await boundOf(short.scenario, short.scenario.policy!, short.trace(), short.report);
    expect(forced).toMatchObject({ least: 50_000n, forcedByMinimumLife: 100_000n, controlPlanes: 250_000n });
    // Of four nodes at most each.
    // Machines have room for one replica each, and stay ten minutes longer; so does the cluster.
    const [machines, fees] = [650_000n, 1_083_333n];
    expect(bound!.forced).toEqual({
      byMinimumLife: 600_000n,
      byWholeMachines: 600_000n,
      byControlPlanes: 1_600_000n,
      byIdleFor: machines + fees,
    });
    // That cluster lives for half an hour, and need not keep more than one of its machines; with idleFor, all of them for ten minutes more.
    expect(forced!.forced).toMatchObject({ byMinimumLife: 83_333n, byIdleFor: 116_667n + 250_000n });
    const small = await play('20m,web,4,,900m,1Gi,,\n1h,web,5,,,,,\n3h,web,4,,,,,\n5h,web,4,,,,,');
    const half = await boundOf(small.scenario, small.scenario.policy!, small.trace(), small.report);
    // One of two replicas for which a machine has room.
    expect(half).toMatchObject({ least: 100_000n, forced: { byMinimumLife: 100_000n, byWholeMachines: 200_000n } });
    const large = await play('20m,web,2,,1500m,1Gi,,\n1h,web,11,,,,,\n3h,web,2,,,,,\n5h,web,2,,,,,');
    const three = await boundOf(large.scenario, large.scenario.policy!, large.trace(), large.report);
    expect(three?.controlPlanes).toBe(3_000_000n);
  });

  it('state that machines are removed before their cluster, where Coppice removes them sooner', async () => {
    const [{ name, template }] = policy().spec.candidates;
    const pools = [{ ...template.spec.pools[0], autoscale: 'Coppice', scaleInAfter: '2m' }];
    const sized = policy({ candidates: [{ name, template: { spec: { ...template.spec, pools } } }] });
    const { scenario, report, trace } = await play(PEAK, [STANDING, sized]);
    const bound = await boundOf(scenario, scenario.policy!, trace(), report);
    // Three machines stay two minutes longer, and the last of them with the cluster for ten.
    expect(bound!.forced.byIdleFor).toBe(610_000n + 13_333n + 1_083_333n);
  });

  it('state the cost of jobs that stay where they began', async () => {
    // Standing are 3.8 CPU: of five jobs of 1.5 two begin there, and three stay beyond for their four hours.
    const jobs = await play('20m,batch,,5,1500m,1Gi,4h,,\n1h,other,,1,100m,1Gi,10m,,\n5h,other,,1,100m,1Gi,10m,,');
    const bound = await boundOf(jobs.scenario, jobs.scenario.policy!, jobs.trace(), jobs.report);
    // A machine of 1.9 CPU costs 0.1 an hour.
    expect(Number(bound!.staying)).toBeCloseTo(((3 * 1.5) / 1.9) * 0.1e6 * 4, -1);
    expect(bound!.least).toBeLessThan(bound!.staying!);
    const replicas = await play(PEAK);
    expect(
      await boundOf(replicas.scenario, replicas.scenario.policy!, replicas.trace(), replicas.report),
    ).not.toHaveProperty('staying');
  });

  it('state the cost by use', async () => {
    const { report } = await play('20m,web,2,,1500m,1Gi,,\n1h,web,4,,,,,\n3h,web,3,,,,,\n4h,web,2,,,,,\n6h,web,2,,,,,');
    const { fees, paidFor, costs } = report.work!.bought;
    const { starting, idle, spare, room, work } = paidFor;
    expect(costs).toEqual([{ currency: 'USD', amount: fees + starting + idle + spare + room + work }]);
    // Two machines of 0.1 an hour: two minutes until they are Ready; one of them without work for an hour, both for the last ten minutes.
    expect(paidFor).toMatchObject({ starting: 6_667n, idle: 33_333n, spare: 100_000n });
    // 4.75 hours of a machine of 1.9 CPU with a replica of 1.5.
    expect([room, work]).toEqual([100_000n, 375_000n]);
  });

  it('are lower where Coppice sizes the pools: a cluster shrinks', async () => {
    const [{ name, template }] = policy().spec.candidates;
    const pools = [{ ...template.spec.pools[0], autoscale: 'Coppice' }];
    const sized = policy({ candidates: [{ name, template: { spec: { ...template.spec, pools } } }] });
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,4,,,,,\n3h,web,3,,,,,\n4h,web,2,,,,,\n6h,web,2,,,,,';
    const { report } = await play(rows, [STANDING, sized]);
    // Each of two machines is without work for ten minutes: nobody has to keep the first.
    expect(report.work!.bought.paidFor).toMatchObject({ idle: 16_667n, spare: 16_667n });
  });

  it('exclude nodes that were returned soon after the cluster came', async () => {
    const [{ name, template }] = policy().spec.candidates;
    const pools = [{ ...template.spec.pools[0], autoscale: 'Coppice', scaleInAfter: '1m' }];
    const sized = policy({ candidates: [{ name, template: { spec: { ...template.spec, pools } } }] });
    const rows = '20m,web,2,,1500m,1Gi,,\n1h,web,4,,,,,\n1h7m40s,web,3,,,,,\n1h9m30s,web,4,,,,,\n3h,web,2,,,,,';
    const { told } = await play(rows, [STANDING, sized]);
    // Half a minute after work waits for it again, as always.
    expect(told('scaled-in', 'asked').slice(2, 4)).toEqual([
      expect.stringMatching(/^01:08:40 scaled-in/),
      expect.stringMatching(/^01:10:00 asked: .*\(1 -> 2\)/),
    ]);
  });

  it('include a cluster that grows by nodes alone', async () => {
    const { scenario, survey, trace, options } = await play(PEAK);
    const { work } = await rehearse(nodesAlone(scenario, 'public')!, trace(), survey, options);
    expect(work?.waited).toMatchObject({ count: 3, max: 2 * MINUTE });
    expect(work?.bought).toMatchObject({ clusters: 1, peakNodes: 3 });
    // Machines from 1:00 to 3:10, and the control plane all the time.
    expect(work?.bought.costs).toEqual([{ currency: 'USD', amount: 2_500_000n + 650_000n }]);
  });

  it('combine curves by lingering and maximum', () => {
    const levels = (...pairs: [number, number][]) => pairs.map(([at, units]) => ({ at, units }));
    expect(lingeringLevels(levels([0, 2], [10, 1], [12, 0], [15, 3], [16, 0]), 10)).toEqual(
      levels([0, 2], [15, 3], [26, 0]),
    );
    expect(lingeringLevels(levels([0, 2], [10, 1], [30, 0]), 10)).toEqual(levels([0, 2], [20, 1], [40, 0]));
    expect(highest(levels([0, 1], [10, 5]), levels([5, 3], [20, 0]))).toEqual(levels([0, 1], [5, 3], [10, 5], [20, 5]));
  });

  it('bill each unit once, at least for its minimum life', () => {
    const levels = (...pairs: [number, number][]) => pairs.map(([at, units]) => ({ at, units }));
    const paidFor = (curve: ReturnType<typeof levels>, end: number, leastMs: number) =>
      areaOf(stretchLevels(curve, leastMs), end);
    expect(paidFor(levels([0, 2], [10, 0]), 100, 0)).toBe(20);
    expect(paidFor(levels([0, 2], [10, 0]), 100, 30)).toBe(60);
    expect(paidFor(levels([0, 1], [10, 0], [20, 1], [25, 0]), 100, 30)).toBe(30);
    expect(paidFor(levels([0, 1], [10, 0], [20, 1], [40, 0]), 100, 30)).toBe(40);
    expect(paidFor(levels([0, 1], [10, 0], [50, 1], [55, 0]), 60, 30)).toBe(40);
  });
});

describe('external demand data', () => {
  const read = async (text: string, curve: Parameters<typeof readTrace>[1]) => {
    const lines = [];
    for await (const { at, work } of readTrace(file('curve.csv', text), curve)) lines.push({ at, ...work });
    return lines;
  };

  it('becomes replicas, by the demand that one of them serves', async () => {
    const size = { cpu: '1', memory: '2Gi' };
    expect(await read('seconds,demand\n0,10\n60,10.5\n120,0.3\n', { per: 0.1, size: size })).toEqual([
      { at: 0, name: 'demand', replicas: 100, size },
      { at: 60_000, name: 'demand', replicas: 105, size },
      { at: 120_000, name: 'demand', replicas: 3, size },
    ]);
    await expect(read('seconds,demand\n0,1\n', {})).rejects.toThrow('a curve does not say what a replica asks for');
  });

  it('keeps the last unchanged stretch of a curve, and drops earlier unchanged rows', async () => {
    const curve = 'seconds,demand\n0,2\n3600,5\n5400,5\n7200,5\n14400,5\n';
    const size = { cpu: '1500m', memory: '1Gi' };
    const lines = () => readTrace(file('curve.csv', curve), { size });
    const found = [];
    for await (const { at, event, work } of lines()) found.push([at, event, work?.replicas]);
    expect(found).toEqual([
      [0, 'work', 2],
      [HOUR, 'work', 5],
      [4 * HOUR, 'time', undefined],
    ]);
    const { scenario } = await play(PEAK);
    const survey = await surveyTrace(lines(), scenario);
    const report = await rehearse(scenario, lines(), survey, { epoch: 0 });
    expect([survey.last, report.end]).toEqual([4 * HOUR, 4 * HOUR]);
    const bound = await boundOf(scenario, scenario.policy!, lines(), report);
    // Three replicas of a machine each at 0.1 USD for the three hours of the curve.
    expect(bound).toMatchObject({ least: 900_000n });
    await expect(read('seconds,demand\n60,2\n30,2\n', { size })).rejects.toThrow('time goes backwards');
  });

  it('keeps the last moment of arrivals of which none is run', async () => {
    const rows = 'arrival_seconds,cpu,memory_mib,duration_seconds,count\n0,1,768,900,2\n600,1,768,900,1\n';
    expect(await read(rows, { per: 2 })).toMatchObject([{ at: 0, jobs: 1 }, { at: 600_000 }]);
    await expect(read(rows, { per: 9 })).rejects.toThrow('the trace has no line');
  });

  it('becomes jobs, one of so many, without a loss in between', async () => {
    const rows =
      'arrival_seconds,cpu,memory_mib,duration_seconds,count\n0,1,768,900,3\n0,2,1024,300,2\n300,1,768,900,5\n';
    expect(await read(rows, { per: 5 })).toEqual([
      { at: 0, name: 'demand', jobs: 1, lifeMs: 300_000, size: { cpu: '2', memory: '1024Mi' } },
      { at: 300_000, name: 'demand', jobs: 1, lifeMs: 900_000, size: { cpu: '1', memory: '768Mi' } },
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { otherWaits } from '../../../operator/rehearsal/baselines.ts';
import { playWork, policy, STANDING } from './policy-fixtures.ts';

const [PUBLIC] = policy().spec.candidates as [{ name: string; template: { spec: object } }];
const having = (waits: object, spec: object = {}) =>
  policy({
    candidates: [{ ...PUBLIC, ...waits, template: { spec: { ...PUBLIC.template.spec, ...spec } } }],
  });
/** The standing nodes are full with two replicas; one more comes at 1:00 and goes at 3:00. */
const PEAK = '20m,web,2,,1500m,1Gi,,\n1h,web,3,,,,,\n3h,web,2,,,,,\n6h,web,2,,,,,';

describe('a waiting cluster in a rehearsal', () => {
  it('is created at once when warm, opened for work without a wait, replaced by another, and billed', async () => {
    const { report, told } = await playWork(PEAK, [STANDING, having({ warmClusters: 1 })]);
    expect(told('bought', 'opened', 'given-back')).toEqual([
      '00:00:00 bought: it waits warm, as candidate public asks for 1 of',
      expect.stringMatching(
        /^01:00:30 opened: 1 replica .* of web .* have no place; .*, which waited warm, takes 1 of them/,
      ),
      expect.stringMatching(/^01:00:[45]0 bought: it waits warm/),
      expect.stringMatching(/^03:10:00 given-back/),
    ]);
    expect(report.work!.waited.max).toBe(30_000);
    expect(report.work!.waitedBeyondStartup.max).toBe(30_000);
    const { warm, asleep } = report.work!.bought.paidFor;
    expect(asleep).toBe(0n);
    // From the order, a control plane (0.5); a machine (0.1) five minutes later. The first for an hour, the second for the five that are left.
    const hours = 1 + 30 / 3600;
    const second = 5 - (Number(told('bought')[1]!.slice(6, 8)) - 30) / 3600 - 30 / 3600;
    const due = 0.6 * (hours + second) - (0.1 * 10) / 60;
    expect(Number(warm) / 1e6).toBeCloseTo(due, 3);
    expect(report.work!.bought.costs[0]!.amount).toBeGreaterThan(warm);
  });

  it("costs its control plane when asleep, wakes in its nodes' startup time, and sleeps again without work", async () => {
    const { report, told } = await playWork(PEAK, [STANDING, having({ sleepingClusters: 1 })]);
    expect(told('bought', 'asleep', 'woken', 'put-to-sleep', 'given-back')).toEqual([
      '00:00:00 bought: it waits asleep, as candidate public asks for 1 of',
      '00:07:00 asleep: it sleeps; its control plane stays, and is paid for',
      expect.stringMatching(/^01:00:30 woken: .*, which sleeps, takes 1 of them/),
      expect.stringMatching(/^03:10:00 put-to-sleep: it has had no work since/),
      expect.stringMatching(/^03:10:00 asleep/),
    ]);
    // Half a minute to be sure, two for its node; the control plane serves already.
    expect(report.work!.waited.max).toBe(150_000);
    const { warm, asleep } = report.work!.bought.paidFor;
    expect(warm).toBe(0n);
    const awake = 2 + 9.5 / 60;
    expect(Number(asleep) / 1e6).toBeCloseTo(0.5 * (6 - awake) + (0.1 * 120) / 3600, 2);
  });

  it('costs nothing when asleep on a seed, and starts its control plane before its nodes', async () => {
    const { report, told } = await playWork(PEAK, [STANDING, having({ sleepingClusters: 1 }, { mode: 'Hosted' })]);
    expect(told('asleep')[0]).toBe('00:07:00 asleep: it sleeps');
    expect(told('serves').filter((line) => line > '01')).toEqual(['01:05:30 serves: the control plane serves']);
    expect(report.work!.waited.max).toBe(450_000);
    // The machine until it slept, and after it was woken: nothing else.
    const machine = 0.1 * (120 / 3600 + (3 + 10 / 60) - (1 + 5.5 / 60));
    expect(Number(report.work!.bought.costs[0]!.amount) / 1e6).toBeCloseTo(machine, 2);
  });

  it("saves a new cluster's startup time: cost and waits of each way are comparable", async () => {
    const played = await playWork(PEAK, [STANDING, having({ warmClusters: 1 })]);
    const others = otherWaits(played.scenario);
    expect(others.map(({ what }) => what)).toEqual(['if all wait asleep', 'if none waits']);
    const figures = await Promise.all(others.map(async ({ scenario }) => (await played.again(scenario)).work!));
    const all = [played.report.work!, ...figures];
    expect(all.map(({ waited }) => waited.max)).toEqual([30_000, 150_000, 450_000]);
    const costs = all.map(({ bought }) => bought.costs[0]!.amount);
    expect(costs[0]! > costs[1]! && costs[1]! > costs[2]!).toBe(true);
    expect(otherWaits((await playWork(PEAK, [STANDING, policy()])).scenario)).toEqual([]);
  });
});

describe('a sleeping cluster that the policy did not buy, in a rehearsal,', () => {
  const night = {
    ...STANDING,
    metadata: { name: 'night', namespace: 'shop', labels: { fleet: 'office' } },
    spec: { ...STANDING.spec, hibernation: { enabled: true } },
  };
  const waking = policy({ wake: [{ name: 'office', clusterSelector: { matchLabels: { fleet: 'office' } } }] });

  it('is woken where that costs less than a new one, and sleeps again; its machines are billed meanwhile', async () => {
    const played = await playWork(PEAK, [STANDING, night, waking]);
    expect(played.scenario.ignored).toEqual([]);
    expect(played.told('bought', 'woken', 'put-to-sleep')).toEqual([
      expect.stringMatching(/^01:00:30 woken: 1 replica .* have no place; night, which sleeps, takes 1 of them/),
      expect.stringMatching(/^03:10:00 put-to-sleep: it has had no work since/),
    ]);
    // Its control plane is started, then its nodes.
    expect(played.report.work!.waited.max).toBe(450_000);
    const { paidFor, costs } = played.report.work!.bought;
    const machines = 2 * 0.1 * (3 + 10 / 60 - (1 + 5.5 / 60));
    expect(Number(paidFor.woken) / 1e6).toBeCloseTo(machines, 3);
    expect(costs).toEqual([{ currency: 'USD', amount: paidFor.woken }]);
    const [none, ...others] = otherWaits(played.scenario);
    expect(others).toEqual([]);
    expect((await played.again(none!.scenario)).work!.bought).toMatchObject({ clusters: 1 });
  });

  it('is not woken in another namespace, nor another of the same name instead', async () => {
    const other = { ...night, metadata: { ...night.metadata, namespace: 'bank' } };
    expect((await playWork(PEAK, [STANDING, other, waking])).told('woken')).toEqual([]);
    const both = await playWork(PEAK, [STANDING, other, night, waking]);
    expect(both.told('woken')).toHaveLength(1);
    expect(both.report.work!.waited.max).toBe(450_000);
  });
});

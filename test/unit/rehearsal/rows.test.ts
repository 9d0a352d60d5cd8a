import { expect } from 'vitest';
import { boundOf } from '../../../operator/rehearsal/bound/bound.ts';
import type { Entry } from '../../../operator/rehearsal/state.ts';
import { holds } from '../../kit/property.ts';
import { playWork, policy, STANDING } from './policy-fixtures.ts';

/** All times are whole steps. */
const STEP_MINUTES = 5;
const STEPS_AN_HOUR = 60 / STEP_MINUTES;
const LIFE = 3;
const IDLE = 2;
/** Millionths an hour: of a machine, and of a control plane. */
const MACHINE = 100_000;
const FEE = 500_000;
/** Nodes of a cluster at most; and of the standing cluster. */
const MOST = 4;
const STANDS = 2;

const POLICY = policy({
  scaleIn: { idleFor: `${IDLE * STEP_MINUTES}m`, minimumLife: `${LIFE * STEP_MINUTES}m` },
});

/**
 * What it costs to have as many there as are needed at each step, where each stays for `life` steps at least, and nobody keeps one longer that is
 * not needed: counted one by one.
 * @param cost of a step with so many
 */
function livedStep(needed: readonly number[], life: number, cost: (active: number, step: number) => number): number {
  /** Of each that is there: how many steps it has to stay. */
  let left: number[] = [];
  return needed.reduce((sum, count, step) => {
    const bound = left.filter((steps) => steps > 0);
    const free = left.filter((steps) => steps === 0).slice(0, Math.max(0, count - bound.length));
    const more = Array.from({ length: Math.max(0, count - bound.length - free.length) }, () => life);
    const there = [...bound, ...free, ...more];
    left = there.map((steps) => Math.max(0, steps - 1));
    return sum + cost(there.length, step);
  }, 0);
}

/** The most of the steps before. */
const kept = (needed: readonly number[], steps: number): number[] =>
  needed.map((_, index) => Math.max(...needed.slice(Math.max(0, index - steps), index + 1)));

holds(
  'each row beside a policy is what its words say, counted step by step and machine by machine',
  async (choose) => {
    const [cpu, fits] = choose.pick([
      ['1500m', 1],
      ['900m', 2],
    ] as const);
    const replicas = [...choose.many(choose.integer(6, 12), () => choose.integer(0, 9)), ...Array(7).fill(0)];
    const rows = replicas.map((count, step) => `${step * STEP_MINUTES}m,web,${count},,${cpu},1Gi,,`);
    rows.push(`${replicas.length * STEP_MINUTES}m,web,0,,${cpu},1Gi,,`);
    const { scenario, report, trace } = await playWork(rows.join('\n'), [STANDING, POLICY]);
    const bound = (await boundOf(scenario, scenario.policy!, trace(), report))!;

    const units = replicas.map((count) => Math.max(0, count - STANDS * fits));
    const machines = units.map((count) => Math.ceil(count / fits));
    const clusters = machines.map((count) => Math.ceil(count / MOST));
    const work = units.map((count) => (count * MACHINE) / fits);
    const sum = (costs: readonly number[]) => costs.reduce((all, cost) => all + cost, 0);
    const atLeast = (step: number, active: number, whole: readonly number[] = []) =>
      Math.max(work[step]!, active * MACHINE, (whole[step] ?? 0) * MACHINE);
    const [machinesKept, clustersKept] = [kept(machines, IDLE), kept(clusters, IDLE)];
    const own = {
      least: sum(work),
      withMinimumLife: livedStep(units, LIFE, (active) => (active * MACHINE) / fits),
      controlPlanes: livedStep(clusters, LIFE, (active) => active * FEE),
      byMinimumLife: livedStep(clusters, LIFE, (active, step) => atLeast(step, active)),
      byWholeMachines: livedStep(clusters, LIFE, (active, step) => atLeast(step, active, machines)),
      byControlPlanes: livedStep(clusters, LIFE, (active, step) => atLeast(step, active, machines) + active * FEE),
      byIdleFor: livedStep(clustersKept, LIFE, (active, step) => atLeast(step, active, machinesKept) + active * FEE),
      standing: replicas.length * (Math.max(...machines) * MACHINE + Math.max(...clusters) * FEE),
    };
    const { least, forcedByMinimumLife, controlPlanes, forced, peakNodes, standing } = bound;
    const told = { least, withMinimumLife: least + forcedByMinimumLife, controlPlanes, ...forced, standing };
    for (const [row, cost] of Object.entries(told)) {
      const its = own[row as keyof typeof own] / STEPS_AN_HOUR;
      // Machines of a cluster that is needed count as what work is there, if that is less than one.
      if (row === 'byMinimumLife') expect(Number(cost)).toBeLessThanOrEqual(its + 2);
      else expect({ row, cost: Math.abs(Number(cost) - its) < 2 ? its : Number(cost) }).toEqual({ row, cost: its });
    }
    expect(peakNodes).toBe(Math.max(...machines));
    expect(Number(forced.byMinimumLife)).toBeGreaterThanOrEqual(Number(least) - 2);
  },
  { runs: 12 },
);

const HOUR_MS = 3_600_000;
/** Millicores of a node, and of a replica: each node has room for one. */
const [NODE_CPU, REPLICA_CPU] = [1900, 1500];

/** Each replica by itself, on nodes as the timeline has them: those that stand are filled first. */
function oneByOne(timeline: readonly Entry[], steps: readonly { at: number; replicas: number }[], end: number) {
  const events = [
    ...timeline.map((entry) => ({ at: entry.at, entry, replicas: undefined })),
    ...steps.map(({ at, replicas }) => ({ at, entry: undefined, replicas })),
    { at: end, entry: undefined, replicas: undefined },
  ].sort((a, b) => a.at - b.at);
  const nodes = new Map<string, { machines: number; ready: number }>();
  const isBought = (name: string) => name !== 'shop/private';
  const bought = (of: 'machines' | 'ready') =>
    [...nodes].reduce((sum, [name, its]) => sum + (isBought(name) ? its[of] : 0), 0);
  const made = new Map<string, number>();
  let [waiting, running, last, fees] = [[] as number[], 0, 0, 0];
  const ran: number[] = [];
  const sums = { machineMs: 0, usedMs: 0, peakNodes: 0 };
  for (const { at, entry, replicas } of events) {
    sums.machineMs += bought('machines') * (at - last);
    sums.usedMs += Math.max(0, running - STANDS) * (at - last);
    last = at;
    if (entry) {
      nodes.set(entry.cluster, { machines: entry.machines, ready: entry.ready });
      if (entry.kind === 'created' && isBought(entry.cluster)) made.set(entry.cluster, at);
      if (entry.kind === 'deleted') fees += at - made.get(entry.cluster)!;
    }
    for (let left = running + waiting.length; replicas !== undefined && left < replicas; left++) waiting.push(at);
    for (let left = running + waiting.length; replicas !== undefined && left > replicas; left--)
      if (waiting.length > 0) waiting.pop();
      else running--;
    const slots = STANDS + bought('ready');
    for (; running < slots && waiting.length > 0; running++) ran.push(at - waiting.shift()!);
    sums.peakNodes = Math.max(sums.peakNodes, bought('machines'));
  }
  const gone = new Set(timeline.filter(({ kind }) => kind === 'deleted').map(({ cluster }) => cluster));
  for (const [name, at] of made) if (!gone.has(name)) fees += end - at;
  return { ...sums, clusters: made.size, feeMs: fees, ran };
}

holds(
  'each column of a policy is what its timeline and its replicas come to, one by one',
  async (choose) => {
    // What stands is there by then.
    let minute = 10;
    const steps = choose.many(10, () => {
      minute += choose.integer(1, 20);
      // At no moment in which the operator looks.
      return { at: minute * 60_000 + 7_000, replicas: choose.integer(0, 8) };
    });
    const rows = steps.map(({ at, replicas }) => `${at / 1000}s,web,${replicas},,1500m,1Gi,,`);
    const { report, timeline } = await playWork([...rows, `${(minute + 60) * 60}s,web,0,,,,,`].join('\n'), [
      STANDING,
      POLICY,
    ]);
    const own = oneByOne(timeline, [...steps, { at: (minute + 60) * 60_000, replicas: 0 }], report.end);
    const { bought, paidCpu, usedCpu, waits, waited } = report.work!;
    expect([bought.clusters, bought.peakNodes]).toEqual([own.clusters, own.peakNodes]);
    const near = (told: number, its: number) => expect(Math.abs(told - its)).toBeLessThanOrEqual(1e-6 * its + 3);
    near(Number(bought.fees), (own.feeMs * FEE) / HOUR_MS);
    near(
      bought.costs.reduce((sum, { amount }) => sum + Number(amount), 0),
      (own.feeMs * FEE + own.machineMs * MACHINE) / HOUR_MS,
    );
    near(paidCpu, own.machineMs * NODE_CPU);
    near(usedCpu, own.usedMs * REPLICA_CPU);
    const late = own.ran.filter((ms) => ms > 0);
    for (const [told, its] of [
      [waits, own.ran],
      [waited, late],
    ] as const) {
      expect(told.count).toBe(its.length);
      if (its.length === 0) continue;
      const sorted = its.toSorted((a, b) => a - b);
      expect(told.max).toBe(sorted.at(-1));
      // Three digits of it are kept.
      for (const [share, quantile] of [
        [0.5, told.p50!],
        [0.95, told.p95!],
        [0.99, told.p99!],
      ] as const) {
        const exact = sorted[Math.ceil(share * sorted.length) - 1]!;
        expect(Math.abs(quantile - exact)).toBeLessThanOrEqual(0.005 * exact);
      }
    }
  },
  { runs: 12 },
);

import { describe, expect } from 'vitest';
import { PROVISION_MS } from '../../../operator/burst/nodes/grow.ts';
import type { NodesPlan, NodesView } from '../../../operator/burst/nodes/plan.ts';
import { NodeLife } from '../../kit/node-life.ts';
import { holds } from '../../kit/property.ts';

const CPUS = [500, 1000, 2000, 3000];

const pass = (life: NodeLife): void => life.minute((view, plan) => judge(life, view, plan));

/** What must hold of every decision, by rules that are simpler than those by which it was made. */
function judge(life: NodeLife, view: NodesView, { growth, shrinkage }: NodesPlan): void {
  const waiting = [...life.pods.values()].filter(({ on }) => on === undefined);
  for (const { pool: name, count } of growth.sizes) {
    const pool = life.own.find((one) => one.name === name)!;
    expect(count).toBeLessThanOrEqual(pool.maximum);
    expect(count).toBeGreaterThanOrEqual(pool.minimum);
    if (count > pool.count) {
      expect(pool.isSoldOut).toBe(false);
      expect(
        fitsForSure(
          life,
          waiting.map(({ cpu }) => cpu),
        ),
      ).toBe(false);
    }
  }
  judgeShrinkage(life, view, { growth, shrinkage });
}

function judgeShrinkage(life: NodeLife, { nodes }: NodesView, { growth, shrinkage }: NodesPlan): void {
  const kept = [...growth.keep, ...shrinkage.keep.map((one) => one.node)];
  const begun = shrinkage.begin.map((one) => life.machines.get(one.node)!);
  if (begun.length === 0) return;
  const emptying = nodes.filter((one) => one.isEmptying && !kept.includes(one.name));
  const going = [...emptying.map(({ name }) => life.machines.get(name)!), ...begun];
  const stay = [...life.machines.values()].filter(
    (one) => one.comesAt <= life.now && life.isReady(one) && !going.includes(one),
  );
  const free = stay.map((one) => life.freeOn(one));
  const pods = going.flatMap((one) => life.podsOn(one.node.metadata.name));
  for (const { cpu } of pods) expect(Math.max(0, ...free)).toBeGreaterThanOrEqual(cpu);
  const needed = pods.reduce((sum, { cpu }) => sum + cpu, 0);
  expect(free.reduce((sum, cpu) => sum + cpu, 0)).toBeGreaterThanOrEqual(needed);
  for (const machine of begun) {
    const { name } = machine.node.metadata;
    expect(life.podsOn(name).filter(({ isProtected }) => isProtected)).toEqual([]);
    expect(life.isReady(machine)).toBe(true);
    expect([...growth.placed.values()]).not.toContain(name);
  }
  const withPods = going.filter((one) => life.podsOn(one.node.metadata.name).length > 0);
  if (begun.some((one) => withPods.includes(one))) expect(withPods).toHaveLength(1);
  const left = new Map(life.own.map((pool) => [pool, pool.count - going.filter((one) => one.pool === pool).length]));
  for (const { pool } of begun) {
    expect(left.get(pool)).toBeGreaterThanOrEqual(pool.minimum);
    const lost = life.there(pool).filter((one) => life.isLost(one) && !going.includes(one)).length;
    if (pool.budget !== undefined) expect(pool.count - left.get(pool)! + lost).toBeLessThanOrEqual(pool.budget);
  }
  expect([...left.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(life.floor);
}

/** Whether these pods have room on nodes that are there or on their way, in whatever order they are put there. */
function fitsForSure(life: NodeLife, cpus: readonly number[]): boolean {
  const supply = life.own.flatMap((pool) => {
    const isLate = life.now - pool.decidedAt > PROVISION_MS || pool.isSoldOut;
    const there = life.there(pool);
    const coming = isLate ? 0 : Math.max(0, pool.count - there.length);
    const open = there.filter((machine) => !life.isLost(machine) && !machine.isEmptying);
    return [...open.map((machine) => life.freeOn(machine)), ...Array.from({ length: coming }, () => pool.cpu)];
  });
  const total = cpus.reduce((sum, cpu) => sum + cpu, 0);
  if (supply.some((free) => free >= total)) return true;
  const alike = cpus.every((cpu) => cpu === cpus[0]);
  return alike && supply.reduce((sum, free) => sum + Math.floor(free / cpus[0]!), 0) >= cpus.length;
}

describe('any sequence of events of pods, pools and machines', () => {
  holds(
    'decisions keep to all limits, take no node that is needed or protected, buy nothing that is there, and come to an end',
    (choose) => {
      const life = new NodeLife(choose);
      for (let turn = 0; turn < 15; turn++) {
        const pool = choose.pick(life.pools);
        const what = choose.random();
        if (what < 0.45) life.addPods(choose.integer(1, 8), choose.pick(CPUS));
        else if (what < 0.75) life.removePods(choose.integer(1, 20));
        else if (what < 0.9) pool.isSoldOut = !pool.isSoldOut;
        else if (pool.isGone) pool.isGone = false;
        else if (life.own.length > 1) life.removePool(pool);
        for (let minutes = choose.integer(1, 12); minutes > 0; minutes--) pass(life);
      }
      // Nothing comes or goes any more but machines, and these as they were drawn.
      life.isFlaky = choose.chance(0.5);
      // Of two such pools each is asked in turn for ever, once in 15 minutes: nobody says which of them will have machines again.
      if (choose.chance(0.5)) choose.pick(life.pools).isDry = true;
      life.addPods(choose.integer(0, 6), choose.pick(CPUS));
      for (let minutes = 0; minutes < 300; minutes++) pass(life);
      const { length } = life.decided;
      for (let minutes = 0; minutes < 60; minutes++) pass(life);
      expect(life.decided.slice(length)).toEqual([]);
      for (const { isEmptying } of life.machines.values()) expect(isEmptying).toBe(false);
    },
    { runs: 12 },
  );
});

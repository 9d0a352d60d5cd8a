import { describe, expect } from 'vitest';
import { type paceOf, planRoll } from '../../../operator/controllers/shoot/machines/roll.ts';
import { planScaleIn } from '../../../operator/controllers/shoot/machines/scale-in.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { type Machine, sizeWhileRolling } from '../../../providers/contract.ts';
import { buildNode } from '../../kit/builders/objects.ts';
import { type Draw, holds } from '../../kit/property.ts';

type Pace = ReturnType<typeof paceOf>;

interface Instance {
  name: string;
  form: number;
  ready: boolean;
}

/** A pool of a cloud whose operator remembers nothing from one step to the next. */
class Rolled {
  readonly pace: Pace;
  count: number;
  form = 0;
  machines: Instance[] = [];
  #serial = 0;

  constructor(choose: Draw) {
    const surge = choose.integer(0, 3);
    this.pace = { surge, unavailable: choose.integer(surge === 0 ? 1 : 0, 3) };
    this.count = choose.integer(1, 7);
    this.grow(this.count, true);
  }

  grow(to: number, ready: boolean): void {
    while (this.machines.length < to) this.machines.push({ name: `m-${this.#serial++}`, form: this.form, ready });
  }

  get outdated(): number {
    return this.machines.filter(({ form }) => form !== this.form).length;
  }

  get serving(): number {
    return this.machines.filter(({ ready }) => ready).length;
  }

  get fewest(): number {
    return Math.max(0, this.count - this.pace.unavailable);
  }

  get asked(): number {
    return sizeWhileRolling({ count: this.count, maxSurge: this.pace.surge }, this.outdated);
  }

  #seen(): [Machine[], Map<string, Node>] {
    const machines = this.machines.map(
      ({ name, form }): Machine => ({
        name,
        pool: 'p',
        nodeName: name,
        phase: 'Running',
        ready: true,
        createdAt: '2026-01-01T00:00:00Z',
        outdated: form !== this.form,
      }),
    );
    const nodeOf = ({ name, ready }: Instance) =>
      buildNode({
        metadata: { name },
        status: { conditions: [{ type: 'Ready', status: String(ready ? 'True' : 'False') }] },
      });
    return [machines, new Map(this.machines.map((one) => [one.name, nodeOf(one)]))];
  }

  take(victims: readonly Machine[]): void {
    const before = this.serving;
    this.machines = this.machines.filter(({ name }) => !victims.some((victim) => victim.name === name));
    // What was missing before is not our doing.
    expect(this.serving).toBeGreaterThanOrEqual(Math.min(before, this.fewest));
  }

  /** What one look at the cluster comes to. */
  step(): void {
    if (this.machines.length < this.asked) this.grow(this.asked, false);
    const [machines, nodes] = this.#seen();
    const [tooMany] = planScaleIn([{ name: 'p', count: this.asked }], machines, nodes, new Map());
    if (tooMany) {
      this.take(tooMany.victims);
      return;
    }
    expect(this.machines.length).toBeLessThanOrEqual(this.count + this.pace.surge);
    const [plan] = planRoll([{ name: 'p', count: this.count, pace: this.pace }], machines, nodes, new Map());
    expect(plan === undefined).toBe(this.outdated === 0);
    for (const victim of plan?.victims ?? []) expect(victim.outdated).toBe(true);
    if (plan) this.take(plan.victims);
  }
}

describe('a roll', () => {
  holds('spares as many machines as it must, never has more than it may, and ends', (choose) => {
    const pool = new Rolled(choose);
    for (const _ of Array(choose.integer(1, 25))) {
      if (choose.chance(0.15)) pool.form = choose.integer(0, 2);
      if (choose.chance(0.1)) pool.count = choose.integer(0, 7);
      for (const one of choose.some(pool.machines, 0.3)) one.ready = choose.chance(0.85);
      pool.step();
    }
    // From here on all goes well: whatever state that left is put right, in a few steps for each machine.
    for (let left = 60; left > 0; left--) {
      for (const one of pool.machines) one.ready = true;
      pool.step();
    }
    expect({ outdated: pool.outdated, there: pool.machines.length }).toEqual({ outdated: 0, there: pool.count });
  });

  holds('that gets no new machines keeps what it must keep', (choose) => {
    const pool = new Rolled(choose);
    pool.form = 1;
    for (let left = 20; left > 0; left--) {
      pool.machines = pool.machines.filter(({ form }) => form === 0);
      pool.step();
    }
    expect(pool.serving).toBeGreaterThanOrEqual(pool.fewest);
  });
});

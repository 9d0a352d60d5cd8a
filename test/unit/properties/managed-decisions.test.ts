import { describe, expect } from 'vitest';
import {
  attempt,
  decide,
  type Failure,
  type Situation,
  type StepName,
} from '../../../operator/controllers/managed/decide.ts';
import { type Draw, holds } from '../../kit/property.ts';

type ManagedStep = ReturnType<typeof decide>;

const START = Date.parse('2026-11-21T00:00:00Z');
const HOUR = 3_600_000;
/** Of one moment, and of one life until it comes to rest: far more than any way takes. */
const MOST_STEPS = 20;

/** A cloud with one cluster in it, and an operator that may forget everything but its receipt. */
class Simulation {
  now = START;
  wish: string | undefined = 'w0';
  deleting = false;
  credentials: string | undefined = 'c0';
  /** Credentials that the cloud takes. */
  readonly good = new Set(['c0']);
  /** What is in the cloud; absent: nothing. */
  made: { wish: string; tampered: boolean } | undefined;
  receipt: { applied?: string; reachable?: boolean; lookedAt?: Date; found?: boolean } | undefined;
  accepted: string | undefined;
  forced = false;
  mend = false;
  open = false;
  accessDueAt: Date | undefined;
  failures = new Map<StepName, Failure>();
  readonly taken: StepName[] = [];

  situation(): Situation {
    return {
      deleting: this.deleting,
      wish: this.wish,
      exists: this.receipt !== undefined,
      applied: this.receipt?.applied,
      reachable: this.receipt?.reachable === true,
      credentials: this.credentials,
      accepted: this.accepted,
      forced: this.forced,
      drift: {
        lookedAt: this.receipt?.lookedAt,
        everyMs: 6 * HOUR,
        found: this.receipt?.found === true,
        mend: this.mend,
      },
      access: { open: this.open, dueAt: this.accessDueAt },
      failures: this.failures,
    };
  }

  /** The operator is killed, and another one starts with what is written down. */
  restart(): void {
    this.accepted = undefined;
    this.forced = false;
    this.open = false;
    this.accessDueAt = undefined;
    this.failures = new Map();
  }

  /** Carries a step out, with what must never be. `fails`: it comes to nothing, or half-way only. */
  take(step: StepName, fails: { hopeless: boolean; halfway: boolean } | undefined): void {
    const situation = this.situation();
    const failure = this.failures.get(step);
    if (failure?.of === attempt(step, situation)) {
      expect(failure.retryAt, `${step} was hopeless, and is tried again`).toBeDefined();
      expect(+failure.retryAt!).toBeLessThanOrEqual(this.now);
    }
    if (step !== 'check' && step !== 'access') expect(this.accepted, `${step} with credentials`).toBe(this.credentials);
    if (step === 'apply' || step === 'look') expect(this.deleting).toBe(false);
    if (step === 'apply') expect(this.wish).toBeDefined();
    if (step === 'look') expect(this.receipt?.applied).toBe(this.wish);
    if (step === 'destroy') expect(this.deleting).toBe(true);
    this.taken.push(step);
    if (step === 'apply') this.receipt ??= {};
    const refused = this.credentials === undefined || !this.good.has(this.credentials);
    if (fails || (refused && step !== 'access')) {
      if (fails?.halfway && step === 'apply') this.made ??= { wish: 'half', tampered: false };
      const retryAt = fails && !fails.hopeless ? new Date(this.now + 60_000) : undefined;
      this.failures.set(step, { of: attempt(step, situation), count: (failure?.count ?? 0) + 1, retryAt });
      return;
    }
    this.failures.delete(step);
    this.carryOut(step);
  }

  private carryOut(step: StepName): void {
    if (step === 'check') this.accepted = this.credentials;
    if (step === 'access') {
      this.open = true;
      this.accessDueAt = new Date(this.now + 5 * 60_000);
    }
    if (step === 'look')
      this.receipt = { ...this.receipt, lookedAt: new Date(this.now), found: this.made?.tampered === true };
    if (step === 'destroy') {
      this.made = undefined;
      this.receipt = undefined;
      this.open = false;
    }
    if (step !== 'apply') return;
    const sees = (this.forced || this.mend) && this.receipt?.applied !== undefined;
    const tampered = this.made?.tampered === true && !sees;
    this.made = { wish: this.wish!, tampered };
    const looked = sees || !this.receipt?.lookedAt ? { found: false, lookedAt: new Date(this.now) } : {};
    this.receipt = { ...this.receipt, applied: this.wish!, reachable: true, ...looked };
    this.forced = false;
  }
}

/** Something that people, the cloud or chance do. */
function disturb(simulation: Simulation, choose: Draw): void {
  const happenings: (() => void)[] = [
    () => Object.assign(simulation, { wish: choose.pick(['w0', 'w1', 'w2', undefined]) }),
    () => Object.assign(simulation, { credentials: choose.pick(['c0', 'c1', 'c2', undefined]) }),
    () => simulation.good.add(choose.pick(['c0', 'c1', 'c2'])),
    () => simulation.good.delete(choose.pick(['c0', 'c1', 'c2'])),
    () => Object.assign(simulation.made ?? {}, { tampered: true }),
    () => Object.assign(simulation, { forced: true }),
    () => Object.assign(simulation, { mend: choose.chance(0.5) }),
    () => simulation.restart(),
    () => Object.assign(simulation, { open: false }),
    () => Object.assign(simulation, { now: simulation.now + choose.integer(0, 10 * HOUR) }),
    () => Object.assign(simulation, { deleting: simulation.deleting || choose.chance(0.2) }),
  ];
  choose.pick(happenings)();
}

/** Takes steps at this moment until there is none to take. */
function run(simulation: Simulation, fails: () => Parameters<Simulation['take']>[1] = () => undefined): ManagedStep {
  for (let turn = 0; turn < MOST_STEPS; turn++) {
    const step = decide(simulation.situation(), new Date(simulation.now));
    if (step.do === 'wait') {
      if (step.until) expect(+step.until, 'a wait that is over already').toBeGreaterThan(simulation.now);
      return step;
    }
    if (step.do === 'release') {
      expect(simulation.deleting && simulation.made === undefined, 'released with something left').toBe(true);
      return step;
    }
    simulation.take(step.do, fails());
  }
  throw new Error(`no rest: ${simulation.taken.join(' ')}`);
}

describe('steps for a managed cluster', () => {
  holds(
    'keep their rules in any order of events, and come to rest as is wished once nothing disturbs them',
    (choose) => {
      const simulation = new Simulation();
      for (let event = 0; event < 25; event++) {
        disturb(simulation, choose);
        run(simulation, () =>
          choose.chance(0.3) ? { hopeless: choose.chance(0.4), halfway: choose.chance(0.5) } : undefined,
        );
      }
      // People have put everything right, with credentials that nobody tried yet.
      simulation.wish = 'w9';
      simulation.credentials = 'c9';
      simulation.good.add('c9');
      const release = run(simulation);
      if (simulation.deleting) {
        expect(release).toEqual({ do: 'release' });
        return;
      }
      expect(simulation.made?.wish).toBe('w9');
      expect(simulation.receipt?.applied).toBe('w9');
      expect(simulation.open).toBe(true);
      // What others changed is found at the next look, and mended only where that is asked for.
      const { mend } = simulation;
      for (let hours = 0; hours < 8; hours++) {
        simulation.now += HOUR;
        run(simulation);
      }
      if (mend) expect(simulation.made?.tampered).toBe(false);
      else if (simulation.made?.tampered) expect(simulation.receipt?.found).toBe(true);
      const before = simulation.taken.length;
      for (let hours = 0; hours < 24; hours++) {
        simulation.now += HOUR;
        run(simulation);
      }
      const since = simulation.taken.slice(before).filter((step) => step !== 'access');
      expect(since.filter((step) => step !== 'look')).toEqual([]);
      expect(since.length).toBeLessThanOrEqual(4);
    },
    { runs: 500 },
  );
});

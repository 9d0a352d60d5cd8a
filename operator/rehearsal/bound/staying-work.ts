import { EventQueue } from '../event-queue.ts';
import type { TraceLine } from '../trace/trace-line.ts';
import { type CurveAmounts, curveAmountsOf } from './demand-curve.ts';

/** Amounts that run beyond the standing clusters from a time on. */
type Beyond = CurveAmounts & { readonly at: number };

/**
 * Jobs that stay where they began: on standing capacity while it has room, otherwise beyond it; divisible in both. A
 * job that began beyond stays there when room becomes free.
 */
export class StayingWork {
  readonly #free: { cpu: number; memory: number; gpu: number };
  readonly #ends = new EventQueue();
  readonly #beyond: Beyond[] = [];
  #now = { cpu: 0, memory: 0, gpu: 0 };
  #isKnown = true;

  /** @param standing allocatable of the standing clusters */
  constructor(standing: CurveAmounts) {
    this.#free = { ...standing };
  }

  add({ at, cluster, work }: TraceLine): void {
    if (!work || cluster !== '') return;
    this.#endUntil(at);
    // Replicas are placed by their hub.
    if (work.jobs === undefined || !work.size) {
      this.#isKnown = false;
      return;
    }
    const each = curveAmountsOf(work.size);
    const times = (of: keyof CurveAmounts) => (each[of] > 0 ? Math.floor(this.#free[of] / each[of]) : work.jobs!);
    const here = Math.max(0, Math.min(work.jobs, times('cpu'), times('memory'), times('gpu')));
    this.#take(each, here, work.jobs - here);
    this.#note(at);
    const { jobs } = work;
    this.#ends.add({ at: at + work.lifeMs!, isLive: () => true, run: () => this.#take(each, -here, here - jobs) });
  }

  /** @returns undefined: the trace contains more than jobs */
  until(end: number): readonly Beyond[] | undefined {
    this.#endUntil(end);
    return this.#isKnown ? this.#beyond : undefined;
  }

  #take({ cpu, memory, gpu }: CurveAmounts, here: number, beyond: number): void {
    this.#free.cpu -= here * cpu;
    this.#free.memory -= here * memory;
    this.#free.gpu -= here * gpu;
    this.#now = {
      cpu: this.#now.cpu + beyond * cpu,
      memory: this.#now.memory + beyond * memory,
      gpu: this.#now.gpu + beyond * gpu,
    };
  }

  #endUntil(at: number): void {
    for (let next = this.#ends.nextAt; next !== undefined && next <= at; next = this.#ends.nextAt) {
      this.#ends.take()!.run();
      this.#note(next);
    }
  }

  #note(at: number): void {
    if (this.#beyond.at(-1)?.at === at) this.#beyond.pop();
    this.#beyond.push({ at, ...this.#now });
  }
}

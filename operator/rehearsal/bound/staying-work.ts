import { EventQueue } from '../event-queue.ts';
import type { TraceLine } from '../trace/trace-line.ts';
import { type Amounts, amountsOf } from './demand-curve.ts';

/** What runs beyond the standing clusters from a moment on. */
type Beyond = Amounts & { readonly at: number };

/**
 * Jobs that stay where they begin: on what stands where there is room, and beyond that else, cut to fit in both. What came beyond while there was no
 * room stays there when there is.
 */
export class StayingWork {
  readonly #free: { cpu: number; memory: number; gpu: number };
  readonly #ends = new EventQueue();
  readonly #beyond: Beyond[] = [];
  #now = { cpu: 0, memory: 0, gpu: 0 };
  #isKnown = true;

  /** @param standing what the standing clusters offer */
  constructor(standing: Amounts) {
    this.#free = { ...standing };
  }

  add({ at, cluster, work }: TraceLine): void {
    if (!work || cluster !== '') return;
    this.#endUntil(at);
    // Replicas go where their hub likes.
    if (work.jobs === undefined || !work.size) {
      this.#isKnown = false;
      return;
    }
    const each = amountsOf(work.size);
    const times = (of: keyof Amounts) => (each[of] > 0 ? Math.floor(this.#free[of] / each[of]) : work.jobs!);
    const here = Math.max(0, Math.min(work.jobs, times('cpu'), times('memory'), times('gpu')));
    this.#take(each, here, work.jobs - here);
    this.#note(at);
    const { jobs } = work;
    this.#ends.add({ at: at + work.lifeMs!, isLive: () => true, run: () => this.#take(each, -here, here - jobs) });
  }

  /** @returns undefined: not all of the trace is jobs */
  until(end: number): readonly Beyond[] | undefined {
    this.#endUntil(end);
    return this.#isKnown ? this.#beyond : undefined;
  }

  #take({ cpu, memory, gpu }: Amounts, here: number, beyond: number): void {
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

import { parseBytes, parseCount, parseCpu } from '../../api/quantity.ts';
import { EventQueue } from '../event-queue.ts';
import type { TraceLine, Work, WorkSize } from '../trace/trace-line.ts';

/** What a hub's work asks for from a moment on, if all of it runs at once. */
export interface Asked extends Amounts {
  readonly at: number;
  readonly count: number;
}

/** The demand of a trace, whatever is made for it. */
export class DemandCurve {
  readonly asked: Asked[] = [];
  /** Sizes of all that was asked for. */
  readonly sizes = new Map<string, WorkSize>();
  readonly #ends = new EventQueue();
  readonly #replicas = new Map<string, { count: number; size: WorkSize }>();
  #now = { count: 0, cpu: 0, memory: 0, gpu: 0 };

  add({ at, cluster, work }: TraceLine): void {
    // What belongs to one cluster is no work of the hub's.
    if (!work || cluster !== '') return;
    this.#endUntil(at);
    const size = work.size ?? this.#replicas.get(work.name)?.size ?? [...this.sizes.values()].at(-1)!;
    this.sizes.set(JSON.stringify(size), size);
    this.#change(work, size, at);
    this.#note(at);
  }

  /** @returns the whole demand until then */
  until(end: number): readonly Asked[] {
    this.#endUntil(end);
    return this.asked;
  }

  #change({ name, replicas, jobs, lifeMs }: Work, size: WorkSize, at: number): void {
    if (jobs !== undefined) {
      this.#more(size, jobs);
      this.#ends.add({ at: at + lifeMs!, isLive: () => true, run: () => this.#more(size, -jobs) });
      return;
    }
    const before = this.#replicas.get(name);
    if (before) this.#more(before.size, -before.count);
    this.#more(size, replicas ?? 0);
    this.#replicas.set(name, { count: replicas ?? 0, size });
  }

  #more(size: WorkSize, count: number): void {
    const { cpu, memory, gpu } = amountsOf(size);
    this.#now = {
      count: this.#now.count + count,
      cpu: this.#now.cpu + count * cpu,
      memory: this.#now.memory + count * memory,
      gpu: this.#now.gpu + count * gpu,
    };
  }

  #endUntil(at: number): void {
    for (let next = this.#ends.nextAt; next !== undefined && next <= at; next = this.#ends.nextAt) {
      this.#ends.take()!.run();
      this.#note(next);
    }
  }

  #note(at: number): void {
    if (this.asked.at(-1)?.at === at) this.asked.pop();
    this.asked.push({ at, ...this.#now });
  }
}

/** Millicores, bytes, and GPUs. */
export interface Amounts {
  readonly cpu: number;
  readonly memory: number;
  readonly gpu: number;
}

const known = new WeakMap<WorkSize, Amounts>();

/** What one of this size asks for. */
export function amountsOf(size: WorkSize): Amounts {
  const amounts = known.get(size) ?? {
    cpu: parseCpu(size.cpu),
    memory: parseBytes(size.memory),
    gpu: size.gpu === undefined ? 0 : parseCount(size.gpu),
  };
  known.set(size, amounts);
  return amounts;
}

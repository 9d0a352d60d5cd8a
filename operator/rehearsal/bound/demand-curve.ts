import { parseBytes, parseCount, parseCpu } from '../../api/quantity.ts';
import { EventQueue } from '../event-queue.ts';
import type { TracedWork, TraceLine, WorkSize } from '../trace/trace-line.ts';

/** Total requests of a hub's workloads from a time on, if all of them run at once. */
export interface DemandSince extends CurveAmounts {
  readonly at: number;
  readonly count: number;
}

/** The demand of a trace, independent of any policy. */
export class DemandCurve {
  readonly asked: DemandSince[] = [];
  /** Sizes of all requested workloads. */
  readonly sizes = new Map<string, WorkSize>();
  readonly #ends = new EventQueue();
  readonly #replicas = new Map<string, { count: number; size: WorkSize }>();
  #now = { count: 0, cpu: 0, memory: 0, gpu: 0 };

  add({ at, cluster, work }: TraceLine): void {
    // Workloads of a single cluster are not the hub's.
    if (!work || cluster !== '') return;
    this.#endUntil(at);
    const size = work.size ?? this.#replicas.get(work.name)?.size ?? [...this.sizes.values()].at(-1)!;
    this.sizes.set(JSON.stringify(size), size);
    this.#change(work, size, at);
    this.#note(at);
  }

  /** @returns the demand until `end` */
  until(end: number): readonly DemandSince[] {
    this.#endUntil(end);
    return this.asked;
  }

  #change({ name, replicas, jobs, lifeMs }: TracedWork, size: WorkSize, at: number): void {
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
    const { cpu, memory, gpu } = curveAmountsOf(size);
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
export interface CurveAmounts {
  readonly cpu: number;
  readonly memory: number;
  readonly gpu: number;
}

const known = new WeakMap<WorkSize, CurveAmounts>();

/** Amounts of one replica of this size. */
export function curveAmountsOf(size: WorkSize): CurveAmounts {
  const amounts = known.get(size) ?? {
    cpu: parseCpu(size.cpu),
    memory: parseBytes(size.memory),
    gpu: size.gpu === undefined ? 0 : parseCount(size.gpu),
  };
  known.set(size, amounts);
  return amounts;
}

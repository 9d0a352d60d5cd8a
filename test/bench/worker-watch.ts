import { readdirSync, readFileSync } from 'node:fs';
import { type Memory, memoryOf } from './processes.ts';

/** What works on a stack: our worker with its SDK, Pulumi's engine, and a provider plugin, which is the test kit's here. */
export const WORKER_PARTS = ['worker', 'engine', 'plugin'] as const;
export type WorkerPart = (typeof WORKER_PARTS)[number];

/** What workers and what they have started used while they were watched. */
export interface WorkerUse {
  /** CPU-seconds. The plugin's are those until it was last looked at, 50 ms before its end at most. */
  cpu: Record<WorkerPart, number>;
  /** Processes of the engine. */
  engines: number;
  /** Most that a part had at any moment, over all stacks that were under way; MiB. */
  peak: Record<WorkerPart, Memory>;
  /** Most proportional memory (PSS) of all at one moment, with the plugins and without; MiB. */
  peakShare: { all: number; withoutPlugins: number };
}

const TICKS = 100;
const CPU_EVERY_MS = 50;
/** Looking at memory costs the kernel a walk over every page: more often, and the watch would be what is measured. */
const MEMORY_EVERY = 8;

interface Seen {
  part: WorkerPart;
  own: number;
  /** Of children that have ended. */
  children: number;
}

/** Own CPU-seconds of a process, and those of its ended children, from a line of /proc/<pid>/stat. */
export function cpuOf(line: string): { name: string; own: number; children: number } {
  const close = line.lastIndexOf(')');
  const fields = line.slice(close + 2).split(' ');
  const seconds = (...at: number[]) => at.reduce((sum, index) => sum + Number(fields[index]), 0) / TICKS;
  return { name: line.slice(line.indexOf('(') + 1, close), own: seconds(11, 12), children: seconds(13, 14) };
}

const zero = (): Record<WorkerPart, number> => ({ worker: 0, engine: 0, plugin: 0 });
const NO_MEMORY: Memory = { rss: 0, anonymous: 0, share: 0 };

/** Watches workers and what they start until it is stopped. */
export class WorkerWatch {
  readonly #workers: () => number[];
  readonly #first = new Map<number, Seen>();
  readonly #last = new Map<number, Seen>();
  readonly #peak: Record<WorkerPart, Memory> = { worker: NO_MEMORY, engine: NO_MEMORY, plugin: NO_MEMORY };
  readonly #peakShare = { all: 0, withoutPlugins: 0 };
  readonly #timer: NodeJS.Timeout;
  #looks = 0;

  /** @param workers pids of the workers that there are now */
  constructor(workers: () => number[]) {
    this.#workers = workers;
    this.#look();
    this.#timer = setInterval(() => this.#look(), CPU_EVERY_MS);
  }

  stop(): WorkerUse {
    clearInterval(this.#timer);
    this.#look();
    const cpu = zero();
    let children = 0;
    for (const [pid, { part, own, children: ended }] of this.#last) {
      const before = this.#first.get(pid);
      if (part === 'worker') {
        cpu.worker += own - (before?.own ?? 0);
        children += ended - (before?.children ?? 0);
      } else if (part === 'plugin') cpu.plugin += own;
    }
    // A worker waits for its engines and these for their plugins, so that what all have used is exact.
    cpu.engine = children - cpu.plugin;
    const engines = [...this.#last.values()].filter(({ part }) => part === 'engine').length;
    return { cpu, engines, peak: this.#peak, peakShare: this.#peakShare };
  }

  #look(): void {
    const withMemory = this.#looks++ % MEMORY_EVERY === 0;
    const memory: Record<WorkerPart, Memory> = { worker: NO_MEMORY, engine: NO_MEMORY, plugin: NO_MEMORY };
    for (const leader of this.#workers()) {
      for (const pid of [leader, ...descendantsOf(leader)]) {
        const seen = lookAt(pid, pid === leader);
        if (!seen) continue;
        // Of a worker that was there before, only what it uses from now on.
        if (this.#looks === 1) this.#first.set(pid, seen);
        this.#last.set(pid, seen);
        if (withMemory) memory[seen.part] = sum(memory[seen.part], memoryOf(pid));
      }
    }
    if (!withMemory) return;
    for (const part of WORKER_PARTS) this.#peak[part] = most(this.#peak[part], memory[part]);
    const ours = memory.worker.share + memory.engine.share;
    this.#peakShare.all = Math.max(this.#peakShare.all, ours + memory.plugin.share);
    this.#peakShare.withoutPlugins = Math.max(this.#peakShare.withoutPlugins, ours);
  }
}

/** Processes below one, without a look at all that there are: with eight workers, that would be most of what is measured. */
function descendantsOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) => {
    try {
      return readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
    } catch {
      return [];
    }
  });
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    return [];
  }
}

function lookAt(pid: number, isWorker: boolean): Seen | undefined {
  try {
    const { name, own, children } = cpuOf(readFileSync(`/proc/${pid}/stat`, 'latin1'));
    return { part: isWorker ? 'worker' : name === 'pulumi' ? 'engine' : 'plugin', own, children };
  } catch {
    return undefined;
  }
}

const each = (a: Memory, b: Memory, how: (x: number, y: number) => number): Memory => ({
  rss: how(a.rss, b.rss),
  anonymous: how(a.anonymous, b.anonymous),
  share: how(a.share, b.share),
});
const sum = (a: Memory, b: Memory): Memory => each(a, b, (x, y) => x + y);
const most = (a: Memory, b: Memory): Memory => each(a, b, Math.max);

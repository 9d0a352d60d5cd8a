/**
 * Batches jobs. A caller that may submit a job announces it with `expect`, then either submits or dismisses; a batch
 * begins when no job is expected, at the latest `patienceMs` after the first one. One batch at a time: `take` removes
 * its jobs from the pending ones, `run` executes them.
 */
export class Batcher<Job> {
  readonly #take: (pending: Job[]) => Job[];
  readonly #run: (jobs: Job[]) => Promise<void>;
  readonly #patienceMs: number;
  readonly #pending: { job: Job; resolve: () => void; reject: (error: unknown) => void }[] = [];
  #expected = 0;
  #isRunning = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { take: (pending: Job[]) => Job[]; run: (jobs: Job[]) => Promise<void>; patienceMs: number }) {
    this.#take = options.take;
    this.#run = options.run;
    this.#patienceMs = options.patienceMs;
  }

  get pending(): Job[] {
    return this.#pending.map(({ job }) => job);
  }

  expect(): void {
    this.#expected++;
  }

  dismiss(): void {
    this.#expected--;
    this.#maybeStart();
  }

  /** Resolves when the job's batch is done; rejects with the batch's error. */
  submit(job: Job): Promise<void> {
    this.#expected--;
    return new Promise((resolve, reject) => {
      this.#pending.push({ job, resolve, reject });
      this.#timer ??= setTimeout(() => void this.#work(), this.#patienceMs);
      this.#maybeStart();
    });
  }

  #maybeStart(): void {
    if (this.#expected <= 0 && this.#pending.length > 0) void this.#work();
  }

  async #work(): Promise<void> {
    clearTimeout(this.#timer);
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (this.#pending.length > 0) {
      const jobs = this.#take(this.pending);
      const batch = this.#pending.filter(({ job }) => jobs.includes(job));
      for (const entry of batch) this.#pending.splice(this.#pending.indexOf(entry), 1);
      await this.#run(jobs).then(
        () => {
          for (const { resolve } of batch) resolve();
        },
        (error: unknown) => {
          for (const { reject } of batch) reject(error);
        },
      );
    }
    this.#isRunning = false;
    this.#timer = undefined;
  }
}

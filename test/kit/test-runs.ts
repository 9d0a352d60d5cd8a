import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { type Counts, NO_REPORT, readReport, replaceFile, summaryLine } from './counts.ts';

const VITEST = fileURLToPath(new URL('../../node_modules/vitest/vitest.mjs', import.meta.url));
const WRITE_MS = 2000;
/** From being told to end until it is ended. */
const GRACE_MS = 5_000;
/** Files that take less are not worth a line in the table of durations. */
const WORTH_SECONDS = 1;

interface RunOptions {
  /** How much less urgent than others, 0 to 19. */
  nice?: number;
  /** A run that has not ended then is ended, and has failed. */
  limitSeconds?: number;
  /** Variables that it has besides ours. */
  env?: Readonly<Record<string, string>>;
}

/** Runs of vitest, each a process, and what they have counted together until now. */
export class TestRuns {
  readonly #folder: string;
  readonly #reports: string[] = [];
  readonly #running = new Set<ChildProcess>();
  readonly #timer: NodeJS.Timeout;
  /** Failures that no run has counted. */
  readonly #failures: string[] = [];
  /** Until then something is still to come, and a summary without a failure would be taken for a success. */
  #finished = false;
  #stopped: string | undefined;

  /** @param folder where the files lie that it writes: summary.txt, all the time, and at the end durations.json */
  constructor(folder = 'test-results') {
    this.#folder = folder;
    mkdirSync(folder, { recursive: true });
    this.#write();
    this.#timer = setInterval(() => this.#write(), WRITE_MS);
  }

  /** Why no more runs are begun; undefined: they are. */
  get stopped(): string | undefined {
    return this.#stopped;
  }

  /**
   * Runs vitest to its end with these arguments. A run that ends without having counted its tests is a failure; none rejects.
   * @returns whether it leaves nothing half done: it ended by itself, or was left out
   */
  async run(name: string, args: readonly string[], { nice = 0, limitSeconds, env }: RunOptions = {}): Promise<boolean> {
    if (this.#stopped !== undefined) {
      this.fail(`${name} was left out: ${this.#stopped}`);
      // Of it there is nothing to tidy up: a garden was made anew for each of 20 files that no time was left for.
      return true;
    }
    const file = join(this.#folder, `${name}.json`);
    replaceFile(file, JSON.stringify(NO_REPORT));
    this.#reports.push(file);
    const child = spawn(process.execPath, [VITEST, 'run', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env, COPPICE_TEST_COUNTS: file },
      // A group of its own, to be ended with all that it has started.
      detached: true,
    });
    this.#running.add(child);
    if (nice > 0 && child.pid !== undefined) giveWay(child.pid, nice);
    // By lines: of two that write at once neither reads.
    createInterface({ input: child.stdout }).on('line', (line) => process.stdout.write(`${line}\n`));
    createInterface({ input: child.stderr }).on('line', (line) => process.stderr.write(`${line}\n`));
    let wasEnded = false;
    const end = (seconds: number) => {
      wasEnded = true;
      this.#overdue(name, child, seconds);
    };
    const limit = limitSeconds === undefined ? undefined : setTimeout(end, limitSeconds * 1000, limitSeconds);
    const [code] = (await once(child, 'close').catch((error: Error) => {
      console.error(`tests: ${name} cannot be run: ${error.message}`);
      return [1];
    })) as [number | null];
    clearTimeout(limit);
    this.#running.delete(child);
    // For example a garden that did not come down.
    if (code !== 0 && readReport(file).counts.failed === 0) this.fail(`${name} ended with exit code ${code}`);
    this.#write();
    return !wasEnded;
  }

  /** Counts a failure that is not one of a test. */
  fail(message: string): void {
    console.error(`tests: ${message}`);
    this.#failures.push(message);
    this.#write();
  }

  /** Ends all runs, and lets none begin: what is left out makes the run a failure. */
  stop(why: string): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = why;
    this.fail(`stopped: ${why}`);
    for (const child of this.#running) endGroup(child);
  }

  /** Says what all came to, and what failed: of a long output often only the end is kept. Call it when no run is on. */
  finish(): { line: string; failures: string[]; failed: boolean } {
    clearInterval(this.#timer);
    this.#finished = true;
    this.#write();
    const seconds = this.#reports.flatMap((file) => Object.entries(readReport(file).seconds));
    const worth = seconds
      .filter(([, took]) => took >= WORTH_SECONDS)
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    replaceFile(join(this.#folder, 'durations.json'), `${JSON.stringify(Object.fromEntries(worth), undefined, 2)}\n`);
    const counts = this.#counts();
    const failures = [...this.#reports.flatMap((file) => readReport(file).failures), ...this.#failures];
    return { line: summaryLine(counts), failures, failed: counts.some(({ failed }) => failed > 0) };
  }

  #counts(): Counts[] {
    const others = { passed: 0, failed: this.#failures.length + (this.#finished ? 0 : 1), skipped: 0 };
    return [...this.#reports.map((file) => readReport(file).counts), others];
  }

  #write(): void {
    replaceFile(join(this.#folder, 'summary.txt'), `${summaryLine(this.#counts())}\n`);
  }

  #overdue(name: string, child: ChildProcess, limitSeconds: number): void {
    console.error(`tests: ${name} has not ended after ${limitSeconds} s (test/durations.json): it is ended`);
    endGroup(child);
  }
}

/** A process that leads a session is scheduled as a group of its own, within which alone its nice value counts: the group's is set as well. */
function giveWay(pid: number, nice: number): void {
  setPriority(pid, nice);
  try {
    writeFileSync(`/proc/${pid}/autogroup`, `${nice}`);
  } catch {
    // A kernel without such groups: the process's own counts there.
  }
}

/** Ends a process with all of its group. */
function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  const send = (signal: NodeJS.Signals) => {
    try {
      process.kill(-pid, signal);
    } catch {
      // Gone by itself.
    }
  };
  send('SIGTERM');
  setTimeout(() => send('SIGKILL'), GRACE_MS).unref();
}

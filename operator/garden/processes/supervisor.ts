import { mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from '../../kube/log.ts';
import { readJson } from '../host/files.ts';
import { identityOf, isAlive } from '../host/process-identity.ts';
import type { StateDirectory } from '../state/state.ts';
import { lastError } from './logs.ts';
import {
  type Command,
  digestOfCommand,
  endGroup,
  NO_PID_FILE,
  type PidFileContent,
  startDetached,
  whenGone,
} from './processes.ts';

export interface ProcessSpec extends Command {
  name: string;
  /** Readiness check, repeated until true. Absent: ready when running. */
  ready?: () => Promise<boolean>;
  /** Default 60 s. */
  readyTimeoutMs?: number;
  /** Called when it is ready again after an unexpected exit. */
  onAgain?: () => void;
  /** Milliseconds between SIGTERM and SIGKILL. Default 5 s. */
  graceMs?: number;
}

export type ProcessState = 'starting' | 'running' | 'waiting' | 'stopped';

export interface ProcessStatus {
  name: string;
  /** Absent while it does not run. */
  pid?: number;
  /** `waiting`: it exited and will be restarted after a delay. */
  state: ProcessState;
  restarts: number;
  /** Why it last exited. */
  lastExit?: string;
}

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 10_000;
/** Run time after which the backoff is reset. */
const STEADY_MS = 30_000;
/** Consecutive exits after which start() stops waiting for readiness; restarts continue. */
const HOPELESS = 5;
const READY_POLL_MS = 40;
/** A process of an earlier daemon is no child of this one: its exit is detected by polling. */
const ADOPTED_POLL_MS = 300;

/** Delay before restart number `failures` + 1 in a row. */
export const backOff = (failures: number): number =>
  failures <= 0 ? 0 : Math.min(FIRST_WAIT_MS * 3 ** (failures - 1), LONGEST_WAIT_MS);

interface SupervisorOptions {
  directory: StateDirectory;
  log: Log;
  /** Cgroup of the started processes. */
  procsFile?: string | undefined;
  onChange?: () => void;
  /** Replacement of backOff(). */
  backOff?: (failures: number) => number;
}

/** Keeps processes running: starts them, waits for readiness, restarts them after an exit. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #processes = new Map<string, Supervised>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  set procsFile(file: string | undefined) {
    this.#options.procsFile = file;
  }

  /**
   * Starts a process, or takes over one with the same command from a dead daemon; resolves when it is ready, to whether
   * it already ran. Throws after the timeout, with the end of its log; the process is kept up all the same.
   */
  async start(spec: ProcessSpec): Promise<boolean> {
    await this.#processes.get(spec.name)?.stop();
    const supervised = new Supervised(spec, this.#options);
    this.#processes.set(spec.name, supervised);
    return supervised.start();
  }

  /** Restarts a process after a change of a file that it reads only at startup. */
  async restart(name: string): Promise<void> {
    const found = this.#processes.get(name);
    if (found) await this.start(found.spec);
  }

  /** Restarts processes whose input files changed. Resolves to their names. */
  async refresh(): Promise<string[]> {
    const stale: string[] = [];
    for (const [name, one] of this.#processes) if (await one.isStale()) stale.push(name);
    for (const name of stale) await this.restart(name);
    return stale;
  }

  async stop(name: string): Promise<void> {
    await this.#processes.get(name)?.stop();
  }

  /** Ends a process, also one of a dead daemon, and forgets it. */
  async remove(name: string): Promise<void> {
    const file = this.#options.directory.pidFile(name);
    await this.stop(name);
    this.#processes.delete(name);
    const content = await readJson<PidFileContent>(file);
    if (content) await endGroup(content, 5_000);
    await rm(file, { force: true });
    this.#options.onChange?.();
  }

  has(name: string): boolean {
    return this.#processes.has(name);
  }

  status(): ProcessStatus[] {
    return [...this.#processes.values()].map((one) => one.status());
  }
}

class Supervised {
  readonly spec: ProcessSpec;
  readonly #options: SupervisorOptions;
  readonly #stopping = new AbortController();
  #running: PidFileContent | undefined;
  #state: ProcessState = 'stopped';
  #restarts = 0;
  #lastExit: string | undefined;
  #loop: Promise<void> | undefined;

  constructor(spec: ProcessSpec, options: SupervisorOptions) {
    this.spec = spec;
    this.#options = options;
  }

  status(): ProcessStatus {
    const { name } = this.spec;
    const pid = this.#state === 'waiting' ? undefined : this.#running?.pid;
    return {
      name,
      state: this.#state,
      restarts: this.#restarts,
      ...(pid && { pid }),
      ...(this.#lastExit && { lastExit: this.#lastExit }),
    };
  }

  async start(): Promise<boolean> {
    const looked = Promise.withResolvers<boolean>();
    this.#loop = this.#keepUp(looked.resolve);
    const adopted = await looked.promise;
    await this.#whenReady();
    return adopted;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    if (this.#running) await endGroup(this.#running, this.spec.graceMs ?? 5_000);
    await this.#loop;
    await rm(this.#pidFile, { force: true });
    this.#running = undefined;
    this.#enter('stopped');
  }

  /** Whether its input files have changed since its start. */
  async isStale(): Promise<boolean> {
    return (
      this.#state === 'running' &&
      this.#running !== undefined &&
      this.#running.digest !== (await digestOfCommand(this.spec))
    );
  }

  get #pidFile(): string {
    return this.#options.directory.pidFile(this.spec.name);
  }

  #enter(state: ProcessState): void {
    this.#state = state;
    this.#options.onChange?.();
  }

  /** A process of an earlier daemon: taken over when its command is the same, ended otherwise. */
  async #leftOver(): Promise<PidFileContent | undefined> {
    const content = await readJson<PidFileContent>(this.#pidFile);
    if (!content || !(await isAlive(content))) return undefined;
    if (content.digest === (await digestOfCommand(this.spec))) {
      this.#options.log.info({ process: this.spec.name, pid: content.pid }, 'already running: taken over');
      return content;
    }
    await endGroup(content, this.spec.graceMs ?? 5_000);
    return undefined;
  }

  /**
   * Never throws, and ends only when stopped: failures, for example on a full disk, are retried.
   * @param looked receives whether a process was taken over, once known
   */
  async #keepUp(looked: (adopted: boolean) => void): Promise<void> {
    const { signal } = this.#stopping;
    const { log } = this.#options;
    const { name } = this.spec;
    let failures = 0;
    let hasLooked = false;
    while (!signal.aborted) {
      const startedAt = performance.now();
      try {
        const leftOver = hasLooked ? undefined : await this.#leftOver();
        if (signal.aborted) {
          if (leftOver) await endGroup(leftOver, this.spec.graceMs ?? 5_000);
          break;
        }
        hasLooked = true;
        looked(leftOver !== undefined);
        this.#lastExit = await (leftOver ? this.#watch(leftOver) : this.#runOnce());
      } catch (error) {
        this.#lastExit = `cannot be started: ${(error as Error).message}`;
        looked(false);
      }
      if (signal.aborted) break;
      failures = performance.now() - startedAt > STEADY_MS ? 1 : failures + 1;
      this.#restarts++;
      const waitMs = (this.#options.backOff ?? backOff)(failures);
      const fields = { process: name, how: this.#lastExit, waitMs, restarts: this.#restarts };
      log.warn(fields, 'process exited, starting it again');
      this.#enter('waiting');
      await sleep(waitMs, undefined, { signal }).catch(() => {});
    }
    looked(false);
  }

  /** Starts the process and resolves to the reason of its exit. */
  async #runOnce(): Promise<string> {
    const { directory, procsFile, log } = this.#options;
    const { name } = this.spec;
    this.#running = undefined;
    this.#enter('starting');
    if (this.#restarts > 0)
      this.#whenReady().then(
        () => this.#stopping.signal.aborted || this.spec.onAgain?.(),
        (error) => log.warn({ process: name }, String(error.message)),
      );
    const logFile = directory.logFile(name);
    await mkdir(dirname(logFile), { recursive: true, mode: 0o700 });
    const pidFile = { file: this.#pidFile, digest: await digestOfCommand(this.spec) };
    const child = startDetached(this.spec, { logFile, procsFile, pidFile });
    let hasPidFile = true;
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message));
      child.once('exit', (code, signal) => {
        hasPidFile = code !== NO_PID_FILE;
        resolve(signal ? `ended by ${signal}` : `exit code ${code}`);
      });
    });
    const identity = child.pid === undefined ? undefined : await identityOf(child.pid);
    if (identity) {
      this.#running = { ...identity, digest: pidFile.digest };
      // Stopped between the start and here: only this code knows the process.
      if (this.#stopping.signal.aborted) await endGroup(identity, this.spec.graceMs ?? 5_000);
      else this.#options.onChange?.();
    }
    const how = await ended;
    if (!hasPidFile) return `cannot be recorded in ${pidFile.file}: check that its disk has room`;
    const said = await lastError(logFile).catch(() => '');
    return said ? `${how}: ${said}` : how;
  }

  /** Resolves to the reason of the exit of an earlier daemon's process. */
  async #watch(content: PidFileContent): Promise<string> {
    this.#running = content;
    this.#enter('running');
    const { signal } = this.#stopping;
    while (await isAlive(content)) {
      await sleep(ADOPTED_POLL_MS, undefined, { signal }).catch(() => {});
      if (signal.aborted) await whenGone(content, (this.spec.graceMs ?? 5_000) + 5_000);
    }
    return 'ended';
  }

  async #whenReady(): Promise<void> {
    const { ready, readyTimeoutMs = 60_000, name } = this.spec;
    const { signal } = this.#stopping;
    const deadline = performance.now() + readyTimeoutMs;
    const before = this.#restarts;
    // It may serve before its identity is recorded, without which it could not be ended.
    while (!this.#running || (ready && !(await ready().catch(() => false)))) {
      if (signal.aborted) return;
      if (performance.now() > deadline || this.#restarts - before >= HOPELESS) {
        const why = this.#lastExit ?? (await lastError(this.#options.directory.logFile(name)));
        throw new Error(`${name} did not become ready: ${why}`);
      }
      await sleep(READY_POLL_MS, undefined, { signal }).catch(() => {});
    }
    if (!signal.aborted) this.#enter('running');
  }
}

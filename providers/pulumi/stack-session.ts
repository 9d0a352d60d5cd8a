import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Log } from '../../operator/kube/log.ts';
import type { CloudProgress } from '../cloud.ts';
import { errorsIn, failureOf, tellingDiagnostics } from './diagnostics.ts';
import { forgetEngines, isDeadEngine } from './engines-started.ts';
import { firstLivingHolder, holdersIn, lockedBy } from './locks.ts';
import type { StackRequest } from './request.ts';
import { newReport, noteEvent, type RunEvent, type RunReport, runProgressOf } from './run-events.ts';
import { packState, type StackState, unpackState } from './stack-state.ts';
import { TaskFailure } from './worker-process.ts';
import type { RunCommand, StackPlace, WorkerTask } from './worker-protocol.ts';
import type { StackWorker } from './workers.ts';

interface SessionOptions {
  worker: StackWorker;
  place: StackPlace;
  request: StackRequest;
  /** File that exports the programs of the request's provider. */
  programs: string;
  redact: (text: string) => string;
  log: Log;
  /** Time for a graceful end, ms. */
  graceMs: number;
  /** Name of this machine, and a check whether another one is gone for good. */
  host: string;
  isGoneHost: (host: string) => boolean | Promise<boolean>;
}

/** A failed run, with its report so far. */
export class RunFailure extends Error {
  readonly record: RunReport;
  /** Error for the caller of the operation. */
  readonly failure: Error;

  constructor(record: RunReport, failure: Error) {
    super(failure.message);
    this.record = record;
    this.failure = failure;
  }
}

const NOUN: Record<RunCommand, string> = {
  up: 'the update of',
  preview: 'the preview of',
  refresh: 'the refresh of',
  destroy: 'the destruction of',
};

/** Whether a finished task proves that its engine had the stack's lock. */
const takesLock = (task: WorkerTask): boolean =>
  task.do === 'init' ||
  task.do === 'import' ||
  task.do === 'remove' ||
  (task.do === 'run' && task.command !== 'preview');

/**
 * Operations on one stack, held by one worker. Errors are one line, redacted, with a code where the cause is known; or
 * the signal's reason.
 */
export class StackSession {
  readonly request: StackRequest;
  readonly stackName: string;
  readonly log: Log;
  readonly #options: SessionOptions;
  /** Whether an engine or the worker was killed: the worker must end with all leftovers. */
  isSuspect = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.request = options.request;
    this.stackName = options.place.stackName;
    this.log = options.log;
  }

  /** State in the backend; undefined: no such stack. */
  async readState(): Promise<StackState | undefined> {
    return (await this.#manage('reading the state of', { do: 'export' })) as StackState | undefined;
  }

  async writeState(state: StackState): Promise<void> {
    await this.#manage('writing the state of', { do: 'import', state });
  }

  /** Creates an empty stack in the backend. */
  async create(): Promise<void> {
    // Settings of an earlier stack of this name have a different encryption salt.
    for (const ending of ['yaml', 'json']) {
      rmSync(join(this.#options.place.workDir, `Pulumi.${this.stackName}.${ending}`), { force: true });
    }
    await this.#manage('making', { do: 'init' });
  }

  /** Deletes the stack, which must be empty. */
  async remove(): Promise<void> {
    await this.#manage('removing', { do: 'remove' });
    await this.request.backend.copies?.remove(this.stackName);
  }

  /** Outputs of the program, with secrets in plain text. */
  async readOutputs(): Promise<Record<string, unknown>> {
    return (await this.#manage('reading the outputs of', { do: 'outputs' })) as Record<string, unknown>;
  }

  /** Reads the state, also after an abort, and saves a copy. */
  async readAndKeepState(): Promise<StackState> {
    const state = (await this.#do({ do: 'export' }, { evenIfAborted: true })) as StackState;
    await this.keep(state);
    return state;
  }

  /** Saves a copy of the state. */
  async keep(state: StackState): Promise<void> {
    await this.request.backend.copies?.save(this.stackName, await packState(state));
  }

  /** The last copy of the state, if any. */
  async readCopy(): Promise<StackState | undefined> {
    const copy = await this.request.backend.copies?.load(this.stackName);
    return copy && unpackState(copy);
  }

  /** Runs the program. `total`: number of resources, if known. Rejects with a RunFailure. */
  async run(
    command: RunCommand,
    { refresh, targets, total }: { refresh?: boolean | undefined; targets?: string[]; total?: number } = {},
  ): Promise<RunReport> {
    const { program, inputs, onProgress } = this.request;
    const record = newReport();
    let last = '';
    const tell = (progress: CloudProgress | undefined) => {
      if (!progress || progress.description === last) return;
      last = progress.description;
      onProgress?.(progress);
    };
    const isPlan = command === 'preview';
    if (isPlan) tell({ description: `looking for what ${refresh ? 'differs' : 'is to be changed'}`, done: 0 });
    const onEvent = (event: RunEvent) => {
      noteEvent(record, event);
      // Steps of a plan are not progress.
      if (!isPlan) tell(runProgressOf(record, total));
    };
    const task: WorkerTask = {
      do: 'run',
      command,
      program,
      programs: this.#options.programs,
      inputs,
      ...(refresh && { refresh }),
      ...(targets && { targets }),
    };
    try {
      await this.#breakingDeadLocks(task, onEvent);
      return record;
    } catch (error) {
      if (!(error instanceof TaskFailure)) throw error;
      const said = record.errors.length > 0 ? record.errors : errorsIn(error);
      const what = `${NOUN[command]} ${this.stackName}`;
      throw new RunFailure(record, failureOf(what, tellingDiagnostics(said, this.#options.redact), this.request));
    }
  }

  async #manage(doing: string, task: WorkerTask): Promise<unknown> {
    try {
      return await this.#breakingDeadLocks(task);
    } catch (error) {
      if (!(error instanceof TaskFailure)) throw error;
      throw failureOf(`${doing} ${this.stackName}`, tellingDiagnostics(errorsIn(error), this.#options.redact));
    }
  }

  async #breakingDeadLocks(task: WorkerTask, onEvent?: (event: RunEvent) => void): Promise<unknown> {
    try {
      return await this.#do(task, { onEvent });
    } catch (error) {
      if (!isLocked(error)) throw error;
      await this.#breakLocks(error);
    }
    try {
      return await this.#do(task, { onEvent });
    } catch (error) {
      throw isLocked(error) ? lockedBy(this.stackName, holdersIn(error.output)[0]) : error;
    }
  }

  async #breakLocks({ output }: TaskFailure): Promise<void> {
    const { place, host, isGoneHost } = this.#options;
    const holders = holdersIn(output);
    const gone = new Set<string>();
    for (const other of new Set(holders.map((holder) => holder.host)))
      if (other !== host && (await isGoneHost(other))) gone.add(other);
    const living = firstLivingHolder(holders, {
      host,
      isGoneHost: (name) => gone.has(name),
      isDeadEngine: (pid) => isDeadEngine(place.workDir, pid),
    });
    if (living || holders.length === 0) throw lockedBy(this.stackName, living);
    this.log.warn({ stack: this.stackName, holders }, 'the lock of a dead engine is broken');
    await this.#do({ do: 'unlock' });
  }

  async #do(
    task: WorkerTask,
    options: { onEvent?: ((event: RunEvent) => void) | undefined; evenIfAborted?: boolean } = {},
  ): Promise<unknown> {
    const { worker, place, graceMs } = this.#options;
    const { signal } = this.request;
    try {
      const value = await worker.run(place, task, {
        graceMs,
        ...(options.onEvent && { onEvent: options.onEvent }),
        ...(!options.evenIfAborted && { signal }),
      });
      if (takesLock(task)) forgetEngines(place.workDir);
      return value;
    } catch (error) {
      if (error instanceof TaskFailure && error.kind === 'killed') this.isSuspect = true;
      if (!options.evenIfAborted) signal.throwIfAborted();
      throw error;
    }
  }
}

const isLocked = (error: unknown): error is TaskFailure => error instanceof TaskFailure && error.kind === 'locked';

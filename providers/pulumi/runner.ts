import { rmSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { FairQueue } from '../../operator/kube/fair-queue.ts';
import type { Log } from '../../operator/kube/log.ts';
import type { Change } from '../cloud.ts';
import { type Engine, engineUnless } from './engine.ts';
import { engineEnvironment, secretsOf, workerEnvironment } from './environment.ts';
import { apply, destroy, preview, previewDrift, readOutputs } from './operations.ts';
import type { ProgramRef } from './program.ts';
import { PROJECT, prepareHome, prepareWorkDir, stackNameOf } from './project.ts';
import { RecentPlans } from './recent-plans.ts';
import { makeRedactor } from './redaction.ts';
import type { ApplyRequest, ApplyResult, StackRequest } from './request.ts';
import { claimStack } from './stack-claim.ts';
import type { StackRunner } from './stack-runner.ts';
import { StackSession } from './stack-session.ts';
import { StackWorkerPool } from './worker-pool.ts';
import type { Workers } from './workers.ts';

/** Kept history files: each run writes two (a summary and a checkpoint). */
const KEPT_FILES = 2 * 5;

/**
 * Deletes old history of a stack, which the engine never does. For directories only; in buckets a lifecycle rule does
 * it.
 */
async function pruneHistory(backendURL: string, stackName: string): Promise<void> {
  if (!backendURL.startsWith('file:///')) return;
  const folder = join(fileURLToPath(backendURL), '.pulumi', 'history', PROJECT, stackName);
  const files = await readdir(folder).catch(() => []);
  // File names sort by stack and time in nanoseconds.
  const old = files.sort().slice(0, -KEPT_FILES);
  await Promise.all(old.map((file) => rm(join(folder, file), { force: true })));
}

const MEBIBYTE = 1024 * 1024;

export interface RunnerOptions {
  /** Called on first use. */
  engine: Engine;
  /**
   * Own folder for plugins, working directories and records; must outlive the process, so that locks are recognised.
   */
  home: string;
  log: Log;
  /** Milliseconds. */
  now?: () => number;
  /** Parallel operations per account and region. Default 2. */
  maxPerAccountAndRegion?: number;
  /** Parallel operations in total: each takes 0.35 GB, with the clouds' plugins up to 1 GB. Default 2. */
  maxWorkers?: number;
  /**
   * A worker is replaced after this many tasks (default 100), beyond this memory (default 400 MiB), or after this time
   * idle (default 1 min).
   */
  worker?: { maxTasks?: number; maxRss?: number; idleMs?: number };
  /** Replaces the process pool. */
  workers?: Workers;
  /**
   * Time for an aborted operation to finish its current step. Default 20 min, longer than any single call of a cloud.
   */
  graceMs?: number;
  /** Whether the engine may download provider plugins. Default true. */
  acquirePlugins?: boolean;
  /** Folders of provider plugins by provider (aws, gcp, azure-native), instead of Pulumi's. */
  plugins?: Readonly<Record<string, string>>;
  /** Files that export programs, instead of `providers/<provider>/programs.ts`. */
  programs?: Partial<Record<ProgramRef['provider'], string>>;
  /**
   * Whether a machine or pod of that name is gone for good, so that its locks can be broken. Default: unknown for all.
   */
  isGoneHost?: (host: string) => boolean | Promise<boolean>;
  /** Name of this machine or pod for the engine. */
  host?: string;
}

type StackWork<Result> = (session: StackSession) => Promise<Result>;

/**
 * Runs Pulumi programs in worker processes: one operation per stack at a time, bounded by account and region, in turns
 * across tenants, so that the single cluster of one tenant waits for at most one of another's fifty. Every operation
 * can be repeated after a crash without duplicates. Errors are one line without secrets: CoppiceErrors with a Gardener
 * code where the cause is known.
 */
export class PulumiRunner implements StackRunner {
  readonly #options: RunnerOptions;
  readonly #now: () => number;
  readonly #plans: RecentPlans;
  readonly #queue: FairQueue;
  readonly #pool: Workers;
  readonly #closing = new AbortController();
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#plans = new RecentPlans(this.#now);
    const { home, log, maxPerAccountAndRegion = 2, maxWorkers = 2, worker = {} } = options;
    this.#queue = new FairQueue({ total: maxWorkers, perGroup: maxPerAccountAndRegion });
    prepareHome(home);
    this.#pool =
      options.workers ??
      new StackWorkerPool({
        environment: { ...workerEnvironment(home), NODE_COMPILE_CACHE: join(home, 'compile-cache') },
        cwd: home,
        log,
        maxTasks: worker.maxTasks ?? 100,
        maxRss: worker.maxRss ?? 400 * MEBIBYTE,
        idleMs: worker.idleMs ?? 60_000,
      });
  }

  /** PIDs of worker processes. */
  get workers(): number[] {
    return this.#pool.pids;
  }

  /** Changes that apply would make. Changes nothing in the cloud. */
  preview(request: StackRequest): Promise<Change[]> {
    return this.#operate('preview', request, (session) => preview(session, this.#plans));
  }

  /** Changes that apply with `refresh` would make, for a program with its last inputs: the drift. */
  drift(request: StackRequest): Promise<Change[]> {
    return this.#operate('drift', request, previewDrift);
  }

  /** Applies the program. Writes nothing, including state, when nothing differs. */
  apply(request: ApplyRequest): Promise<ApplyResult> {
    return this.#operate('apply', request, (session) => apply(session, request, this.#plans));
  }

  /** Outputs of the last apply; undefined when there was none. */
  outputs(request: StackRequest): Promise<Record<string, unknown> | undefined> {
    return this.#operate('outputs', request, readOutputs);
  }

  /** Deletes all resources of the stack, including pending ones, the stack, and the copy of its state. */
  async destroy(request: StackRequest): Promise<void> {
    await this.#operate('destroy', request, async (session) => {
      await destroy(session);
      rmSync(join(this.#options.home, 'stacks', session.stackName), { recursive: true, force: true });
    });
  }

  /** Ends all operations: each gets `graceMs` for its current step, then is killed. */
  async close(graceMs = this.#graceMs): Promise<void> {
    this.#closing.abort(new Error('the runner is being closed'));
    const killer = setTimeout(() => void this.#pool.close(0), graceMs);
    await Promise.allSettled(this.#underWay);
    clearTimeout(killer);
    await this.#pool.close(5_000);
  }

  get #graceMs(): number {
    return this.#options.graceMs ?? 20 * 60_000;
  }

  #operate<Result>(name: string, request: StackRequest, operation: StackWork<Result>): Promise<Result> {
    const signal = AbortSignal.any([request.signal, this.#closing.signal]);
    const work = this.#inTurn(name, { ...request, signal }, operation);
    this.#underWay.add(work);
    work.catch(() => {}).finally(() => this.#underWay.delete(work));
    return work;
  }

  async #inTurn<Result>(name: string, request: StackRequest, operation: StackWork<Result>): Promise<Result> {
    const stack = stackNameOf(request.stack);
    const { account, region, tenant } = request;
    const ticket = { tenant, group: `${account}/${region}`, exclusive: stack };
    const release = await this.#queue.acquire(ticket, request.signal);
    const started = this.#now();
    const fields = { stack, operation: name, tenant, account, region };
    try {
      const result = await this.#inWorker(request, operation);
      const level = name === 'outputs' ? 'debug' : 'info';
      this.#options.log[level]({ ...fields, ms: Math.round(this.#now() - started) }, 'operation on a stack is done');
      return result;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.warn(
        { ...fields, ms: Math.round(this.#now() - started), reason },
        'operation on a stack failed',
      );
      throw error;
    } finally {
      release();
    }
  }

  async #inWorker<Result>(request: StackRequest, operation: StackWork<Result>): Promise<Result> {
    const {
      home,
      log,
      plugins = {},
      acquirePlugins = true,
      host = hostname(),
      isGoneHost = () => false,
    } = this.#options;
    const stackName = stackNameOf(request.stack);
    const { provider } = request.program;
    const engine = await engineUnless(request.signal, this.#options.engine, (description) =>
      request.onProgress?.({ description, done: 0 }),
    );
    const environment = engineEnvironment(request, { home, engine, acquirePlugins });
    const workDir = prepareWorkDir(home, stackName, plugins);
    const giveBack = claimStack(workDir, stackName);
    try {
      const worker = await this.#pool.acquire(provider);
      const session = new StackSession({
        worker,
        place: {
          engine,
          workDir,
          stackName,
          environment,
          plugins,
          ...(request.backend.secretsProvider && { secretsProvider: request.backend.secretsProvider }),
        },
        request,
        programs: this.#options.programs?.[provider] ?? programsOf(provider),
        redact: makeRedactor(secretsOf(request)),
        log,
        graceMs: this.#graceMs,
        host,
        isGoneHost,
      });
      try {
        return await operation(session);
      } finally {
        this.#pool.release(worker, provider, session.isSuspect);
        await pruneHistory(request.backend.url, stackName);
      }
    } finally {
      giveBack();
    }
  }
}

const programsOf = (provider: ProgramRef['provider']): string =>
  fileURLToPath(new URL(`../${provider}/programs.ts`, import.meta.url));

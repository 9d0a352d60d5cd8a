import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PulumiCommand } from '@pulumi/pulumi/automation/index.js';
import { ENGINES_FILE } from './engines-started.ts';
import { engineIdentityOf } from './processes.ts';
import type { Failed, StackPlace } from './worker-protocol.ts';

/** The engine failed. `output` may contain secrets. */
export class EngineFailure extends Error {
  readonly kind: Failed['kind'];
  readonly output: string;

  constructor(kind: Failed['kind'], output: string) {
    super(`the engine failed: ${kind}`);
    this.kind = kind;
    this.output = output;
  }
}

/** The engine's message for a missing stack (pkg/cmd/pulumi/stack). */
const NO_STACK = /no stack named '.*' found/;
/** pkg/backend/diy/lock.go. */
const LOCKED = /the stack is currently locked by/;

export const isNoStack = (error: unknown): boolean => error instanceof EngineFailure && NO_STACK.test(error.output);

interface EngineResult {
  stdout: string;
  stderr: string;
  code: number;
}

/**
 * Runs the engine with exactly this environment. An abort interrupts it gracefully: it finishes its current step,
 * writes its state, releases its lock, and fails. Rejects with an EngineFailure.
 */
export function runEngine(
  place: StackPlace,
  args: readonly string[],
  { input, signal, environment }: { input?: string; signal?: AbortSignal; environment?: Record<string, string> } = {},
): Promise<EngineResult> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const child = spawn(place.engine, args.includes('--non-interactive') ? args : [...args, '--non-interactive'], {
      cwd: place.workDir,
      env: environment ?? place.environment,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    // This record lets a later process recognise the lock of a killed engine.
    const identity = child.pid === undefined ? undefined : engineIdentityOf(child.pid);
    if (identity) appendFileSync(join(place.workDir, ENGINES_FILE), `${JSON.stringify(identity)}\n`, { mode: 0o600 });

    const interrupt = () => child.kill('SIGINT');
    signal?.addEventListener('abort', interrupt, { once: true });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    // An engine that fails early does not read its input.
    child.stdin.on('error', () => {});
    child.stdin.end(input ?? '');
    child.once('error', (error) => reject(new EngineFailure('engine', error.message)));
    child.once('close', (code, killedBy) => {
      signal?.removeEventListener('abort', interrupt);
      if (code === 0) resolve({ stdout, stderr, code });
      else if (killedBy) reject(new EngineFailure('killed', `the engine was ended by ${killedBy}`));
      else reject(new EngineFailure(LOCKED.test(stderr) ? 'locked' : 'engine', stderr.trim() === '' ? stdout : stderr));
    });
  });
}

/**
 * Command for the Automation API. Its default would pass on this process's environment, and start the engine three more
 * times per run: twice for outputs and once for the history, which the runner takes from the exported state.
 */
export function automationCommand(place: StackPlace, signal: AbortSignal): PulumiCommand {
  const nothing: Record<string, string> = { select: '', output: '{}', history: '[]' };
  return {
    command: place.engine,
    // Used as text only: it selects features (events over gRPC came with 3.206).
    version: { toString: () => '3.256.0' },
    run: async (args: string[], _: string, environment: Record<string, string>): Promise<EngineResult> => {
      const answer = args[0] === 'stack' ? nothing[args[1] ?? ''] : undefined;
      if (answer !== undefined) return { stdout: answer, stderr: '', code: 0 };
      return runEngine(place, args, { signal, environment: { ...environment, PULUMI_AUTOMATION_API: 'true' } });
    },
  } as unknown as PulumiCommand;
}

import type { ProgramRef } from './program.ts';
import type { RunEvent } from './run-events.ts';
import type { StackState } from './stack-state.ts';

/** The stack that a task is about, and how the engine is to be run on it. Goes over the IPC channel only: it has secrets in it. */
export interface StackPlace {
  /** Path of the pulumi executable. */
  engine: string;
  /** The stack's own working directory; project and stack settings are kept there. */
  workDir: string;
  stackName: string;
  /** The whole environment of the engine. */
  environment: Record<string, string>;
  secretsProvider?: string;
  /** Folders with provider plugins, by name of the provider; others are looked up where Pulumi has them. */
  plugins: Record<string, string>;
}

export type RunCommand = 'up' | 'preview' | 'refresh' | 'destroy';

/** What a worker is asked to do, one at a time. */
export type Task =
  /** The state as it is, or undefined when there is no such stack. */
  | { do: 'export' }
  | { do: 'init' }
  | { do: 'import'; state: StackState }
  /** Takes away all locks of the stack. */
  | { do: 'unlock' }
  | {
      do: 'run';
      command: RunCommand;
      program: ProgramRef;
      programs: string;
      inputs: unknown;
      refresh?: boolean;
      targets?: string[];
    }
  /** Outputs, secret ones in the clear. */
  | { do: 'outputs' }
  /** Takes the stack itself away; only when it is empty. */
  | { do: 'remove' };

/** Of a task that was done: `value` is a StackState, outputs, or nothing. */
export type Done = { id: number; ok: true; value?: unknown };

/** Of a task that failed. `output` is what the engine wrote; it may have secrets in it and must be redacted. */
export interface Failed {
  id: number;
  ok: false;
  /** locked: by whom, `output` says. killed: the engine was. program: it never came to the engine. */
  kind: 'locked' | 'killed' | 'engine' | 'program';
  output: string;
}

export type ToWorker = { id: number; place: StackPlace; task: Task } | { stop: number };

/** `rss` is the worker's resident memory after the task, bytes. */
export type Answer = (Done | Failed) & { rss: number };

export type FromWorker = { ready: true } | { id: number; event: RunEvent } | Answer;

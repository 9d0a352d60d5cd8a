import type { ProgramRef } from './program.ts';
import type { RunEvent } from './run-events.ts';
import type { StackState } from './stack-state.ts';

/** A stack, and how to run the engine on it. Sent over IPC only, because it contains secrets. */
export interface StackPlace {
  /** Path of the pulumi executable. */
  engine: string;
  /** Working directory of the stack, with project and stack settings. */
  workDir: string;
  stackName: string;
  /** The whole environment of the engine. */
  environment: Record<string, string>;
  secretsProvider?: string;
  /** Folders of provider plugins by provider; others are in Pulumi's default folder. */
  plugins: Record<string, string>;
}

export type RunCommand = 'up' | 'preview' | 'refresh' | 'destroy';

/** Tasks of a worker. */
export type WorkerTask =
  /** The state; undefined: no such stack. */
  | { do: 'export' }
  | { do: 'init' }
  | { do: 'import'; state: StackState }
  /** Removes all locks of the stack. */
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
  /** Outputs with secrets in plain text. */
  | { do: 'outputs' }
  /** Deletes the empty stack. */
  | { do: 'remove' };

/** Result of a successful task: `value` is a StackState, outputs, or nothing. */
type Done = { id: number; ok: true; value?: unknown };

/** Result of a failed task. `output` of the engine may contain secrets and must be redacted. */
export interface Failed {
  id: number;
  ok: false;
  /** locked: `output` names the holder. killed: the engine was killed. program: the engine did not start. */
  kind: 'locked' | 'killed' | 'engine' | 'program';
  output: string;
}

export type ToWorker = { id: number; place: StackPlace; task: WorkerTask } | { stop: number };

/** `rss`: resident memory of the worker after the task, bytes. */
export type TaskAnswer = (Done | Failed) & { rss: number };

export type FromWorker = { ready: true } | { id: number; event: RunEvent } | TaskAnswer;

import type { LogLevel } from './log.ts';

/** Start data of the thread that renews the Lease. */
export interface LeaderThreadData {
  /** Kubeconfig of the garden. Absent: in-cluster, or the user's own. */
  readonly kubeconfig: string | undefined;
  readonly namespace: string;
  /** Name of the Lease. */
  readonly name: string;
  readonly identity: string;
  readonly rememberIn: string | undefined;
  readonly timing: LeaderTiming;
  /** See CLOCK. */
  readonly clock: SharedArrayBuffer;
}

/** Milliseconds. For the first three see LeaderElectorOptions. */
export interface LeaderTiming {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** The process is killed when the main event loop has sent no heartbeat for this long. */
  readonly stalledMs: number;
}

/** Slots in the shared buffer: nanoseconds of the monotonic clock, which all threads of a machine share. */
export const CLOCK = {
  /** Until when writes may leave; 0: no writes. Set by the thread. */
  deadline: 0,
  /** When the main event loop last ran. */
  heartbeat: 1,
} as const;

/** Messages from the thread. */
export type FromThread =
  | { readonly type: 'seen'; readonly leading: boolean; readonly problem?: string; readonly leaders: readonly string[] }
  /** This process leads from now on. */
  | { readonly type: 'started' }
  /** The work must end. */
  | { readonly type: 'end' }
  /** Another replica may lead. */
  | { readonly type: 'lost' }
  /** The Lease is released or lost. */
  | { readonly type: 'done' }
  | { readonly type: 'log'; readonly level: LogLevel; readonly fields: object; readonly message: string }
  | { readonly type: 'request'; readonly method: string; readonly status: number };

/** Messages to the thread: the process is to stop; the work has ended. */
export type ToThread = { readonly type: 'stop' } | { readonly type: 'ended' };

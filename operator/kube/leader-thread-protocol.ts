import type { Level } from './log.ts';

/** What the thread that renews the Lease is started with. */
export interface LeaderThreadData {
  /** Kubeconfig of the garden; absent: in-cluster, or the person's own. */
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

/** Milliseconds. See LeaderElectorOptions for the first three. */
export interface LeaderTiming {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** The process ends when its main event loop has given no sign for so long. */
  readonly stalledMs: number;
}

/** Places in the shared clock: nanoseconds of the monotonic clock, which all threads of a machine read alike. */
export const CLOCK = {
  /** Until when writes may leave; 0: not at all. Written by the thread. */
  deadline: 0,
  /** When the main event loop last ran. */
  heartbeat: 1,
} as const;

/** What the thread tells. */
export type FromThread =
  | { readonly type: 'seen'; readonly leading: boolean; readonly problem?: string; readonly leaders: readonly string[] }
  /** Leading begins. */
  | { readonly type: 'started' }
  /** The work is to end. */
  | { readonly type: 'end' }
  /** Another may lead. */
  | { readonly type: 'lost' }
  /** The Lease is given back, or lost. */
  | { readonly type: 'done' }
  | { readonly type: 'log'; readonly level: Level; readonly fields: object; readonly message: string }
  | { readonly type: 'request'; readonly method: string; readonly status: number };

/** What the thread is told: that the process is to stop; that the work has ended. */
export type ToThread = { readonly type: 'stop' } | { readonly type: 'ended' };

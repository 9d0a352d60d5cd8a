import { InTurn } from '../../kube/in-turn.ts';
import type { EgressStatus } from '../egress/policy.ts';
import { readJson, writeAtomic } from '../host/files.ts';
import { isAlive, type ProcessIdentity } from '../host/process-identity.ts';
import type { ProcessStatus } from '../processes/supervisor.ts';
import type { GardenProgress } from '../state/garden-progress.ts';

/** `starting` until everything serves. `failed`: the daemon has ended, with `error`. */
type Phase = 'starting' | 'ready' | 'stopping' | 'stopped' | 'failed';

/** Status of the daemon for the CLI, in a file. */
export interface DaemonStatus {
  daemon: ProcessIdentity;
  phase: Phase;
  error?: string;
  startedAt: string;
  /** Digest of the daemon's code. Absent: written by a version without it. */
  code?: string;
  /** Milliseconds from start until the API server served, and until everything did. */
  apiserverAfterMs?: number;
  readyAfterMs?: number;
  /** A permanent message while the garden runs, for example: no local seed. */
  notice?: string;
  /** What pods can reach. Absent without a local seed. */
  egress?: EgressStatus;
  processes: ProcessStatus[];
  /** Newest last; `sequence` is the number of the first. */
  progress: { sequence: number; events: GardenProgress[] };
}

const KEPT_EVENTS = 300;
const WRITE_PAUSE_MS = 40;
/** Retry after a failed write: the CLI waits for "ready" in this file. */
const WRITE_AGAIN_MS = 1_000;

/** Writes the daemon's status shortly after each change. */
export class StatusFile {
  readonly #file: string;
  readonly #status: DaemonStatus;
  readonly #processes: () => ProcessStatus[];
  #timer: NodeJS.Timeout | undefined;
  readonly #writes = new InTurn();

  constructor(file: string, daemon: ProcessIdentity, processes: () => ProcessStatus[]) {
    this.#file = file;
    this.#processes = processes;
    this.#status = {
      daemon,
      phase: 'starting',
      startedAt: new Date().toISOString(),
      processes: [],
      progress: { sequence: 0, events: [] },
    };
  }

  set(change: Partial<Omit<DaemonStatus, 'daemon' | 'processes' | 'progress'>>): void {
    Object.assign(this.#status, change);
    this.touch();
  }

  progress(event: GardenProgress): void {
    const { progress } = this.#status;
    progress.events.push(event);
    while (progress.events.length > KEPT_EVENTS) {
      progress.events.shift();
      progress.sequence++;
    }
    this.touch();
  }

  /** Schedules a write after a change. */
  touch(afterMs = WRITE_PAUSE_MS): void {
    this.#timer ??= setTimeout(() => void this.flush(), afterMs);
  }

  /** Resolves when the file is current, or cannot be written for now. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#status.processes = this.#processes();
    const text = JSON.stringify(this.#status);
    return this.#writes.run(() => writeAtomic(this.#file, text, 0o600, false)).catch(() => this.touch(WRITE_AGAIN_MS));
  }
}

/** The daemon's status, and whether it lives. Undefined when none was ever started. */
export async function readStatus(file: string): Promise<(DaemonStatus & { isAlive: boolean }) | undefined> {
  const status = await readJson<DaemonStatus>(file);
  return status && { ...status, isAlive: await isAlive(status.daemon) };
}

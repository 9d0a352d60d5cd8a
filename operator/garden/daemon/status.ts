import { InTurn } from '../../kube/in-turn.ts';
import type { EgressStatus } from '../egress/policy.ts';
import { readJson, writeAtomic } from '../host/files.ts';
import { isAlive, type ProcessIdentity } from '../host/process-identity.ts';
import type { ProcessStatus } from '../processes/supervisor.ts';
import type { GardenProgress } from '../state/garden-progress.ts';

/** `starting` until all is up. `failed`: the daemon has ended, `error` says why. */
type Phase = 'starting' | 'ready' | 'stopping' | 'stopped' | 'failed';

/** What the daemon tells the CLI, through a file. */
export interface DaemonStatus {
  daemon: ProcessIdentity;
  phase: Phase;
  error?: string;
  startedAt: string;
  /** Which files of Coppice it runs. Absent: those of a version that did not tell. */
  code?: string;
  /** Milliseconds from the start until the API server served, and until all was up. */
  apiserverAfterMs?: number;
  readyAfterMs?: number;
  /** A line for the person that stays true while the garden runs: no local seed, for example. */
  notice?: string;
  /** What pods reach. Absent without a local seed. */
  egress?: EgressStatus;
  processes: ProcessStatus[];
  /** Newest last; `sequence` is the number of the first. */
  progress: { sequence: number; events: GardenProgress[] };
}

const KEPT_EVENTS = 300;
const WRITE_PAUSE_MS = 40;
/** What could not be written is tried again after that: nobody else would tell whoever waits for "ready". */
const WRITE_AGAIN_MS = 1_000;

/** Writes the daemon's status, soon after each change. */
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

  /** Something that the status shows has changed. */
  touch(afterMs = WRITE_PAUSE_MS): void {
    this.#timer ??= setTimeout(() => void this.flush(), afterMs);
  }

  /** Resolves when the file says what is known now, or cannot be written for the time being. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#status.processes = this.#processes();
    const text = JSON.stringify(this.#status);
    return this.#writes.run(() => writeAtomic(this.#file, text, 0o600, false)).catch(() => this.touch(WRITE_AGAIN_MS));
  }
}

/** The status of the daemon, and whether it lives. Undefined when none was ever started. */
export async function readStatus(file: string): Promise<(DaemonStatus & { isAlive: boolean }) | undefined> {
  const status = await readJson<DaemonStatus>(file);
  return status && { ...status, isAlive: await isAlive(status.daemon) };
}

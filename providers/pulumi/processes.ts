import { readdirSync, readFileSync } from 'node:fs';

/** A process, distinguished from a later one with the same PID. */
export interface EngineProcess {
  pid: number;
  /** Boot id and start time from the kernel; empty without /proc. */
  started: string;
}

/** Fields of /proc/<pid>/stat after the command name, beginning with `state` (proc(5)). */
const STATE = 0;
const SESSION = 3;
const START_TIME = 19;

function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command name is in parentheses and may contain blanks.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

const bootID = (): string => {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    return '';
  }
};

const exists = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
};

/** Identity of a running process; undefined: not running. */
export function engineIdentityOf(pid: number): EngineProcess | undefined {
  const stat = statOf(pid);
  if (stat) return stat[STATE] === 'Z' ? undefined : { pid, started: `${bootID()}/${stat[START_TIME]}` };
  return process.platform !== 'linux' && exists(pid) ? { pid, started: '' } : undefined;
}

/** Whether that same process still runs. */
export const isEngineAlive = ({ pid, started }: EngineProcess): boolean => engineIdentityOf(pid)?.started === started;

/** Living processes of a session, including its leader. Empty without /proc. */
export function processesOfSession(session: number): number[] {
  let entries: string[];
  try {
    entries = readdirSync('/proc');
  } catch {
    return [];
  }
  return entries
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const stat = statOf(pid);
      return stat?.[SESSION] === String(session) && stat[STATE] !== 'Z';
    });
}

/**
 * Kills all processes of a session leader of ours. Process groups do not suffice, because the engine puts each plugin
 * into its own. Safe after the leader's death: the kernel does not reuse a PID while it is a session's id.
 */
export function killSession(leader: number): void {
  for (const pid of processesOfSession(leader)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended meanwhile.
    }
  }
  if (process.platform === 'linux') return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // The process has ended meanwhile.
  }
}

import { readdirSync, readFileSync } from 'node:fs';

/** A process, told apart from a later one of the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Boot and start time as the kernel gives them; empty where there is no /proc. */
  started: string;
}

/** Fields of /proc/<pid>/stat after the command's name, from `state` on (proc(5)). */
const STATE = 0;
const SESSION = 3;
const START_TIME = 19;

function statOf(pid: number): string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name stands in parentheses and may hold blanks.
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

/** The identity of a running process; undefined when there is none of that number. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid);
  if (stat) return stat[STATE] === 'Z' ? undefined : { pid, started: `${bootID()}/${stat[START_TIME]}` };
  return process.platform !== 'linux' && exists(pid) ? { pid, started: '' } : undefined;
}

/** Whether that very process still runs. */
export const isAlive = ({ pid, started }: ProcessIdentity): boolean => identityOf(pid)?.started === started;

/** Living processes of a session, its leader included. Where there is no /proc: none. */
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
 * Kills everything that a session leader of ours has started and left. Process groups would not do: the engine puts each
 * provider plugin into a group of its own. The number is safe to use after the leader's death, while it is still in use as a
 * session's the kernel gives it to nobody.
 */
export function killSession(leader: number): void {
  for (const pid of processesOfSession(leader)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone since we looked.
    }
  }
  if (process.platform === 'linux') return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // Likewise.
  }
}

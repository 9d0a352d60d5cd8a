import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A process, told apart from a later one of the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Boot and start time as the kernel gives them; empty where there is no /proc. */
  started: string;
}

/** Tells this boot of the machine from others; empty where there is no /proc. */
export function bootID(): string {
  try {
    return readFileSync(BOOT_ID, 'latin1').trim();
  } catch {
    return '';
  }
}

/** The identity of a running process; undefined when there is none of that number. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const [stat, boot] = await Promise.all([readFile(`/proc/${pid}/stat`, 'latin1'), readFile(BOOT_ID, 'latin1')]);
    // The command's name stands in parentheses and may hold blanks; the start time is the 20th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : { pid, started: `${boot.trim()}/${fields[19]}` };
  } catch {
    return process.platform !== 'linux' && answersToSignals(pid) ? { pid, started: '' } : undefined;
  }
}

/** This process. */
export const ownIdentity = async (): Promise<ProcessIdentity> =>
  (await identityOf(process.pid)) ?? { pid: process.pid, started: '' };

/** Whether that very process still runs. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  if (identity.started === '') return answersToSignals(identity.pid);
  return (await identityOf(identity.pid))?.started === identity.started;
}

function answersToSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

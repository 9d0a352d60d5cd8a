import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A process, told apart from a later one of the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Boot and start time as the kernel gives them, `BOOT/TICKS`; where there is no /proc, the second as ps tells it. */
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

/**
 * The identity of a running process; undefined when there is none of that number.
 * @param boot as bootID() tells; empty: ps is asked for the second in which the process has begun
 */
export async function identityOf(pid: number, boot = bootID()): Promise<ProcessIdentity | undefined> {
  if (boot === '') return begunByPs(pid);
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The command's name stands in parentheses and may hold blanks; the start time is the 20th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : { pid, started: `${boot}/${fields[19]}` };
  } catch {
    return undefined;
  }
}

/** Of a shell script: tells the same of a process. */
export const BEGUN_BY_PS = 'LC_ALL=C TZ=UTC ps -o lstart= -p';

const begunByPs = (pid: number): Promise<ProcessIdentity | undefined> =>
  new Promise((resolve) => {
    execFile('/bin/sh', ['-c', `${BEGUN_BY_PS} ${pid}`], (_, stdout) => {
      const started = stdout.trim().split(/\s+/).join(' ');
      resolve(started ? { pid, started } : undefined);
    });
  });

/** This process. */
export const ownIdentity = async (): Promise<ProcessIdentity> =>
  (await identityOf(process.pid)) ?? { pid: process.pid, started: '' };

/** Whether that very process still runs. One that cannot be told from strangers is none of ours. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  if (identity.started === '') return false;
  const isByPs = !identity.started.includes('/');
  return (await identityOf(identity.pid, isByPs ? '' : bootID()))?.started === identity.started;
}

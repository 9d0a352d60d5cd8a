import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** A process, distinguished from a later one with the same PID. */
export interface ProcessIdentity {
  pid: number;
  /** Boot and start time from the kernel, `BOOT/TICKS`; without /proc, the start second from ps. */
  started: string;
}

/** Identifies this boot of the machine; empty without /proc. */
export function bootID(): string {
  try {
    return readFileSync(BOOT_ID, 'latin1').trim();
  } catch {
    return '';
  }
}

/**
 * Identity of a running process; undefined when none has this PID.
 * @param boot from bootID(); empty: ps is asked for the start second
 */
export async function identityOf(pid: number, boot = bootID()): Promise<ProcessIdentity | undefined> {
  if (boot === '') return begunByPs(pid);
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'latin1');
    // The command's name is in parentheses and may contain blanks; the start time is the 20th field after it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : { pid, started: `${boot}/${fields[19]}` };
  } catch {
    return undefined;
  }
}

/** Shell command that prints the same identity. */
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

/** Whether this exact process still runs. One that cannot be identified counts as foreign. */
export async function isAlive(identity: ProcessIdentity): Promise<boolean> {
  if (identity.started === '') return false;
  const isByPs = !identity.started.includes('/');
  return (await identityOf(identity.pid, isByPs ? '' : bootID()))?.started === identity.started;
}

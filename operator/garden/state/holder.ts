import { readJson, writeAtomic } from '../host/files.ts';
import { isAlive, ownIdentity, type ProcessIdentity } from '../host/process-identity.ts';

/** The command with which the garden ends. */
interface Holder {
  /**
   * A foreground command whose Ctrl-C stops the garden. Absent: the garden runs in the background until it is stopped.
   */
  readonly process?: ProcessIdentity;
}

/**
 * Records that the garden ends with this command, or runs in the background. A foreground command that joins a running
 * garden leaves it to the present holder: the background, or another living command.
 */
export async function takeHold(file: string, isInBackground: boolean, isJoining: boolean): Promise<void> {
  const own = await ownIdentity();
  if (!isInBackground && isJoining && (await isOthers(await readJson<Holder>(file), own))) return;
  const holder: Holder = isInBackground ? {} : { process: own };
  await writeAtomic(file, JSON.stringify(holder));
}

async function isOthers(holder: Holder | undefined, own: ProcessIdentity): Promise<boolean> {
  if (holder === undefined) return false;
  if (holder.process === undefined) return true;
  return holder.process.pid !== own.pid && (await isAlive(holder.process));
}

/** Whether the garden ends with this process. */
export async function isHeldHere(file: string): Promise<boolean> {
  const [holder, own] = await Promise.all([readJson<Holder>(file), ownIdentity()]);
  return holder?.process?.pid === own.pid && holder.process.started === own.started;
}

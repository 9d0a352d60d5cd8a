import { dependencyNotReady } from '../../operator/api/errors.ts';

/** Who holds a lock of a stack, as the engine tells it. */
export interface LockHolder {
  user: string;
  host: string;
  pid: number;
  /** RFC 3339. */
  since: string;
}

/** Holders that a refusal of the engine names (pkg/backend/diy/lock.go: "created by <user>@<host> (pid <pid>) at <time>"). */
export const holdersIn = (text: string): LockHolder[] =>
  [...text.matchAll(/created by (\S*)@(\S+) \(pid (\d+)\) at (\S+)/g)].map(([, user, host, pid, since]) => ({
    user: user!,
    host: host!,
    pid: Number(pid),
    since: since!,
  }));

/** What is known of engines when a lock is judged. */
export interface Witness {
  /** This machine's (or pod's) name. */
  host: string;
  /** Whether an engine of that number, which this runner or an earlier one started here for this very stack, is dead. Undefined: none was. */
  isDeadEngine(pid: number): boolean | undefined;
  /** Whether a host of that name is gone for good. */
  isGoneHost(host: string): boolean;
}

const isDead = (holder: LockHolder, witness: Witness): boolean =>
  holder.host === witness.host ? witness.isDeadEngine(holder.pid) === true : witness.isGoneHost(holder.host);

/**
 * Whether the locks of a stack may be broken. Locks of the engine have no expiry, so a dead engine's has to be broken by
 * somebody; but breaking one takes all of them away, and one that lives then writes the state of another. So: only when
 * every holder is known to be dead. Resolves to the first holder of whom that is not known, or undefined.
 */
export const firstLivingHolder = (holders: readonly LockHolder[], witness: Witness): LockHolder | undefined =>
  holders.find((holder) => !isDead(holder, witness));

/** The error of whoever finds a stack locked by somebody that may be alive. */
export const lockedBy = (stack: string, holder: LockHolder | undefined) =>
  dependencyNotReady(
    holder
      ? `stack ${stack} is locked since ${holder.since} by process ${holder.pid} of ${holder.user} on ${holder.host}; if that is gone, "pulumi cancel" releases it`
      : `stack ${stack} is locked by somebody whom the engine does not name`,
  );

import { dependencyNotReady } from '../../operator/api/errors.ts';

/** Holder of a stack's lock, as reported by the engine. */
interface LockHolder {
  user: string;
  host: string;
  pid: number;
  /** RFC 3339. */
  since: string;
}

/** Lock holders in the engine's refusal (pkg/backend/diy/lock.go: "created by <user>@<host> (pid <pid>) at <time>"). */
export const holdersIn = (text: string): LockHolder[] =>
  [...text.matchAll(/created by (\S*)@(\S+) \(pid (\d+)\) at (\S+)/g)].map(([, user, host, pid, since]) => ({
    user: user!,
    host: host!,
    pid: Number(pid),
    since: since!,
  }));

/** Knowledge about engines for judging a lock. */
interface Witness {
  /** Name of this machine or pod. */
  host: string;
  /**
   * Whether an engine with this PID, started here for this stack by this or an earlier runner, is dead. undefined: none
   * was started.
   */
  isDeadEngine(pid: number): boolean | undefined;
  /** Whether a host of that name is gone for good. */
  isGoneHost(host: string): boolean;
}

const isDead = (holder: LockHolder, witness: Witness): boolean =>
  holder.host === witness.host ? witness.isDeadEngine(holder.pid) === true : witness.isGoneHost(holder.host);

/**
 * First lock holder that is not known to be dead; undefined: all are dead, so the locks may be broken. The engine's
 * locks never expire, so a dead engine's must be broken; but that removes all locks, and a living engine would then
 * overwrite another's state.
 */
export const firstLivingHolder = (holders: readonly LockHolder[], witness: Witness): LockHolder | undefined =>
  holders.find((holder) => !isDead(holder, witness));

/** Error for a stack that a possibly living engine has locked. */
export const lockedBy = (stack: string, holder: LockHolder | undefined) =>
  dependencyNotReady(
    holder
      ? `stack ${stack} is locked since ${holder.since} by process ${holder.pid} of ${holder.user} on ${holder.host}; if that is gone, "pulumi cancel" releases it`
      : `stack ${stack} is locked by somebody whom the engine does not name`,
  );

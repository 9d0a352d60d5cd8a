/** Steps on a managed cluster, one at a time. */
export type StepName = 'check' | 'remove' | 'apply' | 'access' | 'look' | 'destroy';

/** A step that failed. */
export interface Failure {
  /** Inputs of the failed attempt (see attempt). Other inputs are tried at once. */
  readonly of: string;
  /** Consecutive failures. */
  readonly count: number;
  /** Absent: equal inputs would fail again. */
  readonly retryAt: Date | undefined;
}

/** Inputs of the decision about the next step. */
export interface Situation {
  readonly deleting: boolean;
  /** Hash of the wish. Absent: the spec is impossible, so what exists stays. */
  readonly wish: string | undefined;
  /** Whether anything was, or may have been, created in the cloud. */
  readonly exists: boolean;
  /** Hash of the wish that was last applied in the cloud. */
  readonly applied: string | undefined;
  /** Whether the API server's address is known. */
  readonly reachable: boolean;
  /** Version of the credentials; absent: not readable. */
  readonly credentials: string | undefined;
  /** Credentials that the cloud last accepted, for the right account. */
  readonly accepted: string | undefined;
  /** A run was requested although nothing changed. */
  readonly forced: boolean;
  readonly drift: {
    /** Last check. */
    readonly lookedAt: Date | undefined;
    readonly everyMs: number;
    readonly found: boolean;
    readonly mend: boolean;
  };
  readonly access: {
    /** Whether there is a connection to the API server. */
    readonly open: boolean;
    /** When to renew the kubeconfig or check the connection; absent: at once. */
    readonly dueAt: Date | undefined;
  };
  /**
   * Named nodes to remove, and whether the cloud may have been asked already. `waits`: none can go yet. Absent: none.
   */
  readonly removal?: { readonly of: string; readonly begun: boolean } | 'waits';
  readonly failures: ReadonlyMap<StepName, Failure>;
}

type ManagedStep =
  | { readonly do: StepName }
  /** Nothing is, or ever was, in the cloud. */
  | { readonly do: 'release' }
  /** Absent `until`: until a change. */
  | { readonly do: 'wait'; readonly until?: Date };

/** Inputs of a step's attempt: a failure with other inputs does not count. */
export function attempt(step: StepName, { deleting, wish, applied, credentials, removal }: Situation): string {
  // A deletion retries what was hopeless for the cluster: nobody may be left to help.
  if (step === 'check' || step === 'destroy') return deleting ? `delete/${credentials}` : `${credentials}`;
  if (step === 'remove') return `${typeof removal === 'object' ? removal.of : ''}/${credentials}`;
  return step === 'apply' ? `${wish}/${credentials}` : `${applied}/${credentials}`;
}

/** Interval of checking whether nodes can be removed. */
const REMOVAL_LOOK_MS = 5_000;

/**
 * The next step. Pure. A failed step waits for its retry; independent steps run meanwhile, so that a refused pool does
 * not let a kubeconfig expire.
 */
export function decide(situation: Situation, now: Date): ManagedStep {
  const { deleting, wish, exists, credentials, accepted, applied, access, drift, removal } = situation;
  if (deleting && !exists) return { do: 'release' };
  const accepting = credentials !== undefined && accepted === credentials;
  const due: { step: StepName; at: Date | undefined }[] = [];
  if (deleting) {
    // Check the credentials first: with those of another account, everything looks deleted.
    due.push({ step: accepting ? 'destroy' : 'check', at: now });
  } else {
    if (wish !== undefined && !accepting) due.push({ step: 'check', at: now });
    const changed = applied !== wish || situation.forced || (drift.found && drift.mend);
    const named = typeof removal === 'object' ? removal : undefined;
    if (named && accepting) due.push({ step: 'remove', at: now });
    // During a removal any applied size may be wrong.
    if (wish !== undefined && accepting && changed && !named?.begun) due.push({ step: 'apply', at: now });
    if (situation.reachable) due.push({ step: 'access', at: access.open ? access.dueAt : now });
    if (wish !== undefined && accepting && applied === wish && !named) {
      const looked = drift.lookedAt ?? now;
      due.push({ step: 'look', at: new Date(+looked + drift.everyMs) });
    }
  }
  const times = due.map(({ step, at }) => ({ step, at: later(at ?? now, heldUntil(step, situation)) }));
  const next = times.find(({ at }) => at !== 'never' && at <= now);
  if (next) return { do: next.step };
  const dates = [
    ...times.flatMap(({ at }) => (at === 'never' ? [] : [+at])),
    ...(removal === 'waits' && !deleting ? [+now + REMOVAL_LOOK_MS] : []),
  ];
  return { do: 'wait', ...(dates.length > 0 && { until: new Date(Math.min(...dates)) }) };
}

/** Until when a failure blocks a step. */
function heldUntil(step: StepName, situation: Situation): Date | 'never' | undefined {
  const failure = situation.failures.get(step);
  if (!failure || failure.of !== attempt(step, situation)) return undefined;
  return failure.retryAt ?? 'never';
}

const later = (at: Date, held: Date | 'never' | undefined): Date | 'never' =>
  held === 'never' || (held !== undefined && held > at) ? held : at;

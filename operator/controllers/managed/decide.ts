/** What is done to a managed cluster, one at a time. */
export type StepName = 'check' | 'remove' | 'apply' | 'access' | 'look' | 'destroy';

/** A step that failed. */
export interface Failure {
  /** With which inputs the step failed (see attempt). With other inputs it is tried at once. */
  readonly of: string;
  /** How often in a row. */
  readonly count: number;
  /** Absent: with the same inputs it would fail again, so it is not retried. */
  readonly retryAt: Date | undefined;
}

/** All facts on which the next step depends. */
export interface Situation {
  readonly deleting: boolean;
  /** Hash of the wish. Absent: the spec asks for something impossible, so what exists stays as it is. */
  readonly wish: string | undefined;
  /** Whether anything was created in the cloud, or may have been. */
  readonly exists: boolean;
  /** Hash of the wish that was last applied in the cloud. */
  readonly applied: string | undefined;
  /** Whether the cloud has told where the API server is. */
  readonly reachable: boolean;
  /** The credentials in use; absent: none can be read. */
  readonly credentials: string | undefined;
  /** Which credentials the cloud has last accepted, for the right account. */
  readonly accepted: string | undefined;
  /** Somebody asked for a run although nothing changed. */
  readonly forced: boolean;
  readonly drift: {
    /** When it was last looked. */
    readonly lookedAt: Date | undefined;
    readonly everyMs: number;
    readonly found: boolean;
    readonly mend: boolean;
  };
  readonly access: {
    /** Whether there is a connection to the API server. */
    readonly open: boolean;
    /** When the kubeconfig should be renewed, or the connection looked at; absent: at once. */
    readonly dueAt: Date | undefined;
  };
  /**
   * Named nodes that are to be removed: which, and whether the cloud may have been asked already. `waits`: none that can go yet.
   * Absent: none.
   */
  readonly removal?: { readonly of: string; readonly begun: boolean } | 'waits';
  readonly failures: ReadonlyMap<StepName, Failure>;
}

export type Step =
  | { readonly do: StepName }
  /** Nothing is left in the cloud, or ever was there. */
  | { readonly do: 'release' }
  /** Absent `until`: until something changes. */
  | { readonly do: 'wait'; readonly until?: Date };

/** What a step is tried with: failing with it says nothing about trying with something else. */
export function attempt(step: StepName, { deleting, wish, applied, credentials, removal }: Situation): string {
  // A deletion does not inherit what was hopeless for the cluster: it would wait for ever for somebody who is no longer there.
  if (step === 'check' || step === 'destroy') return deleting ? `delete/${credentials}` : `${credentials}`;
  if (step === 'remove') return `${typeof removal === 'object' ? removal.of : ''}/${credentials}`;
  return step === 'apply' ? `${wish}/${credentials}` : `${applied}/${credentials}`;
}

/** How soon it is looked again whether nodes can go. */
const REMOVAL_LOOK_MS = 5_000;

/**
 * The next step. Pure. A failed step waits until its retry is due; steps that do not depend on it run meanwhile. A cloud that refuses a
 * larger pool is no reason to let a kubeconfig expire.
 */
export function decide(situation: Situation, now: Date): Step {
  const { deleting, wish, exists, credentials, accepted, applied, access, drift, removal } = situation;
  if (deleting && !exists) return { do: 'release' };
  const accepting = credentials !== undefined && accepted === credentials;
  const due: { step: StepName; at: Date | undefined }[] = [];
  if (deleting) {
    // Always check the credentials first: with those of another account, everything looks deleted already.
    due.push({ step: accepting ? 'destroy' : 'check', at: now });
  } else {
    if (wish !== undefined && !accepting) due.push({ step: 'check', at: now });
    const changed = applied !== wish || situation.forced || (drift.found && drift.mend);
    const named = typeof removal === 'object' ? removal : undefined;
    if (named && accepting) due.push({ step: 'remove', at: now });
    // Any size that is applied may be wrong until it is known what has gone.
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

/** Until when a failure holds a step up. */
function heldUntil(step: StepName, situation: Situation): Date | 'never' | undefined {
  const failure = situation.failures.get(step);
  if (!failure || failure.of !== attempt(step, situation)) return undefined;
  return failure.retryAt ?? 'never';
}

const later = (at: Date, held: Date | 'never' | undefined): Date | 'never' =>
  held === 'never' || (held !== undefined && held > at) ? held : at;

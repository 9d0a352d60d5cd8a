import { rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import type { KubeconfigConnection } from '../../clusters/kubeconfig-cluster.ts';
import { backoff } from '../backoff.ts';
import { attempt, type Failure, type Situation, type StepName } from './decide.ts';
import type { ManagedWish } from './facts.ts';
import { wishSignature } from './wish.ts';

/** A step that failed, and what is said about it. */
interface KnownFailure extends Failure {
  readonly error: LastError;
}

/** What the operator remembers of one managed cluster between steps. All of it can be lost: it is only ever a shortcut. */
export interface ManagedState {
  wish: ManagedWish;
  /** Of the wish: see wishSignature. */
  signature: string;
  /** The step that runs, and the hash of the wish that it was begun for. */
  running: { readonly step: StepName; readonly wish: string | undefined; readonly abort: AbortController } | undefined;
  operation: LastOperation | undefined;
  readonly failures: Map<StepName, KnownFailure>;
  /** Version of the credentials that the cloud accepted, and whose they are. */
  accepted: { readonly credentials: string; readonly account: string } | undefined;
  forced: boolean;
  /** Resource version of the cluster whose request for an operation was taken up. */
  acceptedRequest: string | undefined;
  /** Whether there was a look at everything since the start. */
  seen: boolean;
  gone: boolean;
  connection: KubeconfigConnection | undefined;
  access: { readonly ok: boolean; readonly message: string } | undefined;
  /** When access is looked at again, or renewed. */
  accessDueAt: Date | undefined;
}

/** Nothing is known yet but what is wished. */
export const newState = (wish: ManagedWish): ManagedState => ({
  wish,
  signature: wishSignature(wish),
  running: undefined,
  operation: wish.cluster.status?.lastOperation,
  failures: new Map(),
  accepted: undefined,
  forced: false,
  acceptedRequest: undefined,
  seen: false,
  gone: false,
  connection: undefined,
  access: undefined,
  accessDueAt: undefined,
});

/** What a failure of a step means for the next try. Pure but for its arguments. */
export function failureOf(
  step: StepName,
  situation: Situation,
  error: unknown,
  before: KnownFailure | undefined,
  now: Date,
  random: number,
): KnownFailure {
  const of = attempt(step, situation);
  const code = error instanceof CoppiceError ? error.code : undefined;
  const count = before?.of === of ? before.count + 1 : 1;
  const wait = backoff(code, count, random, situation.deleting);
  const description = errorText(error);
  const same = before?.error.description === description;
  return {
    of,
    count,
    retryAt: wait === undefined ? undefined : new Date(+now + wait),
    // The same failure again is no news: its time stays, or each try would be a write.
    error: same ? before.error : { taskID: step, description, codes: code ? [code] : [], lastUpdateTime: rfc3339(now) },
  };
}

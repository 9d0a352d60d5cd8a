import { rfc3339 } from '../../api/conditions.ts';
import { CoppiceError, errorText } from '../../api/errors.ts';
import type { LastError, LastOperation } from '../../api/meta.ts';
import type { KubeconfigConnection } from '../../clusters/kubeconfig-cluster.ts';
import { retryDelayMs } from '../backoff.ts';
import { attempt, type Failure, type Situation, type StepName } from './decide.ts';
import type { ManagedWish } from './facts.ts';
import { wishSignature } from './wish.ts';

/** A failed step with its error for the status. */
interface KnownFailure extends Failure {
  readonly error: LastError;
}

/** Memory about a managed cluster between steps. All of it can be lost. */
export interface ManagedState {
  wish: ManagedWish;
  /** See wishSignature. */
  signature: string;
  /** The running step, with the hash of its wish. */
  running: { readonly step: StepName; readonly wish: string | undefined; readonly abort: AbortController } | undefined;
  operation: LastOperation | undefined;
  readonly failures: Map<StepName, KnownFailure>;
  /** Version and account of the credentials that the cloud accepted. */
  accepted: { readonly credentials: string; readonly account: string } | undefined;
  forced: boolean;
  /** Resource version of the cluster whose operation request was accepted. */
  acceptedRequest: string | undefined;
  /** Whether everything was observed since the start. */
  seen: boolean;
  gone: boolean;
  connection: KubeconfigConnection | undefined;
  access: { readonly ok: boolean; readonly message: string } | undefined;
  /** Next check or renewal of access. */
  accessDueAt: Date | undefined;
}

/** Initial state: only the wish is known. */
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

/** Consequence of a step's failure for the next try. Pure. */
export function managedFailureOf(
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
  const wait = retryDelayMs(code, count, random, situation.deleting);
  const description = errorText(error);
  const same = before?.error.description === description;
  return {
    of,
    count,
    retryAt: wait === undefined ? undefined : new Date(+now + wait),
    // A repeated failure keeps its time, or each try would cause a write.
    error: same ? before.error : { taskID: step, description, codes: code ? [code] : [], lastUpdateTime: rfc3339(now) },
  };
}

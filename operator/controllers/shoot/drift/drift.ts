import type { Provider } from '../../../../providers/contract.ts';
import { findCondition } from '../../../api/conditions.ts';
import { parseDuration } from '../../../api/duration.ts';
import { CoppiceError, errorText } from '../../../api/errors.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { keyOf } from '../../../kube/resources.ts';
import { conditionBefore, type Said, say } from '../../conditions.ts';
import { DRIFTED, driftedCondition } from '../../drifted.ts';
import { nextMoment } from '../../spread.ts';
import type { Operation, Unmended } from '../operation.ts';
import { asksFor, takeRequest } from '../operation-request.ts';
import type { ShootState } from '../state.ts';
import type { DriftState } from './drift-state.ts';

/** One drift check at a time: each takes an engine run per layer, and runs that somebody waits for take precedence. */
export const DRIFT_LOOKS = { total: 1, perGroup: 1 } as const;

/** Default interval of drift checks, milliseconds; as for managed clusters. */
const LOOK_EVERY_MS = 6 * 3600_000;

/** Timeout of a drift check, milliseconds: others wait meanwhile. */
const PATIENCE_MS = 10 * 60_000;

/** Back-off after the first failed check, milliseconds; doubles each time. */
const FIRST_BACKOFF_MS = 5 * 60_000;

const TOO_DANGEROUS =
  'Change it back in the cloud yourself: the operator might terminate control plane machines or change the API server address while doing so';

/** Advice about new drift. */
const toMend = ({ metadata, spec }: Shoot): string =>
  spec.drift?.policy === 'Mend'
    ? 'It is being changed back, as spec.drift.policy says'
    : `Set spec.drift.policy to Mend, or annotate Shoot ${metadata.name} with gardener.cloud/operation=reconcile to mend it once`;

/** Advice about drift that was not reverted; undefined: none. */
function adviceOn(unmended: readonly Unmended[]): string | undefined {
  const because = unmended.find((part) => part.because !== undefined)?.because;
  if (because !== undefined)
    return `Not all of it could be changed back: ${because}. It is tried again after the next look, or by annotation gardener.cloud/operation=reconcile`;
  return unmended.some(({ changes }) => changes.length > 0) ? TOO_DANGEROUS : undefined;
}

/**
 * Starts a drift check if due, without awaiting it. The result is stored in state.drift, and the shoot is requeued
 * then.
 */
export function lookForDrift(op: Operation): void {
  const { provider, shoot, state, deps } = op;
  if (!provider.drift) return;
  const { profile } = op.context();
  const every = parseDuration(profile.spec.drift?.interval ?? '') || LOOK_EVERY_MS;
  const next = () => nextMoment(deps.now(), every, shoot.metadata.uid ?? '');
  const drift = state.drift ?? { abort: new AbortController(), failures: 0, lookAt: next() };
  state.drift = drift;
  if (drift.running) return;
  // The interval may have been shortened.
  if (next() < drift.lookAt) drift.lookAt = next();
  if (deps.now() < drift.lookAt) return;
  drift.running = look(op, drift, next).finally(() => {
    drift.running = undefined;
    if (!drift.abort.signal.aborted) deps.again(shoot);
  });
}

/** Whether to revert drift: on request, or by policy after a check found some. Pure. */
export function wantsMending(
  provider: Pick<Provider, 'drift'>,
  { metadata, spec }: Shoot,
  { drift }: Pick<ShootState, 'drift'>,
): boolean {
  if (!provider.drift || metadata.deletionTimestamp) return false;
  const isFound = (drift?.found?.length ?? 0) > 0 && drift?.advice === undefined;
  return asksFor({ metadata }, 'reconcile') || (isFound && spec.drift?.policy === 'Mend');
}

/** Records a repair: no drift is left except what was refused, which is not retried before the next check. */
export async function noteMended(op: Operation): Promise<void> {
  const { unmended, shoot, signal, state, deps } = op;
  const parts = [...unmended.values()];
  const advice = adviceOn(parts);
  // Parts that could not be checked keep their last result.
  const found = parts.some(({ because }) => because !== undefined)
    ? state.drift?.found
    : parts.flatMap(({ changes }) => changes);
  if (state.drift) Object.assign(state.drift, { found, advice });
  if (advice === undefined)
    deps.recordEvent(
      shoot,
      'Normal',
      'Mended',
      'what was made in the cloud was compared with it, and nobody else has changed it',
    );
  else
    deps.recordEvent(
      shoot,
      'Warning',
      'NotMended',
      found?.length ? (driftedCondition(found, advice).message ?? '') : advice,
    );
  if (asksFor(shoot, 'reconcile')) await takeRequest(op, signal);
}

/** Aborts a running drift check, to be repeated later. Does not wait: the runner serialises work on a stack. */
export function endDriftLook(state: ShootState): void {
  const { drift } = state;
  if (!drift?.running) return;
  drift.abort.abort(new Error('the cluster is being changed'));
  const { running: _, ...rest } = drift;
  state.drift = { ...rest, abort: new AbortController() };
}

async function look(op: Operation, drift: DriftState, next: () => Date): Promise<void> {
  const { provider, shoot, deps } = op;
  const ending = drift.abort.signal;
  try {
    const found = await inTurn(op, ending, (signal) => {
      const context = op.context();
      // This check needs its own account: the operation that started it may have ended.
      return provider.drift!({ ...context, cloud: () => deps.account(shoot, context.profile, signal) });
    });
    if (ending.aborted) return;
    drift.failures = 0;
    delete drift.problem;
    drift.lookAt = next();
    if (found) Object.assign(drift, { found, advice: undefined });
    else drift.lookAt = sooner(drift.lookAt, +deps.now() + FIRST_BACKOFF_MS);
    if (found && found.length > 0) tell(op, driftedCondition(found, toMend(shoot)).message ?? '');
  } catch (error) {
    if (ending.aborted) return;
    const message = `what others changed in the cloud could not be looked at: ${errorText(error)}`;
    drift.problem = { message, codes: error instanceof CoppiceError ? [error.code] : [] };
    drift.lookAt = sooner(next(), +deps.now() + FIRST_BACKOFF_MS * 2 ** Math.min(drift.failures++, 10));
    deps.log.warn({ err: error, shoot: keyOf(shoot) }, 'no look for drift');
  }
}

async function inTurn<Result>(
  op: Operation,
  ending: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const group = op.shoot.metadata.namespace ?? '';
  const done = await op.deps.driftTurns.acquire({ tenant: group, group, exclusive: keyOf(op.shoot) }, ending);
  try {
    return await work(AbortSignal.any([ending, AbortSignal.timeout(PATIENCE_MS)]));
  } finally {
    done();
  }
}

/** Records an Event once per drift, also across restarts. */
function tell({ shoot, deps }: Operation, message: string): void {
  const now = deps.shoots.get(keyOf(shoot)) ?? shoot;
  if (findCondition(now.status?.conditions, DRIFTED)?.message === message) return;
  deps.recordEvent(shoot, 'Warning', DRIFTED, message);
}

const sooner = (moment: Date, ms: number): Date => new Date(Math.min(+moment, ms));

/** Condition Drifted; undefined: not checked yet, or not applicable. */
export function driftCondition(
  { provider, state: { drift } }: Pick<Operation, 'provider' | 'state'>,
  shoot: Shoot,
): Said<'Shoot'> | undefined {
  if (!provider.drift) return undefined;
  if (drift?.found) return driftedCondition(drift.found, drift.advice ?? toMend(shoot));
  // Not checked since the restart: keep the last known condition.
  const before = conditionBefore('Shoot', shoot.status?.conditions, DRIFTED);
  if (before && before.status !== 'Unknown') return before;
  return drift?.problem ? say(DRIFTED, 'Unknown', 'NotLookedAt', drift.problem.message, drift.problem.codes) : before;
}

import type { Provider } from '../../../../providers/contract.ts';
import { findCondition } from '../../../api/conditions.ts';
import { parseDuration } from '../../../api/duration.ts';
import { CoppiceError, errorText } from '../../../api/errors.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { keyOf } from '../../../kube/resources.ts';
import { conditionBefore, type Said, say } from '../../conditions.ts';
import { DRIFTED, drifted } from '../../drifted.ts';
import { nextMoment } from '../../spread.ts';
import type { Operation, Unmended } from '../operation.ts';
import { asksFor, takeRequest } from '../operation-request.ts';
import type { ShootState } from '../state.ts';
import type { DriftState } from './drift-state.ts';

/** One at a time in all: a look takes a run of the engine for each layer, and the runs that somebody waits for come first. */
export const DRIFT_LOOKS = { total: 1, perGroup: 1 } as const;

/** How often is looked where the profile does not say, milliseconds; as with managed clusters. */
const LOOK_EVERY_MS = 6 * 3600_000;

/** A look must end within this time, milliseconds: nobody else has a turn meanwhile. */
const PATIENCE_MS = 10 * 60_000;

/** When to try again after a first look in vain, milliseconds; each further one doubles it. */
const FIRST_BACKOFF_MS = 5 * 60_000;

const TOO_DANGEROUS =
  'Change it back in the cloud yourself: the operator might terminate control plane machines or change the API server address while doing so';

/** What to do about what was found just now. */
const toMend = ({ metadata, spec }: Shoot): string =>
  spec.drift?.policy === 'Mend'
    ? 'It is being changed back, as spec.drift.policy says'
    : `Set spec.drift.policy to Mend, or annotate Shoot ${metadata.name} with gardener.cloud/operation=reconcile to mend it once`;

/** What to do about what mending did not change back; undefined: nothing. */
function adviceOn(unmended: readonly Unmended[]): string | undefined {
  const because = unmended.find((part) => part.because !== undefined)?.because;
  if (because !== undefined)
    return `Not all of it could be changed back: ${because}. It is tried again after the next look, or by annotation gardener.cloud/operation=reconcile`;
  return unmended.some(({ changes }) => changes.length > 0) ? TOO_DANGEROUS : undefined;
}

/**
 * Begins to look at what others changed in the account, if it is time to; does not wait for it. What was found is in state.drift, and the
 * shoot is queued again when that is known.
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
  // Somebody may want it more often by now.
  if (next() < drift.lookAt) drift.lookAt = next();
  if (deps.now() < drift.lookAt) return;
  drift.running = look(op, drift, next).finally(() => {
    drift.running = undefined;
    if (!drift.abort.signal.aborted) deps.again(shoot);
  });
}

/** Whether what others changed is to be changed back: because somebody asks for it, or of what the last look has found. Pure. */
export function wantsMending(
  provider: Pick<Provider, 'drift'>,
  { metadata, spec }: Shoot,
  { drift }: Pick<ShootState, 'drift'>,
): boolean {
  if (!provider.drift || metadata.deletionTimestamp) return false;
  const isFound = (drift?.found?.length ?? 0) > 0 && drift?.advice === undefined;
  return asksFor({ metadata }, 'reconcile') || (isFound && spec.drift?.policy === 'Mend');
}

/** All is as it was made, but for what was left. What cannot be changed back is found again at the next look, and not tried before. */
export async function noteMended(op: Operation): Promise<void> {
  const { unmended, shoot, signal, state, deps } = op;
  const parts = [...unmended.values()];
  const advice = adviceOn(parts);
  // What could not be looked at is as it was last found.
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
  else deps.recordEvent(shoot, 'Warning', 'NotMended', found?.length ? (drifted(found, advice).message ?? '') : advice);
  if (asksFor(shoot, 'reconcile')) await takeRequest(op, signal);
}

/** Ends a look that is under way, which is then made up for. Does not wait: who works on the same stacks next does, in the runner. */
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
      // The account of this look: the operation that began it may be over before.
      return provider.drift!({ ...context, cloud: () => deps.account(shoot, context.profile, signal) });
    });
    if (ending.aborted) return;
    drift.failures = 0;
    delete drift.problem;
    drift.lookAt = next();
    if (found) Object.assign(drift, { found, advice: undefined });
    else drift.lookAt = sooner(drift.lookAt, +deps.now() + FIRST_BACKOFF_MS);
    if (found && found.length > 0) tell(op, drifted(found, toMend(shoot)).message ?? '');
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

/** Once for the same differences, also after a restart. */
function tell({ shoot, deps }: Operation, message: string): void {
  const now = deps.shoots.get(keyOf(shoot)) ?? shoot;
  if (findCondition(now.status?.conditions, DRIFTED)?.message === message) return;
  deps.recordEvent(shoot, 'Warning', DRIFTED, message);
}

const sooner = (moment: Date, ms: number): Date => new Date(Math.min(+moment, ms));

/** Condition Drifted; undefined: nobody has looked yet, or there is nothing to be looked at. */
export function driftCondition(
  { provider, state: { drift } }: Pick<Operation, 'provider' | 'state'>,
  shoot: Shoot,
): Said<'Shoot'> | undefined {
  if (!provider.drift) return undefined;
  if (drift?.found) return drifted(drift.found, drift.advice ?? toMend(shoot));
  // Not looked at yet since the operator started: the last word stands, if it was one.
  const before = conditionBefore('Shoot', shoot.status?.conditions, DRIFTED);
  if (before && before.status !== 'Unknown') return before;
  return drift?.problem ? say(DRIFTED, 'Unknown', 'NotLookedAt', drift.problem.message, drift.problem.codes) : before;
}

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { Change } from '../cloud.ts';
import type { RecentPlans } from './recent-plans.ts';
import type { ApplyRequest, ApplyResult, FoundResource } from './request.ts';
import type { RunReport } from './run-events.ts';
import {
  addFound,
  missingFrom,
  neverRead,
  type PlannedResource,
  pendingCreates,
  settlePending,
  wantedOf,
} from './settlement.ts';
import { RunFailure, type StackSession } from './stack-session.ts';
import { hasSecret, isInCloud, outputsOf, pendingOf, type StackState, stackResourcesOf } from './stack-state.ts';

/** Parallel look-ups: they count against the account's request rate. */
const LOOK_UPS = 4;
/** State of a new stack. */
const EMPTY: StackState = { version: 3, deployment: null };

/** State of the stack. Creates the stack if the backend lacks it, from the copy if there is one. */
async function ensureState(session: StackSession): Promise<StackState> {
  let state = await session.readState();
  if (!state) {
    await session.create();
    state = EMPTY;
  }
  if (stackResourcesOf(state).length > 0 || pendingOf(state).length > 0) return state;
  const copy = await session.readCopy();
  if (!copy) return state;
  await session.writeState(copy);
  session.log.warn({ stack: session.stackName }, 'the state backend has lost a state; it comes from its copy');
  // The copy may be older than the cloud.
  await session.run('refresh');
  return (await session.readState())!;
}

/**
 * State of the stack after settling a killed run: each pending create is either a resource of the stack or did not
 * happen.
 */
async function openState(session: StackSession): Promise<StackState> {
  const state = await ensureState(session);
  if (pendingOf(state).length === 0) return withoutUnread(session, state);
  const found = await lookUp(session, pendingCreates(state));
  const settled = await rewrite(session, state, (now) => settlePending(now, found));
  session.log.warn(
    { stack: session.stackName, pending: pendingOf(state).length, found: [...found.keys()] },
    'an earlier run was killed; what it had begun is settled',
  );
  return withoutUnread(session, settled);
}

/**
 * Refreshes resources that an interrupted run imported without reading: incomplete ones can be neither changed nor
 * deleted.
 */
async function withoutUnread(session: StackSession, state: StackState): Promise<StackState> {
  const targets = neverRead(state);
  if (targets.length === 0) return state;
  await session.run('refresh', { targets });
  return (await session.readState())!;
}

/**
 * Imports existing resources among those that a run wanted to create, made by a run whose answer or state was lost.
 * Resolves with the new state, or undefined when none was found.
 */
async function importExisting(
  session: StackSession,
  state: StackState,
  planned: readonly PlannedResource[],
): Promise<StackState | undefined> {
  const found = await lookUp(session, missingFrom(state, planned));
  if (found.size === 0) return undefined;
  const imported = await rewrite(session, state, (now) => addFound(now, planned, found, randomUUID));
  session.log.warn(
    { stack: session.stackName, found: [...found.keys()] },
    'resources exist that the state did not know; they are imported',
  );
  return imported;
}

async function rewrite(
  session: StackSession,
  base: StackState,
  change: (state: StackState) => { state: StackState; suspects: string[] },
): Promise<StackState> {
  const now = (await session.readState()) ?? EMPTY;
  // The write takes the lock, but the decision did not: another operator's run may have ended since.
  if (!isDeepStrictEqual([stackResourcesOf(now), pendingOf(now)], [stackResourcesOf(base), pendingOf(base)])) {
    throw dependencyNotReady(`the state of stack ${session.stackName} was changed by another run meanwhile`);
  }
  const { state, suspects } = change(now);
  await session.writeState(state);
  const there = new Set(stackResourcesOf(state).map(({ urn }) => urn));
  const targets = suspects.filter((urn) => there.has(urn));
  if (targets.length > 0) await session.run('refresh', { targets });
  return (await session.readState())!;
}

async function lookUp(
  session: StackSession,
  resources: readonly PlannedResource[],
): Promise<Map<string, FoundResource>> {
  const { findExisting: look, signal, onProgress } = session.request;
  const found = new Map<string, FoundResource>();
  const left = [...resources];
  if (left.length > 0) onProgress?.({ description: 'looking for what exists already', done: 0 });
  const worker = async () => {
    for (let next = left.shift(); next; next = left.shift()) {
      signal.throwIfAborted();
      const there = await look(wantedOf(next), signal);
      if (there) found.set(next.urn, there);
    }
  };
  await Promise.all(Array.from({ length: LOOK_UPS }, worker));
  return found;
}

/** The error for the operation's caller. */
const unwrapped = (error: unknown): unknown => (error instanceof RunFailure ? error.failure : error);

const changesOf = (record: RunReport): Change[] => [...record.changes.values()];

const cloudResources = (state: StackState): number => stackResourcesOf(state).filter(isInCloud).length;

/** Changes that a run would make. Changes nothing. */
export async function preview(session: StackSession, plans: RecentPlans): Promise<Change[]> {
  try {
    const { state, plan, isWhole } = await planned(session, {});
    if (isWhole) plans.keep(session.request, state, plan);
    return changesOf(plan);
  } catch (error) {
    throw unwrapped(error);
  }
}

/** Like preview, including drift. */
export async function previewDrift(session: StackSession): Promise<Change[]> {
  try {
    return changesOf((await planned(session, { refresh: true })).plan);
  } catch (error) {
    throw unwrapped(error);
  }
}

/** Plan of a run; with adoption, after the state knows the cluster. `isWhole`: based on the unchanged state. */
async function planned(session: StackSession, options: { refresh?: boolean }) {
  // At most this creates an empty stack.
  const state = await ensureState(session);
  const plan = await session.run('preview', options);
  const imported = session.request.importFirst && (await importExisting(session, state, plan.planned));
  return imported
    ? { state, plan: await session.run('preview', options), isWhole: false }
    : { state, plan, isWhole: true };
}

/** Outputs of the last apply; undefined when there was none. */
export async function readOutputs(session: StackSession): Promise<Record<string, unknown> | undefined> {
  const there = await session.readState();
  const isLost = (!there || stackResourcesOf(there).length === 0) && (await session.readCopy()) !== undefined;
  const state = isLost ? await ensureState(session) : there;
  // A program that never finished has no outputs.
  return state && Object.keys(outputsOf(state)).length > 0 ? plainOutputs(session, state) : undefined;
}

/**
 * Applies the program. Looks for existing resources before creating any, so that a lost answer does not cause a
 * duplicate.
 */
export async function apply(
  session: StackSession,
  { refresh, allows }: Pick<ApplyRequest, 'refresh' | 'allows'>,
  plans: RecentPlans,
): Promise<ApplyResult> {
  try {
    const state = await openState(session);
    const shown = refresh ? undefined : plans.take(session.request, state);
    const plan = shown ?? (await session.run('preview', { refresh }));
    if (allows && !allows(changesOf(plan))) {
      return { outputs: await plainOutputs(session, state), changes: [], refused: changesOf(plan) };
    }
    const imported = await importExisting(session, state, plan.planned);
    if (!imported && isUpToDate(plan, state)) {
      await session.keep(state);
      return { outputs: await plainOutputs(session, state), changes: [] };
    }
    const record = await upImporting(session, { refresh, total: plan.done.size });
    const after = await session.readAndKeepState();
    return { outputs: await plainOutputs(session, after), changes: changesOf(record) };
  } catch (error) {
    throw unwrapped(error);
  }
}

/** Whether running the program would change neither the cloud nor its outputs. */
const isUpToDate = (plan: RunReport, state: StackState): boolean =>
  !plan.isChanging && isDeepStrictEqual(plan.outputs, outputsOf(state));

/**
 * A failed create may have succeeded without an answer, or fail because an earlier one succeeded: imports such
 * resources and retries once.
 */
async function upImporting(
  session: StackSession,
  options: { refresh?: boolean | undefined; total: number },
): Promise<RunReport> {
  try {
    return await session.run('up', options);
  } catch (error) {
    const state = await keepWhatWasMade(session);
    if (!(error instanceof RunFailure) || !state) throw error;
    const failed = error.record.failed.map(({ resource }) => resource);
    if (!(await importExisting(session, state, failed))) throw error;
  }
  try {
    return await session.run('up', options);
  } catch (error) {
    await keepWhatWasMade(session);
    throw error;
  }
}

/** Deletes all resources of the stack, including pending ones, and the stack. */
export async function destroy(session: StackSession): Promise<void> {
  try {
    const state = await openState(session);
    const known = await importForDestruction(session, state);
    if (cloudResources(known) > 0) {
      try {
        await session.run('destroy', { total: cloudResources(known) });
      } catch (error) {
        await keepWhatWasMade(session);
        throw error;
      }
    }
    await session.remove();
  } catch (error) {
    throw unwrapped(error);
  }
}

async function importForDestruction(session: StackSession, state: StackState): Promise<StackState> {
  let plan: RunReport;
  try {
    plan = await session.run('preview');
  } catch (error) {
    // A program whose inputs are unavailable must not block the deletion of resources in the state.
    if (!(error instanceof RunFailure) || cloudResources(state) === 0) throw error;
    session.log.warn(
      { stack: session.stackName, reason: error.message },
      'destroying without looking for unknown resources',
    );
    return state;
  }
  return (await importExisting(session, state, plan.planned)) ?? state;
}

/** Outputs with secrets in plain text, which the engine must decrypt. */
const plainOutputs = async (session: StackSession, state: StackState): Promise<Record<string, unknown>> =>
  hasSecret(outputsOf(state)) ? session.readOutputs() : outputsOf(state);

/** Saves a copy of the state so far; its failure must not hide the run's error. */
async function keepWhatWasMade(session: StackSession): Promise<StackState | undefined> {
  if (session.isSuspect) return undefined;
  try {
    return await session.readAndKeepState();
  } catch {
    return undefined;
  }
}

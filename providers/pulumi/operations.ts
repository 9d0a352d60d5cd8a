import { isDeepStrictEqual } from 'node:util';
import type { Change } from '../cloud.ts';
import { ensureState, importExisting, openState } from './importing.ts';
import type { RecentPlans } from './recent-plans.ts';
import type { ApplyRequest, ApplyResult } from './request.ts';
import type { RunReport } from './run-events.ts';
import { RunFailure, type StackSession } from './stack-session.ts';
import { hasSecret, isInCloud, outputsOf, type StackState, stackResourcesOf } from './stack-state.ts';

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

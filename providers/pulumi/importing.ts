import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { dependencyNotReady } from '../../operator/api/errors.ts';
import type { FoundResource } from './request.ts';
import {
  addFound,
  missingFrom,
  neverRead,
  type PlannedResource,
  pendingCreates,
  settlePending,
  wantedOf,
} from './settlement.ts';
import type { StackSession } from './stack-session.ts';
import { pendingOf, type StackState, stackResourcesOf } from './stack-state.ts';

/** Parallel look-ups: they count against the account's request rate. */
const LOOK_UPS = 4;
/** State of a new stack. */
const EMPTY: StackState = { version: 3, deployment: null };

/** State of the stack. Creates the stack if the backend lacks it, from the copy if there is one. */
export async function ensureState(session: StackSession): Promise<StackState> {
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
export async function openState(session: StackSession): Promise<StackState> {
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
export async function importExisting(
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

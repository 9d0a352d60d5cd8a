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
import { pendingOf, resourcesOf, type StackState } from './stack-state.ts';

/** Look-ups at one time: they count against the account's request rate too. */
const LOOK_UPS = 4;
/** A stack that was made just now. */
const EMPTY: StackState = { version: 3, deployment: null };

/** The stack's state. Makes the stack where the backend does not have it, with the state that there is a copy of. */
export async function ensureState(session: StackSession): Promise<StackState> {
  let state = await session.readState();
  if (!state) {
    await session.create();
    state = EMPTY;
  }
  if (resourcesOf(state).length > 0 || pendingOf(state).length > 0) return state;
  const copy = await session.readCopy();
  if (!copy) return state;
  await session.writeState(copy);
  session.log.warn({ stack: session.stackName }, 'the state backend has lost a state; it comes from its copy');
  // The copy may be older than what the cloud has.
  await session.run('refresh');
  return (await session.readState())!;
}

/** The stack's state, fit to be built upon: what a killed run had begun is either a resource of the stack or did not happen. */
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
 * Reads from the cloud what a run took into the state and did not come to read: it is neither whole enough to be changed nor to be taken
 * away.
 */
async function withoutUnread(session: StackSession, state: StackState): Promise<StackState> {
  const targets = neverRead(state);
  if (targets.length === 0) return state;
  await session.run('refresh', { targets });
  return (await session.readState())!;
}

/**
 * Of what a run wanted to create: takes into the state what exists already, made by a run whose answer or state was lost.
 * Resolves to the new state, or undefined when nothing was found.
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
  // Writing locks the stack, but deciding what to write did not: a run of another operator may have ended since.
  if (!isDeepStrictEqual([resourcesOf(now), pendingOf(now)], [resourcesOf(base), pendingOf(base)])) {
    throw dependencyNotReady(`the state of stack ${session.stackName} was changed by another run meanwhile`);
  }
  const { state, suspects } = change(now);
  await session.writeState(state);
  const there = new Set(resourcesOf(state).map(({ urn }) => urn));
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

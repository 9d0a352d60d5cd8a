import type { Credentials } from '../../accounts/credentials.ts';
import { parseDuration } from '../../api/duration.ts';
import type { LastOperation } from '../../api/meta.ts';
import { spreadInterval } from '../spread.ts';
import type { Situation } from './decide.ts';
import type { ManagedWish } from './facts.ts';
import type { ManagedReceipt, Removing } from './receipt.ts';
import { removalKey } from './removal.ts';
import type { ManagedState } from './state.ts';
import { isToBeRemoved, wasBegun, wishHash } from './wish.ts';

/** Default interval of drift checks. */
const LOOK_EVERY_MS = 6 * 3600_000;

/** Inputs of the next step, from the applicable wish, memory and receipt. */
export function situationOf(
  state: ManagedState,
  wish: ManagedWish,
  receipt: ManagedReceipt | undefined,
  credentials: Credentials | Error,
  removal: Removing | 'waits' | undefined,
): Situation {
  const { cluster, profile } = wish;
  const every = parseDuration(profile?.spec.drift?.interval ?? '') ?? LOOK_EVERY_MS;
  return {
    deleting: isToBeRemoved(wish),
    wish: wishHash(wish),
    exists: !state.gone && (receipt !== undefined || wasBegun(cluster)),
    applied: receipt?.applied,
    reachable: receipt?.outputs !== undefined,
    credentials: credentials instanceof Error ? undefined : credentials.version,
    accepted: state.accepted?.credentials,
    // An unconfirmed endpoint requires a run.
    forced: state.forced || receipt?.unconfirmed === true || receipt?.left !== undefined,
    drift: {
      lookedAt: receipt?.lookedAt === undefined ? undefined : new Date(receipt.lookedAt),
      everyMs: spreadInterval(every, cluster.metadata.uid ?? ''),
      found: (receipt?.drift?.length ?? 0) > 0,
      mend: cluster.spec.drift?.policy === 'Mend',
    },
    access: { open: state.connection !== undefined, dueAt: state.accessDueAt },
    ...(removal && {
      removal: removal === 'waits' ? removal : { of: removalKey(removal), begun: receipt?.removing !== undefined },
    }),
    failures: state.failures,
  };
}

/** Drops errors of steps that are no longer needed. @returns whether there were any */
export function settleFailures(state: ManagedState, situation: Situation): boolean {
  const { wish, applied, forced, accepted, credentials } = situation;
  const before = state.failures.size;
  if (wish !== undefined && applied === wish && !forced) state.failures.delete('apply');
  if (credentials !== undefined && accepted === credentials) state.failures.delete('check');
  if (typeof situation.removal !== 'object') state.failures.delete('remove');
  return state.failures.size < before;
}

/** Type of the operation in the status. */
export function operationType({ deleting, applied }: Situation): LastOperation['type'] {
  if (deleting) return 'Delete';
  return applied === undefined ? 'Create' : 'Reconcile';
}

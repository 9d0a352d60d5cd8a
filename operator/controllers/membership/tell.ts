import { CoppiceError, errorText } from '../../api/errors.ts';
import type { Membership } from '../../api/membership.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { conditionsBefore, type Said } from '../conditions.ts';
import { explainWebhook } from '../problematic-webhook.ts';
import { writeStatus } from '../status-writer.ts';
import type { MembershipDependencies } from './dependencies.ts';
import type { MembershipReceipt } from './receipt.ts';
import { membershipStatusOf, type Told } from './status.ts';

/** Writes a membership's status if changed. @returns the updated membership */
export async function tellMembership(
  deps: MembershipDependencies,
  membership: Membership,
  told: Told,
  signal: AbortSignal,
  receipt?: MembershipReceipt,
): Promise<Membership> {
  const known = receipt ?? deps.receipts.get(keyOf(membership));
  await writeStatus(
    deps.garden,
    deps.memberships,
    membership,
    membershipStatusOf(membership, told, known, deps.now()),
    signal,
  );
  return deps.memberships.get(keyOf(membership)) ?? membership;
}

/** Reports an error with the affected end; the queue retries. */
export async function tellMembershipFailure(
  deps: MembershipDependencies,
  membership: Membership,
  state: Told['state'],
  error: unknown,
  signal: AbortSignal,
): Promise<void> {
  // The cache will bring a newer object.
  if (signal.aborted || (error instanceof KubeApiError && error.isConflict)) return;
  const known = explainWebhook(error);
  const codes = known instanceof CoppiceError ? [known.code] : ['ERR_RETRYABLE_INFRA_DEPENDENCIES'];
  const waiting = errorText(known);
  await tellMembership(deps, membership, { state, waiting, conditions: carryConditions(membership), codes }, signal);
}
/** Step conditions as before. */
export const carryConditions = ({ status }: Membership): Said<'Membership'>[] =>
  conditionsBefore('Membership', status?.conditions).filter(
    ({ type }) => type !== 'Ready' && type !== 'HubUsable' && type !== 'LinePossible',
  );

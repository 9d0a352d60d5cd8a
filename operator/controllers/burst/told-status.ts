import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstPolicyStatus } from '../../api/burstpolicy-status.ts';
import type { BurstSightDependencies } from './dependencies.ts';
import { keptByWork } from './kept-by-work.ts';
import type { Outcome } from './seen.ts';
import { soldOutFor } from './sold-out-told.ts';
import { statusOf } from './status.ts';

/** Status of a policy's cycle in a garden. */
export function toldStatus(
  deps: Pick<BurstSightDependencies, 'now' | 'hubs' | 'openClusters' | 'capacity' | 'clusters'>,
  policy: BurstPolicy,
  outcome: Outcome,
): BurstPolicyStatus {
  const now = deps.now();
  const hub = deps.hubs.get(policy.spec.hub);
  const kept = hub && outcome.stays ? keptByWork(deps, hub.spec, policy, outcome.seen, +now) : [];
  const stays = outcome.stays && new Map([...kept, ...outcome.stays]);
  return statusOf(policy, { ...outcome, stays, soldOut: soldOutFor(deps, policy, +now) }, now);
}

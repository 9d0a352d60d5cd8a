import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstPolicyStatus } from '../../api/burstpolicy-status.ts';
import { keyOf, type Pod } from '../../kube/resources.ts';
import { isWork, type SystemNamespaces } from '../membership/members-work.ts';
import type { BurstSightDependencies } from './dependencies.ts';
import { policyLimitsOf } from './limits.ts';
import { emptiesUnderused, thresholdOf } from './own-clusters.ts';
import type { Outcome, PurchaseSeen } from './seen.ts';
import { soldOutFor } from './sold-out-told.ts';
import { policyStatusOf } from './status.ts';

/**
 * Texts about work that keeps due clusters, by name. Each names a pod older than the idle time, and the same one until
 * it is gone, so that the status stays stable while pods change.
 */
function keptByWork(
  deps: Pick<BurstSightDependencies, 'openClusters'>,
  hub: SystemNamespaces,
  policy: BurstPolicy,
  seen: readonly PurchaseSeen[],
  now: number,
): ReadonlyMap<string, string> {
  const { minimumLifeMs, idleForMs } = policyLimitsOf(policy.spec);
  const said = seen.flatMap(({ own }): [string, string][] => {
    const { phase, warm, hasWork, idleSince, underusedSince, emptyingSince, at, key, name } = own;
    const isAsked = phase === 'Joined' && !warm && hasWork && idleSince === undefined && emptyingSince === undefined;
    if (!isAsked || at + minimumLifeMs > now || underusedSince !== undefined) return [];
    if (emptiesUnderused(policy))
      return [[name, `its pods request ${thresholdOf(policy)} % of its CPU or memory, or more (utilizationThreshold)`]];
    const pods = (deps.openClusters.get(key)?.pods.list() ?? []).filter((pod) => isWork(hub, pod));
    const [longest] = pods.filter((pod) => !isOfJob(pod)).sort(byAge);
    if (!longest) return [[name, 'pods of Jobs run there, and it goes when these have ended']];
    const { creationTimestamp: since = '' } = longest.metadata;
    if (Date.parse(since) + idleForMs > now) return [];
    return [[name, `pod ${keyOf(longest)}${ownerText(longest)} runs there${since && ` since ${since}`}`]];
  });
  return new Map(said);
}

const ownerOf = ({ metadata }: Pod) => metadata.ownerReferences?.find(({ controller }) => controller);
const isOfJob = (pod: Pod): boolean => ownerOf(pod)?.kind === 'Job';

function ownerText(pod: Pod): string {
  const owner = ownerOf(pod);
  return owner ? ` of ${owner.kind} ${owner.name}` : '';
}

const byAge = (a: Pod, b: Pod): number => {
  const [x, y] = [a, b].map((pod) => `${pod.metadata.creationTimestamp ?? ''} ${keyOf(pod)}`) as [string, string];
  return x < y ? -1 : 1;
};

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
  return policyStatusOf(policy, { ...outcome, stays, soldOut: soldOutFor(deps, policy, +now) }, now);
}

import { findCondition } from '../../api/conditions.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { hubType } from '../../hubs/index.ts';
import { isTransient, KubeApiError } from '../../kube/errors.ts';
import { keyOf, MEMBERSHIPS } from '../../kube/resources.ts';
import { hold } from '../finalizer.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { drainEnds } from './drain-time.ts';
import { clusterOf } from './holds.ts';
import { firstNamed } from './judge.ts';
import { clusterGoes, isForced, type LeaveInputs, type LeaveOutcome, leave } from './leave.ts';
import { LOOK_AGAIN_MS, type Next, SLACK_MS } from './look-again.ts';
import { isAnswering } from './member.ts';
import { leaveConditions } from './status.ts';
import { tellMembership, tellMembershipFailure } from './tell.ts';

/** Advances the leave of a deleted Membership as far as possible now. @returns when to check again */
export async function leaveHub(
  deps: MembershipDependencies,
  membership: Membership,
  cluster: WorkerCluster | undefined,
  signal: AbortSignal,
): Promise<Next> {
  const key = keyOf(membership);
  const { hub: hubName } = membership.spec;
  const hub = deps.hubs.get(hubName);
  const receipt = await deps.receipts.read(key, signal);
  const letGo = async (reason: string, text: string): Promise<Next> => {
    await deps.receipts.remove(key, signal);
    await hold(deps, MEMBERSHIPS, deps.memberships, membership, false, { signal });
    deps.recordEvent(membership, 'Normal', reason, text);
    return {};
  };
  if (!receipt) return letGo('Left', `nothing of the cluster was in Hub ${hubName}`);
  if (hub?.metadata.deletionTimestamp && hub.spec.orphan)
    return letGo(
      'Orphaned',
      `Hub ${hubName} is deleted with spec.orphan: what Coppice made in it and in the cluster remains`,
    );
  const spec = hub?.spec ?? receipt.hub.spec;
  const overdue = deps.now() >= drainEnds(membership, spec);
  const mayForce = overdue && isForced(membership, spec);
  const force = (text: string) => deps.recordEvent(membership, 'Warning', 'Forced', text);
  let left: LeaveOutcome & { isInside: boolean };
  try {
    left = await tryLeave(deps, { membership, cluster, spec, receipt, mayForce }, signal);
  } catch (error) {
    if (signal.aborted) throw error;
    // With permission to force, a dead hub must not hold a cluster for ever.
    if (mayForce && isSilence(error)) {
      force(
        `Hub ${hubName} does not answer: objects of the cluster remain in it under the name ${receipt.member.name}`,
      );
      return letGo('Left', `the cluster has left Hub ${hubName} by force`);
    }
    await tellMembershipFailure(deps, membership, 'Leaving', error, signal);
    throw error;
  }
  const { verdict, gone, waiting, ends = [], isInside } = left;
  if (ends.length > 0 && verdict.withdraw)
    deps.recordEvent(
      membership,
      'Warning',
      'EndsWithCluster',
      `deleting the cluster also deletes what is in it: ${firstNamed(ends)}`,
    );
  if (verdict.forced && !findCondition(membership.status?.conditions, 'Withdrawn'))
    force(`withdrawn from Hub ${hubName} although ${verdict.forced}`);
  if (gone && !isInside && !clusterGoes(cluster) && receipt.places.some(({ on }) => on === 'member'))
    force(`cluster ${clusterOf(membership)} does not answer: objects of Hub ${hubName} remain in it`);
  if (gone) return letGo('Left', `the cluster has left Hub ${hubName}, which knew it as ${receipt.member.name}`);
  await tellMembership(
    deps,
    membership,
    { state: 'Leaving', waiting, conditions: leaveConditions(verdict, waiting) },
    signal,
    receipt,
  );
  const untilMs = verdict.until ? +verdict.until - +deps.now() + SLACK_MS : LOOK_AGAIN_MS;
  return { requeueAfterMs: Math.max(SLACK_MS, Math.min(LOOK_AGAIN_MS, untilMs)) };
}

/** A conflict does not count as silence: the next try resolves it. */
const isSilence = (error: unknown): boolean =>
  isTransient(error) && !(error instanceof KubeApiError && error.isConflict);

/** Takes one step of a leave, including the cluster if it answers (`isInside`). Force permits skipping a silent one. */
async function tryLeave(
  deps: MembershipDependencies,
  { mayForce, ...going }: Pick<LeaveInputs, 'membership' | 'cluster' | 'spec' | 'receipt'> & { mayForce: boolean },
  signal: AbortSignal,
): Promise<LeaveOutcome & { isInside: boolean }> {
  const { membership, cluster, spec, receipt } = going;
  const type = hubType(spec.type);
  if (!type) throw new Error(`this operator knows no hubs of type ${spec.type}`);
  const connection = await deps.connections.open(membership.spec.hub, spec, receipt.hub.identity, signal);
  const opened = deps.openClusters.get(clusterOf(membership));
  // Another cluster may answer behind the kubeconfig now: nothing in it is ours.
  const isOther = opened?.identity !== undefined && opened.identity !== receipt.member.id;
  const open = !isOther && (!cluster || isAnswering(cluster, opened)) ? opened : undefined;
  const inputs: LeaveInputs = { ...going, type, connection, open };
  try {
    return { ...(await leave(deps, inputs, signal)), isInside: open !== undefined };
  } catch (error) {
    // Unknown which of the two was silent. If it was the cluster, the hub must not keep its entry.
    if (!open || signal.aborted || !mayForce || !isSilence(error)) throw error;
    const written = (await deps.receipts.read(keyOf(membership), signal)) ?? receipt;
    return { ...(await leave(deps, { ...inputs, receipt: written, open: undefined }, signal)), isInside: false };
  }
}

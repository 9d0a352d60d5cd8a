import { findCondition } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { say } from '../conditions.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { clusterOf } from './holds.ts';
import { isAnswering, isAsleep, isEmptied, isSilent, whyNotUsable } from './member.ts';
import { labelsOf } from './member-labels.ts';
import type { MembershipReceipt } from './receipt.ts';
import { OBSERVED, type Told } from './status.ts';
import { carryConditions } from './tell.ts';

/** Facts about a membership before hub or cluster is asked. */
interface MembershipView {
  readonly membership: Membership;
  readonly cluster: WorkerCluster;
  readonly hub: Hub | undefined;
  readonly open: OpenCluster | undefined;
  /** It has joined. */
  readonly isIn: boolean;
  /** A foreign entry exists in the hub. */
  readonly isObserved: boolean;
  /** Whether the cluster's API server answers. */
  readonly answers: boolean;
  /** Why the cluster cannot take work yet; undefined: it can. */
  readonly notUsable: string | undefined;
  /** Why no cluster can join the hub now; undefined: clusters can. */
  readonly problem: string | undefined;
}

/** Reads caches only. */
export function observeMembership(
  deps: MembershipDependencies,
  membership: Membership,
  cluster: WorkerCluster,
): MembershipView {
  const { spec, status } = membership;
  const hub = deps.hubs.get(spec.hub);
  const open = deps.openClusters.get(clusterOf(membership));
  const hubReady = findCondition(hub?.status?.conditions, 'Ready');
  const problem = !hub
    ? `Hub ${spec.hub} does not exist`
    : hubReady?.status !== 'True'
      ? `clusters cannot join Hub ${spec.hub} now: ${hubReady?.message ?? 'the operator has not checked it yet'}`
      : undefined;
  return {
    membership,
    cluster,
    hub,
    open,
    isIn: status?.state === 'Joined' || status?.state === 'Asleep',
    isObserved: findCondition(status?.conditions, OBSERVED) !== undefined,
    answers: isAnswering(cluster, open),
    notUsable: whyNotUsable(cluster, open),
    problem,
  };
}

/** Whether there is nothing to do or report. Pure. @param receipt absent: nothing was made */
export function isNothingNew(view: MembershipView, receipt: MembershipReceipt | undefined): boolean {
  // A first status for a cluster that is still being made would cost a write without information.
  if (view.notUsable && !view.membership.status?.conditions && !receipt) return true;
  // After a restart its connection is not open yet.
  if (view.isIn && !view.open && !isSilent(view.cluster)) return true;
  // Others maintain their entry of a silent cluster.
  return view.isObserved && !view.answers;
}

/** Status of a join that waits for its hub or its cluster. Pure. */
export function toldOfWait({ membership, isIn, problem, notUsable }: MembershipView): Told {
  const { hub } = membership.spec;
  const usable = say(
    'HubUsable',
    !problem,
    problem ? 'NotUsable' : 'Usable',
    problem ?? `clusters can join Hub ${hub}`,
  );
  return {
    state: isIn ? membership.status!.state! : 'Pending',
    waiting: problem ?? notUsable!,
    conditions: [...carryConditions(membership), usable],
  };
}

/** Inputs of a joined membership. Pure. */
export const restsOf = (
  { profiles }: Pick<MembershipDependencies, 'profiles'>,
  { membership, cluster, answers, notUsable }: MembershipView,
  hub: Hub,
  open: OpenCluster,
) => ({
  cluster: labelsOf(cluster, hub.spec, { open, profile: profiles.get(profileNameOf(cluster)) }),
  ranges: cluster.status?.networking,
  nodes: shapeOf(open),
  hub: hub.metadata.generation,
  answers,
  sleep: [isAsleep(cluster), isEmptied(cluster), notUsable],
  before: membership.status,
});

/** Facts about its nodes that hubs are shown. */
const shapeOf = (open: OpenCluster): unknown => ({
  server: open.server,
  nodes: open.nodes
    .list()
    .map(({ metadata, status }) => [metadata.name, status?.allocatable?.cpu, status?.allocatable?.memory])
    .sort(),
});

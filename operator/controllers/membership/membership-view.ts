import { findCondition } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { profileNameOf, type WorkerCluster } from '../../api/workercluster.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { say } from '../conditions.ts';
import type { MembershipDependencies } from './dependencies.ts';
import { clusterOf } from './holds.ts';
import { answers, isAsleep, isEmptied, isSilent, whyNotUsable } from './member.ts';
import { labelsOf } from './member-labels.ts';
import type { MembershipReceipt } from './receipt.ts';
import { OBSERVED, type Told } from './status.ts';
import { carried } from './tell.ts';

/** What is known of a membership before its hub or its cluster is asked. */
interface MembershipView {
  readonly membership: Membership;
  readonly cluster: WorkerCluster;
  readonly hub: Hub | undefined;
  readonly open: OpenCluster | undefined;
  /** It has joined. */
  readonly isIn: boolean;
  /** Somebody else has put the cluster into the hub. */
  readonly isObserved: boolean;
  /** Whether the API server of the cluster answers. */
  readonly answers: boolean;
  /** Why the cluster cannot take work yet; undefined: it can. */
  readonly notUsable: string | undefined;
  /** Why no cluster can join the hub now; undefined: clusters can. */
  readonly problem: string | undefined;
}

/** Looks at caches alone. */
export function observe(deps: MembershipDependencies, membership: Membership, cluster: WorkerCluster): MembershipView {
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
    answers: answers(cluster, open),
    notUsable: whyNotUsable(cluster, open),
    problem,
  };
}

/** Whether nothing is to be done or said for now. Pure. @param receipt absent: nothing was made for it */
export function isNothingNew(view: MembershipView, receipt: MembershipReceipt | undefined): boolean {
  // The first word about a cluster that is still being made would be a write for each, and say nothing that it does not say itself.
  if (view.notUsable && !view.membership.status?.conditions && !receipt) return true;
  // Its connection is not open yet after a start of the operator: nothing has changed for all that is known.
  if (view.isIn && !view.open && !isSilent(view.cluster)) return true;
  // What others made is theirs to look after while the cluster is silent.
  return view.isObserved && !view.answers;
}

/** What there is to say of a join that cannot go on: its hub takes no clusters, or its cluster no work. Pure. */
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
    conditions: [...carried(membership), usable],
  };
}

/** What a membership that has joined rests on. Pure. */
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

/** What of its nodes a hub is shown. */
const shapeOf = (open: OpenCluster): unknown => ({
  server: open.server,
  nodes: open.nodes
    .list()
    .map(({ metadata, status }) => [metadata.name, status?.allocatable?.cpu, status?.allocatable?.memory])
    .sort(),
});

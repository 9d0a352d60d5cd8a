import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { findCondition } from '../../api/conditions.ts';
import { parseDuration } from '../../api/duration.ts';
import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { membershipName } from '../../api/names.ts';
import { underused } from '../../burst/clusters/consolidate.ts';
import type { BurstReceipt } from '../../burst/clusters/kept.ts';
import type { ClustersView, EmptyingCluster, Movable, OwnCluster } from '../../burst/clusters/model.ts';
import { movableWork } from '../../burst/clusters/movable.ts';
import { isToSleep } from '../../burst/clusters/sleep-receipt.ts';
import { type KubeObject, keyOf, PDBS, PVCS, SERVICES } from '../../kube/resources.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { drainTimeoutMs } from '../membership/drain-time.ts';
import { isAsleep } from '../membership/member.ts';
import { isWork } from '../membership/members-work.ts';
import { ownWork } from '../membership/own-work.ts';
import { readerOf } from '../membership/two-sides.ts';
import { patchCluster } from './act.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { BurstMemory } from './memory.ts';
import { emptiesUnderused, keptClusters, type Seen } from './own-clusters.ts';
import { type HubWork, supplyIn, wordsOf } from './supply.ts';
import type { Turn } from './turn.ts';

/** What is looked at before a cluster is emptied. */
export interface EmptyingInputs {
  readonly hub: Hub;
  readonly policy: BurstPolicy;
  readonly memory: BurstMemory;
  readonly turn: Turn;
  /** Of all policies of the hub. */
  readonly turns: readonly Turn[];
  /** Work of the hub that waits, whoever may serve it. */
  readonly hubWaiting: readonly HubWork[];
  readonly now: number;
}

/** What a plan needs to know to empty clusters. Nobody is asked before it is time for one. @param seen what the policy has bought */
export async function emptyingOf(
  deps: BurstDependencies,
  inputs: EmptyingInputs,
  seen: readonly Seen[],
  view: Pick<ClustersView, 'clusters' | 'limits' | 'lastIn' | 'lastOut'>,
  signal: AbortSignal,
): Promise<Pick<ClustersView, 'movable' | 'emptying' | 'unsettled' | 'hubWaiting'>> {
  const { now, hubWaiting } = inputs;
  const begun = seen.flatMap((one) => {
    const emptying = emptyingSeen(deps, inputs, one);
    return emptying ? [{ own: one.own, emptying }] : [];
  });
  const { due } = underused(view, now);
  const asked = [...due, ...begun.flatMap(({ own, emptying }) => (emptying.hasBegun ? [] : [own]))];
  if (asked.length + begun.length === 0) return {};
  const movable = await Promise.all(
    asked.map(async (one) => [one.key, await movableIn(deps, inputs, one, signal)] as const),
  );
  return {
    movable: new Map(movable),
    emptying: begun.map(({ emptying }) => emptying),
    unsettled: whyUnsettled(deps, inputs),
    hubWaiting,
  };
}

/** Why work of the hub is not moved now, because of what is none of the policy's; undefined: nothing speaks against it. */
function whyUnsettled(deps: BurstDependencies, { hub, turn, turns }: EmptyingInputs): string | undefined {
  // Room that two count on is promised twice.
  const busy = turns.find(
    (other) =>
      other !== turn &&
      other.receipt.purchases.some(
        (one) => one.leaving || one.emptyingSince !== undefined || !(one.joinedAt ?? one.warmAt),
      ),
  );
  if (busy) return `a cluster of BurstPolicy ${keyOf(busy.policy)} comes or goes`;
  const leaves = deps.memberships
    .byIndex(BY_HUB, hub.metadata.name)
    .some(({ metadata, status }) => metadata.deletionTimestamp || findCondition(status?.conditions, 'Drained'));
  return leaves ? 'work of another cluster of the hub is being moved' : undefined;
}

const membershipOf = (deps: BurstDependencies, { hub, policy }: EmptyingInputs, name: string): Membership | undefined =>
  deps.memberships.get(`${policy.metadata.namespace}/${membershipName(name, hub.metadata.name)}`);

/** A cluster that is being emptied, as its membership tells of it; undefined: it is not, or is not there. */
function emptyingSeen(
  deps: BurstDependencies,
  inputs: EmptyingInputs,
  { purchase, cluster }: Seen,
): EmptyingCluster | undefined {
  const { hub, policy, now } = inputs;
  if (!cluster || purchase.emptyingSince === undefined || purchase.leaving) return undefined;
  const { name } = purchase;
  const conditions = membershipOf(deps, inputs, name)?.status?.conditions;
  const drained = findCondition(conditions, 'Drained');
  const noRoom = findCondition(conditions, 'RoomElsewhere');
  const { drainDeadline } = policy.spec.scaleIn ?? {};
  // The Hub's is for clusters that leave: it may end in force, and an administrator sets it. Who empties what could stay may want to wait less.
  const timeoutMs = parseDuration(drainDeadline ?? '') ?? drainTimeoutMs(hub.spec);
  const isLate = Date.parse(purchase.emptyingSince) + timeoutMs <= now;
  const refused = drained?.reason === 'DrainNotPossible' ? drained.message : undefined;
  const left = deps.openClusters
    .get(`${policy.metadata.namespace}/${name}`)
    ?.pods.list()
    .find((pod) => isWork(hub.spec, pod));
  // Whether there is room the plan says at each look, by nodes. Its membership goes by sums that its members wrote down a moment ago, and
  // asks again.
  const because = noRoom?.message ?? (left && `pod ${keyOf(left)} is there`);
  const time = drainDeadline ? `its drainDeadline of ${drainDeadline}` : `${timeoutMs / 60_000} minutes`;
  const late = `its hub has not moved all of it within ${time}${because ? `: ${because}` : ''}`;
  return {
    name,
    supply: supplyIn(deps, hub, cluster),
    hasBegun: drained?.reason === 'Draining' || drained?.status === 'True',
    isDone: drained?.status === 'True',
    problem: !emptiesUnderused(policy)
      ? 'the policy empties no clusters any more'
      : (refused ?? (isLate ? late : undefined)),
  };
}

async function movableIn(
  deps: BurstDependencies,
  inputs: EmptyingInputs,
  { key, name }: OwnCluster,
  signal: AbortSignal,
): Promise<Movable> {
  const { hub } = inputs;
  const open = deps.openClusters.get(key);
  const member = membershipOf(deps, inputs, name)?.status?.memberName;
  if (!open || !member) return { stays: 'it does not answer' };
  try {
    const placed = await deps.placedWork(hub, member, signal);
    if (typeof placed === 'string') return { stays: placed };
    if (!placed) return { stays: `hubs of type ${hub.spec.type} do not tell which work they would move` };
    const inside = readerOf(open.client, signal);
    const holdsOthers = hub.spec.drain?.otherWork === 'Hold' && !hub.spec.drain.allowDelete;
    const [budgets, claims, services] = await Promise.all([
      inside.list(PDBS),
      inside.list(PVCS),
      holdsOthers ? inside.list(SERVICES) : ([] as KubeObject[]),
    ]);
    const pods = open.pods.list().filter((pod) => isWork(hub.spec, pod));
    const others = ownWork(hub.spec, { pods: [], claims, services });
    return movableWork(
      placed.map((one) => ({ ...one, each: wordsOf(one.each) })),
      { pods, budgets, others },
    );
  } catch (error) {
    signal.throwIfAborted();
    return { stays: `the operator cannot find out what runs there: ${errorText(error)}` };
  }
}

/**
 * Tells memberships by a label which clusters are to be emptied, and which take work again. Does nothing where it was done; what is given back is
 * left as it is.
 * @returns why one of them cannot be told, a sentence; undefined: each can be
 */
export async function markEmptying(
  deps: BurstDependencies,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  signal: AbortSignal,
): Promise<string | undefined> {
  let problem: string | undefined;
  for (const { purchase, cluster } of keptClusters(deps.clusters, policy, receipt)) {
    if (cluster.metadata.deletionTimestamp) continue;
    // Until it sleeps its hub is to place nothing there.
    if (isToSleep(purchase) && !isAsleep(cluster)) continue;
    const isMarked = cluster.metadata.labels?.[LABELS.burstEmptying] !== undefined;
    const isWanted = purchase.emptyingSince !== undefined;
    if (isMarked === isWanted) continue;
    const { name, uid } = cluster.metadata;
    const metadata = { labels: { [LABELS.burstEmptying]: isWanted ? 'true' : null }, ...(uid && { uid }) };
    const refusal = await patchCluster(deps, cluster, { metadata }, signal);
    const what = isWanted ? 'be emptied' : 'take work again';
    if (refusal !== undefined) problem ??= `WorkerCluster ${name} cannot ${what}: ${refusal}`;
  }
  return problem;
}

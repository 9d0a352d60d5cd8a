import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { parseDuration } from '../../api/duration.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import { underused } from '../../burst/clusters/consolidate.ts';
import type { ClustersView, EmptyingCluster } from '../../burst/clusters/model.ts';
import { emptyingSinceOf, isToSleep, joinedAtOf } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn } from '../../burst/clusters/receipt.ts';
import { keyOf } from '../../kube/resources.ts';
import { drainTimeoutMs } from '../membership/drain-time.ts';
import { isAsleep } from '../membership/member.ts';
import { changeKept, labelPatch } from './act.ts';
import type { HubWork } from './hub-work.ts';
import { emptiesUnderused } from './own-clusters.ts';
import type { Seen } from './seen.ts';
import { supplyIn } from './supply.ts';
import type { Turn } from './turn.ts';
import type { BurstSight, BurstWorld } from './world.ts';

/** What is looked at before a cluster is emptied. */
export interface EmptyingInputs {
  readonly hub: Hub;
  readonly policy: BurstPolicy;
  readonly turn: Turn;
  /** Of all policies of the hub. */
  readonly turns: readonly Turn[];
  /** Work of the hub that waits, whoever may serve it. */
  readonly hubWaiting: readonly HubWork[];
  readonly now: number;
}

/** What a plan needs to know to empty clusters. Nobody is asked before it is time for one. @param seen what the policy has bought */
export async function emptyingOf(
  world: BurstSight,
  inputs: EmptyingInputs,
  seen: readonly Seen[],
  view: Pick<ClustersView, 'clusters' | 'limits' | 'lastIn' | 'lastOut'>,
  signal: AbortSignal,
): Promise<Pick<ClustersView, 'movable' | 'emptying' | 'unsettled' | 'hubWaiting'>> {
  const { hub, now, hubWaiting } = inputs;
  const begun = seen.flatMap((one) => {
    const emptying = emptyingSeen(world, inputs, one);
    return emptying ? [{ own: one.own, emptying }] : [];
  });
  const { due } = underused(view, now);
  const asked = [...due, ...begun.flatMap(({ own, emptying }) => (emptying.hasBegun ? [] : [own]))];
  if (asked.length + begun.length === 0) return {};
  const movable = await Promise.all(
    asked.map(async ({ key }) => {
      const cluster = world.clusters.get(key);
      const gone = { stays: 'it is gone' };
      return [key, cluster ? await world.movable(hub, cluster, signal) : gone] as const;
    }),
  );
  return {
    movable: new Map(movable),
    emptying: begun.map(({ emptying }) => emptying),
    unsettled: whyUnsettled(world, inputs),
    hubWaiting,
  };
}

/** In these phases work of a cluster moves, or has to. */
const MOVES: ReadonlySet<Seen['purchase']['phase']['name']> = new Set(['Emptying', 'Leaving']);

/** Why work of the hub is not moved now, because of what is none of the policy's; undefined: nothing speaks against it. */
function whyUnsettled(world: BurstSight, { hub, turn, turns }: EmptyingInputs): string | undefined {
  // Room that two count on is promised twice.
  const busy = turns.find(
    (other) =>
      other !== turn &&
      clustersIn(other.receipt).some(
        (one) => MOVES.has(one.phase.name) || (joinedAtOf(one) ?? one.readyAt) === undefined,
      ),
  );
  if (busy) return `a cluster of BurstPolicy ${keyOf(busy.policy)} comes or goes`;
  return world.isMoving(hub) ? 'work of another cluster of the hub is being moved' : undefined;
}

/** A cluster that is being emptied, as its membership tells of it; undefined: it is not, or is not there. */
function emptyingSeen(
  world: BurstSight,
  inputs: EmptyingInputs,
  { purchase, cluster }: Seen,
): EmptyingCluster | undefined {
  const { hub, policy, now } = inputs;
  if (!cluster || purchase.phase.name !== 'Emptying') return undefined;
  const { name } = purchase;
  const { hasBegun, isDone, refused, because } = world.emptying(hub, cluster);
  const { drainDeadline } = policy.spec.scaleIn ?? {};
  // The Hub's is for clusters that leave: it may end in force, and an administrator sets it. Who empties what could stay may want to wait less.
  const timeoutMs = parseDuration(drainDeadline ?? '') ?? drainTimeoutMs(hub.spec);
  const isLate = Date.parse(purchase.phase.since) + timeoutMs <= now;
  const time = drainDeadline ? `its drainDeadline of ${drainDeadline}` : `${timeoutMs / 60_000} minutes`;
  const late = `its hub has not moved all of it within ${time}${because ? `: ${because}` : ''}`;
  return {
    name,
    supply: supplyIn(world, hub, cluster),
    hasBegun,
    isDone,
    problem: !emptiesUnderused(policy)
      ? 'the policy empties no clusters any more'
      : (refused ?? (isLate ? late : undefined)),
  };
}

/**
 * Tells memberships by a label which clusters are to be emptied, and which take work again. Does nothing where it was done; what is given back is
 * left as it is.
 * @returns why one of them cannot be told, a sentence; undefined: each can be
 */
export const markEmptying = (
  world: BurstWorld,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  signal: AbortSignal,
): Promise<string | undefined> =>
  changeKept(
    world,
    policy,
    receipt,
    (purchase, cluster) => {
      const { name, labels, deletionTimestamp } = cluster.metadata;
      // Until it sleeps its hub is to place nothing there.
      if (deletionTimestamp || (isToSleep(purchase) && !isAsleep(cluster))) return undefined;
      const isMarked = labels?.[LABELS.burstEmptying] !== undefined;
      const isWanted = emptyingSinceOf(purchase) !== undefined;
      if (isMarked === isWanted) return undefined;
      return {
        patch: labelPatch(cluster, LABELS.burstEmptying, isWanted ? 'true' : null),
        cannot: `WorkerCluster ${name} cannot ${isWanted ? 'be emptied' : 'take work again'}`,
      };
    },
    signal,
  );

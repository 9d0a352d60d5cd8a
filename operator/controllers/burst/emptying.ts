import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { parseDuration } from '../../api/duration.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import { underusedClusters } from '../../burst/clusters/consolidate.ts';
import type { ClustersView, EmptyingCluster } from '../../burst/clusters/model.ts';
import { emptyingSinceOf, joinedAtOf, mustSleep } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn } from '../../burst/clusters/receipt.ts';
import { keyOf } from '../../kube/resources.ts';
import { drainTimeoutMs } from '../membership/drain-time.ts';
import { isAsleep } from '../membership/member.ts';
import { changeKept, labelPatch } from './act.ts';
import type { HubWork } from './hub-work.ts';
import { emptiesUnderused } from './own-clusters.ts';
import type { PurchaseSeen } from './seen.ts';
import { supplyIn } from './supply.ts';
import type { Turn } from './turn.ts';
import type { BurstSight, BurstWorld } from './world.ts';

/** Inputs of emptying. */
export interface EmptyingInputs {
  readonly hub: Hub;
  readonly policy: BurstPolicy;
  readonly turn: Turn;
  /** All policies of the hub. */
  readonly turns: readonly Turn[];
  /** Waiting work of the hub for any policy. */
  readonly hubWaiting: readonly HubWork[];
  readonly now: number;
}

/** Facts for emptying clusters. Nothing is read before a cluster is due. @param seen purchases of the policy */
export async function emptyingOf(
  world: BurstSight,
  inputs: EmptyingInputs,
  seen: readonly PurchaseSeen[],
  view: Pick<ClustersView, 'clusters' | 'limits' | 'lastIn' | 'lastOut'>,
  signal: AbortSignal,
): Promise<Pick<ClustersView, 'movable' | 'emptying' | 'unsettled' | 'hubWaiting'>> {
  const { hub, now, hubWaiting } = inputs;
  const begun = seen.flatMap((one) => {
    const emptying = emptyingSeen(world, inputs, one);
    return emptying ? [{ own: one.own, emptying }] : [];
  });
  const { due } = underusedClusters(view, now);
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

/** Phases in which a cluster's work moves. */
const MOVES: ReadonlySet<PurchaseSeen['purchase']['phase']['name']> = new Set(['Emptying', 'Leaving']);

/** Reason why the hub does not move work now (independent of the policy); undefined: none. */
function whyUnsettled(world: BurstSight, { hub, turn, turns }: EmptyingInputs): string | undefined {
  // Two emptyings might count on the same room.
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

/** A cluster that is being emptied, by its membership; undefined: not so, or missing. */
function emptyingSeen(
  world: BurstSight,
  inputs: EmptyingInputs,
  { purchase, cluster }: PurchaseSeen,
): EmptyingCluster | undefined {
  const { hub, policy, now } = inputs;
  if (!cluster || purchase.phase.name !== 'Emptying') return undefined;
  const { name } = purchase;
  const { hasBegun, isDone, refused, because } = world.emptying(hub, cluster);
  const { drainDeadline } = policy.spec.scaleIn ?? {};
  // The Hub's timeout is for leaving clusters, set by administrators, and may end in force. A policy may choose a
  // shorter one for emptying.
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
 * Sets and removes the label by which memberships empty clusters. Idempotent; leaves returned clusters unchanged.
 * @returns why one cannot be labelled, a sentence; undefined: none
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
      // Its hub must place nothing there until it sleeps.
      if (deletionTimestamp || (mustSleep(purchase) && !isAsleep(cluster))) return undefined;
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

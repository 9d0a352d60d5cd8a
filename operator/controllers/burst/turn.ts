import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { WorkVerdict } from '../../burst/clusters/plan-model.ts';
import {
  clusterWaitOf,
  emptyingSinceOf,
  isOfNoUse,
  joinedAtOf,
  type NodesPurchase,
  purchaseHasEnded,
  rejoinedAt,
} from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, nodesIn, wakesIn } from '../../burst/clusters/receipt.ts';
import type { BurstMemory } from './memory.ts';
import { clusterByUid, comingKey, idleKey, manifestOf, seenOf, underusedKey } from './own-clusters.ts';
import type { PurchaseSeen } from './seen.ts';
import type { Bought } from './supply.ts';
import { wakeKey, wakingKey } from './wake-others.ts';
import type { BurstSight } from './world.ts';

/** A policy within a cycle of its hub. */
export interface Turn {
  readonly policy: BurstPolicy;
  /** Its present state. */
  receipt: BurstReceipt;
  /** Next change by time alone, milliseconds since the epoch. */
  next?: number | undefined;
  /** Its verdicts in this cycle. Absent: it could not decide. */
  verdicts?: readonly WorkVerdict[];
}

/** Observed purchases of a policy. */
export const seenIn = (
  world: BurstSight,
  memory: BurstMemory,
  { policy, receipt }: Turn,
  now: number,
): PurchaseSeen[] => clustersIn(receipt).map((purchase) => seenOf(world, memory, policy, purchase, now));

/** Keys for idle and unneeded times of a policy's clusters. */
export const idleKeys = ({ policy, receipt }: Turn): ReadonlySet<string> =>
  new Set([
    ...clustersIn(receipt).flatMap(({ number }) =>
      [idleKey, comingKey, underusedKey].map((keyFor) => keyFor(policy, number)),
    ),
    ...wakesIn(receipt).flatMap((wake) => [wakeKey(policy, wake), wakingKey(policy, wake)]),
  ]);

/** Clusters that these policies bought or woke and have not returned. @param seen lists the purchases of one policy */
export const boughtBy = (
  world: BurstSight,
  memory: BurstMemory,
  turns: readonly Turn[],
  now: number,
  seen: (turn: Turn) => readonly PurchaseSeen[] = (turn) => seenIn(world, memory, turn, now),
): Bought[] => [
  ...turns.flatMap(({ receipt }) =>
    wakesIn(receipt).flatMap((wake): Bought[] => {
      const { cluster: key } = wake;
      const joinedAt = rejoinedAt(wake);
      const cluster = clusterByUid(world, wake);
      return cluster && !purchaseHasEnded(wake)
        ? [{ key, cluster, joinedAt, isUseless: false, isEmptying: false }]
        : [];
    }),
  ),
  ...turns.flatMap((turn) =>
    seen(turn).flatMap(({ purchase, cluster, own }): Bought[] => {
      if (own.phase === 'Leaving' || clusterWaitOf(purchase)) return [];
      const candidate = turn.policy.spec.candidates.find(({ name }) => name === purchase.candidate);
      const known = cluster ?? (candidate && manifestOf(turn.policy, candidate, purchase));
      if (!known) return [];
      const isEmptying = emptyingSinceOf(purchase) !== undefined;
      const joinedAt = joinedAtOf(purchase);
      return [{ key: own.key, cluster: known, joinedAt, isUseless: isOfNoUse(purchase), isEmptying }];
    }),
  ),
];

/** Recorded growth of these policies. */
export const growthsOf = (turns: readonly Turn[]): NodesPurchase[] =>
  turns.flatMap(({ receipt, policy }) => (policy.metadata.deletionTimestamp ? [] : nodesIn(receipt)));

import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import type { ClusterBilling } from '../../cost/billing.ts';
import { billingFrom, type KeptBilling, type KeptWake } from './kept-wake.ts';

/** How many nodes a pool may have, and what budgets count an hour of each with, a decimal. */
export interface KeptGrant {
  readonly nodes: number;
  readonly each: string;
  /** When nodes were granted that nobody has asked for yet, RFC 3339. Absent: all were asked for. */
  readonly raisedAt?: string;
}

/** A cluster that was bought, as it is written down before it is made. Money as decimals, times as RFC 3339. */
export interface KeptPurchase {
  readonly number: number;
  /** Of the WorkerCluster. */
  readonly name: string;
  readonly candidate: string;
  readonly at: string;
  readonly sources: readonly string[];
  readonly nodes: Readonly<Record<string, number>>;
  /** How many autoscalers may make of them. Absent: no more, or it is of before this was written down. */
  readonly mostNodes?: number;
  /**
   * By pool that Coppice sizes: how many nodes it may have at most. Absent: such pools count with their maximum, as in receipts from before this
   * was kept.
   */
  readonly granted?: Readonly<Record<string, KeptGrant>>;
  /** What budgets count an hour of it with. */
  readonly most: string;
  /** What it costs in an hour since `rateSince`; what it cost before is in `spent` already. */
  readonly rate: string;
  readonly rateSince: string;
  /** What it has cost in all until `rateSince`. Absent: nothing, or nobody knows, as in receipts from before this was kept. */
  readonly cost?: string;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: KeptBilling;
  /** Of the WorkerCluster, once it was seen. Then one that is gone is not made again. */
  readonly uid?: string;
  /** It waits, or is to. Absent: it takes work. */
  readonly warm?: true;
  /** It waits asleep, or is to. */
  readonly sleeps?: true;
  /** Of one that waits asleep, or did: what it costs in an hour awake. */
  readonly awake?: string;
  /** When it was woken last. */
  readonly wokenAt?: string;
  /** Of the template that it was made from. */
  readonly revision?: string;
  /** When it was first seen to be ready to take work, while it waited; of one that was put to sleep after work, when that was. */
  readonly warmAt?: string;
  /** When it was first seen in the hub. */
  readonly joinedAt?: string;
  /** It was seen to have work. */
  readonly worked?: true;
  /** When that was first seen. */
  readonly workedAt?: string;
  /** It joined, and the hub placed none of the work there that it was bought for. */
  readonly useless?: true;
  /** Since when its work is moved away, so that it can be given back. Absent: it is not. */
  readonly emptyingSince?: string;
  /** It could not be emptied so many times, and is left alone until then. */
  readonly leftAlone?: { readonly failures: number; readonly until: string };
  /** It is given back. */
  readonly leaving?: true;
  /** Of one that nobody had seen by then: when it was given back. */
  readonly leavingAt?: string;
}

/** An API server that was asked to make something has made it by then, or never does. */
const MADE_MS = 2 * 60_000;

/** Whether what is given back, and is not there, was never made: it is not waited for. */
export const wasNeverMade = ({ leaving, uid, leavingAt }: KeptPurchase, now: number): boolean =>
  leaving === true && uid === undefined && (leavingAt === undefined || Date.parse(leavingAt) + MADE_MS <= now);

/** Whether a cluster has joined and never had work, though some has waited for it: whatever it has room for, its hub does not place it there. */
export const isOfNoUse = ({ useless, worked }: KeptPurchase): boolean => useless === true && !worked;

/** Nodes that were added to a pool, as it is written down before they are ordered. Money as decimals, times as RFC 3339. */
export interface KeptGrowth {
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  readonly pool: string;
  /** Of the entry of the policy; absent: the cluster is the policy's. */
  readonly entry?: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** Nodes that the pool was to have before, and with them. */
  readonly from: number;
  readonly to: number;
  /** How many of them are still wanted: the pool may have become smaller since. */
  readonly nodes: number;
  /** What one costs in an hour; and all that are still wanted, since `rateSince`. */
  readonly each: string;
  readonly rate: string;
  readonly rateSince: string;
  /** All of them were seen. */
  readonly came?: true;
  /** They did not come, and the pool rests. */
  readonly failed?: true;
}

/** A candidate, or a pool by `namespace/name/pool`, that is not tried for a while. */
export interface Rest {
  readonly failures: number;
  /** RFC 3339. */
  readonly until: string;
  readonly why: string;
  /** Of the template of what failed: another one is tried at once. Absent: it has none, or is of before this was kept. */
  readonly revision?: string | undefined;
  /** What came was of no use, and takes so many seconds to come at least. Absent: it did not come. */
  readonly unusedSeconds?: number;
  /** When what failed was ordered, RFC 3339. Absent: it is of before this was kept. */
  readonly orderedAt?: string;
}

/**
 * Whether it is what has this revision that rests. A rest without one is of a template that could not be resolved, or of before this was kept: a
 * template that can be is tried at once.
 */
export const isRestOf = ({ revision: its }: Rest, revision: string | undefined): boolean => its === revision;

/** By candidate, seconds, the newest first. */
export type Times = Readonly<Record<string, readonly number[]>>;

/** What a policy has bought and spent: its only memory. What its status says is for people. */
export interface BurstReceipt {
  readonly policy: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Number of the next purchase: none is ever used twice. */
  readonly next: number;
  readonly purchases: readonly KeptPurchase[];
  /** Nodes that were added to pools. Absent: none, as in receipts from before this was done. */
  readonly growths?: readonly KeptGrowth[];
  /** Clusters of others that were woken. Absent: none, as in receipts from before this was done. */
  readonly wakes?: readonly KeptWake[];
  /** By month (2026-11), as decimals. */
  readonly spent: Readonly<Record<string, string>>;
  readonly rests: Readonly<Record<string, Rest>>;
  /** By candidate: how long the last of its clusters took to join, seconds, the newest first. */
  readonly startups?: Times;
  /** The same of those that slept, from when they were woken. */
  readonly wakings?: Times;
  readonly lastOut?: string;
  readonly lastIn?: string;
  /** The newest first. */
  readonly decisions: readonly BurstDecision[];
}

export const emptyReceipt = (policy: BurstReceipt['policy']): BurstReceipt => ({
  policy,
  next: 1,
  purchases: [],
  spent: {},
  rests: {},
  decisions: [],
});

/** How many nodes a cluster was bought with. */
export const boughtNodes = ({ nodes }: KeptPurchase): number =>
  Object.values(nodes).reduce((sum, count) => sum + count, 0);

/** How many nodes pools may have together that they were granted. */
export const grantedNodes = (granted: NonNullable<KeptPurchase['granted']>): number =>
  Object.values(granted).reduce((sum, { nodes }) => sum + nodes, 0);

/** How many nodes count of what was bought. @param seen nodes that the cluster is known to be asked for: somebody may have made it larger */
export const nodesOfPurchase = (purchase: KeptPurchase, seen = 0): number =>
  Math.max(purchase.granted ? mostNodesOf(purchase) : boughtNodes(purchase), purchase.mostNodes ?? 0, seen);

/** How many nodes autoscalers may make of what was bought. */
export const mostNodesOf = (purchase: KeptPurchase): number => purchase.mostNodes ?? boughtNodes(purchase);

/** How the time of what was bought is billed; undefined: every moment counts. */
export const billingOfPurchase = ({ billing }: KeptPurchase): ClusterBilling | undefined =>
  billing && billingFrom(billing);

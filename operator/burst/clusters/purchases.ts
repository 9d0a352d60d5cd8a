import type { Billing, ClusterBilling } from '../../cost/billing.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';

/** What a policy buys: in plans and in its receipt. Money as decimals, times as RFC 3339. */
export type Purchase = ClusterPurchase | NodesPurchase | WakePurchase;

/** How a cluster is billed, as the receipt keeps it. */
interface KeptBilling {
  readonly machines: Billing;
  readonly controlPlane?: Billing;
  readonly fee: string;
}

/** How many nodes a pool may have, and what budgets count an hour of each with, a decimal. */
export interface KeptGrant {
  readonly nodes: number;
  readonly each: string;
  /** When nodes were granted that nobody has asked for yet, RFC 3339. Absent: all were asked for. */
  readonly raisedAt?: string;
}

/** Work was seen on a cluster. */
export interface SeenWork {
  /** When work was first seen. Absent: the receipt is from before this time was kept. */
  readonly at?: string;
}

/** The cluster is ordered or woken, and has not joined its hub. */
interface ComingPhase {
  readonly name: 'Coming';
}

/** The cluster waits awake, or is to: its hub places no work there. */
interface WarmPhase {
  readonly name: 'Warm';
  /** When the cluster joined all the same: somebody opened it by hand. Absent: nobody did. */
  readonly joinedAt?: string;
}

/** The cluster waits asleep, or is to. */
interface AsleepPhase {
  readonly name: 'Asleep';
}

/** The cluster takes work of its hub. */
export interface JoinedPhase {
  readonly name: 'Joined';
  readonly at: string;
  /** The hub placed none of the work there that the cluster was bought for. Absent: it did, or may still. */
  readonly isUseless?: true;
  /** The cluster could not be emptied so many times, and is not emptied until then. */
  readonly leftAlone?: LeftAlone;
}

export interface LeftAlone {
  readonly failures: number;
  readonly until: string;
}

/** The hub moves the work of the cluster away, so that the cluster can be given back. */
interface EmptyingPhase {
  readonly name: 'Emptying';
  readonly since: string;
  /** The phase to which the cluster returns when it cannot be emptied. */
  readonly before: JoinedPhase;
}

/** The cluster is given back. */
interface LeavingPhase {
  readonly name: 'Leaving';
  /** Of a cluster that nobody had seen by then: when it was given back. */
  readonly at?: string;
  readonly before: StandingPhase;
}

/** The phases of a cluster that is not given back. */
export type StandingPhase = ComingPhase | WarmPhase | AsleepPhase | JoinedPhase | EmptyingPhase;

/** A cluster that was bought. */
export interface ClusterPurchase {
  readonly kind: 'cluster';
  readonly number: number;
  /** Of the WorkerCluster. */
  readonly name: string;
  readonly candidate: string;
  readonly at: string;
  readonly sources: readonly string[];
  readonly nodes: Readonly<Record<string, number>>;
  /** How many nodes autoscalers may make of them. Absent: no more, or the receipt is from before this was kept. */
  readonly mostNodes?: number;
  /** Most nodes of each pool that Coppice sizes. Absent: such pools count with their maximum, as in receipts from before this was kept. */
  readonly granted?: Readonly<Record<string, KeptGrant>>;
  /** What budgets count an hour of it with. */
  readonly most: string;
  /** What the cluster costs in an hour since `rateSince`; what it cost before is in `spent` already. */
  readonly rate: string;
  readonly rateSince: string;
  /** What the cluster has cost until `rateSince`. Absent: nothing, or unknown, as in receipts from before this was kept. */
  readonly cost?: string;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: KeptBilling;
  /** Of the template that the cluster was made from. */
  readonly revision?: string;
  /** Of the WorkerCluster, once it was seen. A cluster that was seen and is gone is not made again. */
  readonly uid?: string;
  readonly phase: ClusterPhase;
  /** Of a cluster that waits asleep, or did: what it costs in an hour awake. */
  readonly awakeRate?: string;
  /** When the cluster was woken last. */
  readonly wokenAt?: string;
  /** When the cluster was first ready to take work while it waited; after work: when it was put to sleep. */
  readonly readyAt?: string;
  /** Absent: no work was seen there since the cluster was made, or put to sleep. */
  readonly work?: SeenWork;
  /** The form in which the receipt was read. Absent: this purchase was made since. */
  readonly stored?: object;
}

export type ClusterPhase = StandingPhase | LeavingPhase;

/** CameLate: the nodes were given up, and came after all. */
type NodesPhase = 'Coming' | 'Came' | 'Failed' | 'CameLate';

/** Nodes that were added to a pool. */
export interface NodesPurchase {
  readonly kind: 'nodes';
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
  readonly phase: NodesPhase;
  /** See ClusterPurchase. */
  readonly stored?: object;
}

type WakePhase =
  | { readonly name: 'Waking' }
  /** The cluster is back in its hub. */
  | { readonly name: 'Joined'; readonly at: string }
  /** The order is to be taken back. */
  | { readonly name: 'Ended'; readonly before: Exclude<WakePhase, { readonly name: 'Ended' }> };

/** A cluster of somebody that was woken. */
export interface WakePurchase {
  readonly kind: 'wake';
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  /** Of the entry of the policy. */
  readonly entry: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** What budgets count an hour of it with: what it costs awake, and not asleep. */
  readonly most: string;
  /** What that costs in an hour since `rateSince`. */
  readonly rate: string;
  readonly rateSince: string;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: KeptBilling;
  readonly phase: WakePhase;
  /** Absent: no work was seen there since the cluster was woken. */
  readonly work?: SeenWork;
  /** See ClusterPurchase. */
  readonly stored?: object;
}

/** Billing as the receipt keeps it. */
export const keptBilling = ({ machines, controlPlane, fee }: ClusterBilling): KeptBilling => ({
  machines,
  ...(controlPlane && { controlPlane }),
  fee: formatMoney(fee),
});

/** Billing of what was bought; undefined: every moment counts. */
export const billingOfPurchase = ({ billing }: { readonly billing?: KeptBilling }): ClusterBilling | undefined =>
  billing && { machines: billing.machines, controlPlane: billing.controlPlane, fee: parseMoney(billing.fee) };

/** The phase of a cluster, or the phase that it was in when it was given back. */
const standingPhase = ({ phase }: Pick<ClusterPurchase, 'phase'>): StandingPhase =>
  phase.name === 'Leaving' ? phase.before : phase;

export const isLeaving = ({ phase }: Pick<ClusterPurchase, 'phase'>): boolean => phase.name === 'Leaving';

/** How a cluster waits, or is to; undefined: it takes work. */
export function waitOf(purchase: Pick<ClusterPurchase, 'phase'>): 'warm' | 'asleep' | undefined {
  const phase = standingPhase(purchase);
  switch (phase.name) {
    case 'Warm':
      return 'warm';
    case 'Asleep':
      return 'asleep';
    case 'Coming':
    case 'Joined':
    case 'Emptying':
      return undefined;
  }
}

/** When a cluster was first seen in its hub, RFC 3339; undefined: it was not since it was ordered, or woken. */
export function joinedAtOf(purchase: Pick<ClusterPurchase, 'phase'>): string | undefined {
  const phase = standingPhase(purchase);
  switch (phase.name) {
    case 'Joined':
      return phase.at;
    case 'Emptying':
      return phase.before.at;
    case 'Warm':
      return phase.joinedAt;
    case 'Coming':
    case 'Asleep':
      return undefined;
  }
}

/** The phase of a cluster that has joined and takes work, or did until it was emptied; undefined: there is none. */
export function joinedPhase(purchase: Pick<ClusterPurchase, 'phase'>): JoinedPhase | undefined {
  const phase = standingPhase(purchase);
  if (phase.name === 'Emptying') return phase.before;
  return phase.name === 'Joined' ? phase : undefined;
}

/** Since when the work of a cluster is moved away, RFC 3339; undefined: it is not. */
export function emptyingSinceOf(purchase: Pick<ClusterPurchase, 'phase'>): string | undefined {
  const phase = standingPhase(purchase);
  return phase.name === 'Emptying' ? phase.since : undefined;
}

/** Whether the hub placed none of the work on the cluster that it was bought for. */
export const isUseless = (purchase: Pick<ClusterPurchase, 'phase'>): boolean =>
  joinedPhase(purchase)?.isUseless === true;

/** Whether a cluster has joined and never had work, though some has waited for it: whatever it has room for, its hub does not place it there. */
export const isOfNoUse = (purchase: ClusterPurchase): boolean => isUseless(purchase) && !purchase.work;

/** Whether a cluster is told to sleep: it was ready to take work once, and waits asleep. */
export const isToSleep = ({ phase, readyAt }: ClusterPurchase): boolean =>
  phase.name === 'Asleep' && readyAt !== undefined;

/** Whether a cluster was woken and is not back in its hub yet. */
export const isWaking = (purchase: ClusterPurchase): boolean =>
  standingPhase(purchase).name === 'Coming' && purchase.wokenAt !== undefined;

/** An API server that was asked to make something has made it by then, or never does. */
const MADE_MS = 2 * 60_000;

/** Whether a cluster that is given back, and is not there, was never made: nobody waits for it. */
export const wasNeverMade = ({ phase, uid }: ClusterPurchase, now: number): boolean =>
  phase.name === 'Leaving' && uid === undefined && (phase.at === undefined || Date.parse(phase.at) + MADE_MS <= now);

/** How many nodes a cluster was bought with. */
export const boughtNodes = ({ nodes }: Pick<ClusterPurchase, 'nodes'>): number =>
  Object.values(nodes).reduce((sum, count) => sum + count, 0);

/** How many nodes pools may have together that they were granted. */
export const grantedNodes = (granted: NonNullable<ClusterPurchase['granted']>): number =>
  Object.values(granted).reduce((sum, { nodes }) => sum + nodes, 0);

/** How many nodes count of a cluster. @param seen nodes that the cluster is known to be asked for: somebody may have made it larger */
export const nodesOfPurchase = (purchase: ClusterPurchase, seen = 0): number =>
  Math.max(purchase.granted ? mostNodesOf(purchase) : boughtNodes(purchase), purchase.mostNodes ?? 0, seen);

/** How many nodes autoscalers may make of a cluster. */
export const mostNodesOf = (purchase: ClusterPurchase): number => purchase.mostNodes ?? boughtNodes(purchase);

/** A pool that was written down to be larger is made so within this time, or never: what was decided since then is somebody's wish. */
const ORDER_MS = 60_000;
/** Nodes that have not come by then do not come. As the autoscaler of nodes has it. */
const ARRIVE_MS = 15 * 60_000;

/** Whether these nodes are still to be ordered, or on their way. */
export const isComing = ({ phase, at }: NodesPurchase, now: number): boolean =>
  phase === 'Coming' && Date.parse(at) + ARRIVE_MS > now;

/** Whether the pool is to be made larger if it is not yet. */
export const isToOrder = ({ phase, at }: NodesPurchase, now: number): boolean =>
  phase === 'Coming' && Date.parse(at) + ORDER_MS > now;

/** Whether all of these nodes were seen. */
export const haveCome = ({ phase }: Pick<NodesPurchase, 'phase'>): boolean => phase === 'Came' || phase === 'CameLate';

/** When a cluster that was woken was first seen back in its hub, RFC 3339; undefined: it was not. */
export function rejoinedAt({ phase }: Pick<WakePurchase, 'phase'>): string | undefined {
  const before = phase.name === 'Ended' ? phase.before : phase;
  return before.name === 'Joined' ? before.at : undefined;
}

export const hasEnded = ({ phase }: Pick<WakePurchase, 'phase'>): boolean => phase.name === 'Ended';

/** Name of a WorkerCluster. @param key `namespace/name` */
export const nameOf = (key: string): string => key.slice(key.indexOf('/') + 1);

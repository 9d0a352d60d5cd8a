import type { Billing, ClusterBilling } from '../../cost/billing.ts';
import { formatMoney, parseMoney } from '../../cost/money.ts';

/** What a policy buys, as used in plans and in its receipt. Money as decimals, times as RFC 3339. */
export type Purchase = ClusterPurchase | NodesPurchase | WakePurchase;

/** Billing as the receipt stores it. */
interface KeptBilling {
  readonly machines: Billing;
  readonly controlPlane?: Billing;
  readonly fee: string;
}

/** Most nodes of a pool, and the cost per node and hour that budgets count, a decimal. */
export interface KeptGrant {
  readonly nodes: number;
  readonly each: string;
  /** When nodes were granted that the autoscaler has not requested yet, RFC 3339. Absent: all were requested. */
  readonly raisedAt?: string;
}

/** Work was seen on a cluster. */
export interface SeenWork {
  /** When work was first seen. Absent: the receipt is older than this field. */
  readonly at?: string;
}

/** The cluster is ordered or woken, and has not joined its hub. */
interface ComingPhase {
  readonly name: 'Coming';
}

/** The cluster waits warm, or will: its hub places no work there. */
interface WarmPhase {
  readonly name: 'Warm';
  /** When the cluster joined nevertheless: somebody opened it by hand. Absent: nobody did. */
  readonly joinedAt?: string;
}

/** The cluster waits asleep, or will. */
interface AsleepPhase {
  readonly name: 'Asleep';
}

/** The cluster takes work of its hub. */
export interface JoinedPhase {
  readonly name: 'Joined';
  readonly at: string;
  /** The hub placed none of the intended work there. Absent: it did, or still may. */
  readonly isUseless?: true;
  /** Number of failed tries to empty the cluster, and the time of the next. */
  readonly leftAlone?: LeftAlone;
}

export interface LeftAlone {
  readonly failures: number;
  readonly until: string;
}

/** The hub moves the cluster's work away, so that it can be given back. */
interface EmptyingPhase {
  readonly name: 'Emptying';
  readonly since: string;
  /** Phase to return to when emptying stops. */
  readonly before: JoinedPhase;
}

/** The cluster is being given back. */
interface LeavingPhase {
  readonly name: 'Leaving';
  /** When it was given back, for a cluster that was never seen. */
  readonly at?: string;
  readonly before: StandingPhase;
}

/** Phases of a cluster that is not given back. */
export type StandingPhase = ComingPhase | WarmPhase | AsleepPhase | JoinedPhase | EmptyingPhase;

/** A bought cluster. */
export interface ClusterPurchase {
  readonly kind: 'cluster';
  readonly number: number;
  /** Name of the WorkerCluster. */
  readonly name: string;
  readonly candidate: string;
  readonly at: string;
  readonly sources: readonly string[];
  readonly nodes: Readonly<Record<string, number>>;
  /** Most nodes with autoscalers. Absent: the same, or the receipt is older than this field. */
  readonly mostNodes?: number;
  /** Grants of pools that Coppice sizes. Absent: such pools count with their maximum, as in older receipts. */
  readonly granted?: Readonly<Record<string, KeptGrant>>;
  /** Cost per hour that budgets count. */
  readonly most: string;
  /** Cost per hour since `rateSince`; earlier cost is in `spent` already. */
  readonly rate: string;
  readonly rateSince: string;
  /** Total cost until `rateSince`. Absent: none, or unknown in older receipts. */
  readonly cost?: string;
  /** Billing of its time; absent: by the moment. */
  readonly billing?: KeptBilling;
  /** Revision of its template. */
  readonly revision?: string;
  /** UID of the WorkerCluster once seen. A cluster that was seen and is gone is not made again. */
  readonly uid?: string;
  readonly phase: ClusterPhase;
  /** For a sleeping cluster, also after waking: cost per hour when awake. */
  readonly awakeRate?: string;
  /** Last wake-up. */
  readonly wokenAt?: string;
  /** When the waiting cluster was first ready to take work; after work: when it was put to sleep. */
  readonly readyAt?: string;
  /** Absent: no work was seen since it was made or put to sleep. */
  readonly work?: SeenWork;
  /** The stored form that was read. Absent: a new purchase. */
  readonly stored?: object;
}

export type ClusterPhase = StandingPhase | LeavingPhase;

/** CameLate: nodes that were given up and came nevertheless. */
type NodesPhase = 'Coming' | 'Came' | 'Failed' | 'CameLate';

/** Nodes added to a pool. */
export interface NodesPurchase {
  readonly kind: 'nodes';
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  readonly pool: string;
  /** Name of the policy's entry; absent: the cluster is the policy's. */
  readonly entry?: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** Desired nodes of the pool before and after. */
  readonly from: number;
  readonly to: number;
  /** How many of them are still wanted: the pool may have shrunk since. */
  readonly nodes: number;
  /** Cost per hour of one; and of all wanted ones since `rateSince`. */
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
  /** The order is being taken back. */
  | { readonly name: 'Ended'; readonly before: Exclude<WakePhase, { readonly name: 'Ended' }> };

/** A woken cluster of somebody else. */
export interface WakePurchase {
  readonly kind: 'wake';
  /** `namespace/name` of the WorkerCluster, and its UID. */
  readonly cluster: string;
  readonly uid: string;
  /** Name of the policy's entry. */
  readonly entry: string;
  readonly at: string;
  readonly sources: readonly string[];
  /** Cost per hour that budgets count: awake minus asleep. */
  readonly most: string;
  /** Real cost of that per hour since `rateSince`. */
  readonly rate: string;
  readonly rateSince: string;
  /** Billing of its time; absent: by the moment. */
  readonly billing?: KeptBilling;
  readonly phase: WakePhase;
  /** Absent: no work was seen since it was woken. */
  readonly work?: SeenWork;
  /** See ClusterPurchase. */
  readonly stored?: object;
}

/** Billing as the receipt stores it. */
export const keptBilling = ({ machines, controlPlane, fee }: ClusterBilling): KeptBilling => ({
  machines,
  ...(controlPlane && { controlPlane }),
  fee: formatMoney(fee),
});

/** Billing of a purchase; undefined: by the moment. */
export const billingOfPurchase = ({ billing }: { readonly billing?: KeptBilling }): ClusterBilling | undefined =>
  billing && { machines: billing.machines, controlPlane: billing.controlPlane, fee: parseMoney(billing.fee) };

/** Phase of a cluster; for a leaving cluster its phase before. */
const standingPhase = ({ phase }: Pick<ClusterPurchase, 'phase'>): StandingPhase =>
  phase.name === 'Leaving' ? phase.before : phase;

export const isLeaving = ({ phase }: Pick<ClusterPurchase, 'phase'>): boolean => phase.name === 'Leaving';

/** How a cluster waits, or will; undefined: it takes work. */
export function clusterWaitOf(purchase: Pick<ClusterPurchase, 'phase'>): 'warm' | 'asleep' | undefined {
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

/** When a cluster was first seen in its hub since it was ordered or woken, RFC 3339; undefined: not yet. */
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

/** The Joined phase of a cluster, also while it is emptied or leaving; undefined: none. */
export function joinedPhase(purchase: Pick<ClusterPurchase, 'phase'>): JoinedPhase | undefined {
  const phase = standingPhase(purchase);
  if (phase.name === 'Emptying') return phase.before;
  return phase.name === 'Joined' ? phase : undefined;
}

/** Since when a cluster is being emptied, RFC 3339; undefined: it is not. */
export function emptyingSinceOf(purchase: Pick<ClusterPurchase, 'phase'>): string | undefined {
  const phase = standingPhase(purchase);
  return phase.name === 'Emptying' ? phase.since : undefined;
}

/** Whether the hub placed none of the intended work on the cluster. */
export const isUseless = (purchase: Pick<ClusterPurchase, 'phase'>): boolean =>
  joinedPhase(purchase)?.isUseless === true;

/** Whether a joined cluster never had work although some waited: its hub does not place it there. */
export const isOfNoUse = (purchase: ClusterPurchase): boolean => isUseless(purchase) && !purchase.work;

/** Whether a cluster must sleep: it was ready once and waits asleep. */
export const mustSleep = ({ phase, readyAt }: ClusterPurchase): boolean =>
  phase.name === 'Asleep' && readyAt !== undefined;

/** Whether a woken cluster is not back in its hub yet. */
export const isWaking = (purchase: ClusterPurchase): boolean =>
  standingPhase(purchase).name === 'Coming' && purchase.wokenAt !== undefined;

/** After this time an API server has made what it was asked for, or never will. */
const MADE_MS = 2 * 60_000;

/** Whether a leaving cluster that does not exist was never made, so there is nothing to wait for. */
export const wasNeverMade = ({ phase, uid }: ClusterPurchase, now: number): boolean =>
  phase.name === 'Leaving' && uid === undefined && (phase.at === undefined || Date.parse(phase.at) + MADE_MS <= now);

/** Number of nodes of the purchase. */
export const boughtNodes = ({ nodes }: Pick<ClusterPurchase, 'nodes'>): number =>
  Object.values(nodes).reduce((sum, count) => sum + count, 0);

/** Sum of granted nodes. */
export const grantedNodes = (granted: NonNullable<ClusterPurchase['granted']>): number =>
  Object.values(granted).reduce((sum, { nodes }) => sum + nodes, 0);

/**
 * Number of nodes that limits count for a cluster. @param seen desired nodes in its spec: somebody may have enlarged it
 */
export const nodesOfPurchase = (purchase: ClusterPurchase, seen = 0): number =>
  Math.max(purchase.granted ? mostNodesOf(purchase) : boughtNodes(purchase), purchase.mostNodes ?? 0, seen);

/** Most nodes of a cluster with autoscalers. */
export const mostNodesOf = (purchase: ClusterPurchase): number => purchase.mostNodes ?? boughtNodes(purchase);

/** Time to carry out a recorded growth; later changes of the pool are somebody's wish. */
const ORDER_MS = 60_000;
/** Nodes that have not come after this time are given up, as in the autoscaler of nodes. */
const ARRIVE_MS = 15 * 60_000;

/** Whether these nodes are to be ordered, or on their way. */
export const isComing = ({ phase, at }: NodesPurchase, now: number): boolean =>
  phase === 'Coming' && Date.parse(at) + ARRIVE_MS > now;

/** Whether the pool must still be enlarged. */
export const isToOrder = ({ phase, at }: NodesPurchase, now: number): boolean =>
  phase === 'Coming' && Date.parse(at) + ORDER_MS > now;

/** Whether all of these nodes were seen. */
export const haveCome = ({ phase }: Pick<NodesPurchase, 'phase'>): boolean => phase === 'Came' || phase === 'CameLate';

/** When a woken cluster was first seen back in its hub, RFC 3339; undefined: not yet. */
export function rejoinedAt({ phase }: Pick<WakePurchase, 'phase'>): string | undefined {
  const before = phase.name === 'Ended' ? phase.before : phase;
  return before.name === 'Joined' ? before.at : undefined;
}

export const purchaseHasEnded = ({ phase }: Pick<WakePurchase, 'phase'>): boolean => phase.name === 'Ended';

/** Name of a WorkerCluster. @param key `namespace/name` */
export const clusterNameOf = (key: string): string => key.slice(key.indexOf('/') + 1);

import type { BurstPolicyStatus } from '../../api/burstpolicy-status.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Reason } from '../../api/reasons.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { CandidateView, OwnCluster, WokenCluster } from '../../burst/clusters/model.ts';
import type { savedBy } from '../../burst/clusters/offer.ts';
import type { ClustersPlan, WorkVerdict } from '../../burst/clusters/plan-model.ts';
import type { ClusterPurchase, NodesPurchase } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { NodeTemplate } from '../../burst/fit/model.ts';
import type { HubWork } from './hub-work.ts';

/** Observed state of a bought cluster. */
export interface Sight {
  /** undefined: it does not exist (yet). */
  readonly cluster: WorkerCluster | undefined;
  /** Whether it takes work of its hub. */
  readonly isJoined: boolean;
  /** Whether its join is complete except for opening. */
  readonly isReady: boolean;
  /** Whether no work runs there; undefined: unknown. */
  readonly isWorkless: boolean | undefined;
  /** Whether its hub has placed work whose pods were not seen yet. Absent: no. */
  readonly isAwaited?: boolean;
  /** Whether it has little work; undefined: unknown, or the policy does not consolidate. */
  readonly isUnderused: boolean | undefined;
  /** Desired nodes. undefined: unknown. */
  readonly wanted: number | undefined;
  /** Reported failure. */
  readonly failure: string | undefined;
}

/** A purchase with its observation. */
export interface PurchaseSeen {
  readonly purchase: ClusterPurchase;
  /** undefined: it does not exist (yet). */
  readonly cluster: WorkerCluster | undefined;
  readonly own: OwnCluster;
  readonly hasJoined: boolean;
  /** It waits and could take work, at once or after waking. Absent: no. */
  readonly isWarm?: boolean;
  /** undefined: unknown. */
  readonly isIdle: boolean | undefined;
  /** Absent: none. */
  readonly cut?: OrderCut | undefined;
  /** Deadline for its hub to place the intended work, milliseconds since the epoch. Absent: it has not joined. */
  readonly placedBy?: number | undefined;
}

/** Nodes that an order has less in its cluster's spec than in the receipt. */
export interface OrderCut {
  readonly pools: readonly { readonly pool: string; readonly before: number; readonly nodes: number }[];
  /** What it costs less per hour. undefined: unknown. */
  readonly saved: ReturnType<typeof savedBy>;
}

/** A pool of a cluster, identified by `namespace/name` and UID. */
export interface PoolNamed extends Pick<NodesPurchase, 'cluster' | 'uid' | 'pool'> {
  /** Sold-out state is not needed. Absent: it is. */
  readonly isSettled?: boolean;
}

/** Observed state of a pool that Coppice sizes. */
export interface PoolSeen {
  readonly pool: DesiredPool;
  /** Nodes that accept pods. */
  readonly ready: number;
  /** Existing nodes. */
  readonly present: number;
  /** Desired nodes, stored or recorded by policies and not ordered yet. */
  readonly count: number;
  readonly decidedAt: number | undefined;
  /** New node as counted by the hub; undefined: see `soldOut`. */
  readonly template: NodeTemplate | undefined;
  readonly soldOut: string | undefined;
  /** See PoolView.offer. */
  readonly isLast: boolean;
  /** Whether a managed service ends its nodes by name. */
  readonly removesNodes: boolean;
  /** Its missing nodes are overdue and no longer expected. */
  readonly isLate: boolean;
}

/** Progress of emptying a cluster. */
export interface EmptyingSight {
  /** The hub has begun to move its work. */
  readonly hasBegun: boolean;
  /** The hub has nothing placed there any more. */
  readonly isDone: boolean;
  /** Why the hub does not move it, a sentence. Absent: it does. */
  readonly refused?: string | undefined;
  /** What is still there, and why, a sentence. Absent: unknown. */
  readonly because?: string | undefined;
}

/** Result of a policy's cycle. */
export interface Outcome {
  readonly ready: {
    readonly status: boolean;
    readonly reason: Reason<'BurstPolicy', 'Ready'>;
    readonly message: string;
  };
  readonly receipt: BurstReceipt;
  /** The receipt has changed: update sums. */
  readonly isNews: boolean;
  readonly seen: readonly PurchaseSeen[];
  /** Woken clusters of others. Absent: none. */
  readonly woken?: readonly WokenCluster[];
  readonly candidates: readonly CandidateView[];
  readonly waiting: readonly HubWork[];
  readonly verdicts: readonly WorkVerdict[];
  /** Why clusters that might go stay, by name. Absent: no decision. */
  readonly stays?: ReadonlyMap<string, string> | undefined;
  /** Decisions, carried out by now. Absent: none. */
  readonly plan?: ClustersPlan | undefined;
  /** Known sold-out offers that it may need. Absent: none. */
  readonly soldOut?: BurstPolicyStatus['soldOut'];
  /** The policy is being deleted: the reason to wait. */
  readonly deleting?: string;
}

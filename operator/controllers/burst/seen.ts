import type { BurstPolicyStatus } from '../../api/burstpolicy-status.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Reason } from '../../api/reasons.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { CandidateView, OwnCluster, WokenCluster } from '../../burst/clusters/model.ts';
import type { ClustersPlan, WorkVerdict } from '../../burst/clusters/plan-model.ts';
import type { ClusterPurchase, NodesPurchase } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { NodeTemplate } from '../../burst/fit/model.ts';
import type { HubWork } from './hub-work.ts';

/** How a cluster that was bought is. */
export interface Sight {
  /** undefined: it is not there (yet). */
  readonly cluster: WorkerCluster | undefined;
  /** Whether it takes work of its hub. */
  readonly isJoined: boolean;
  /** Whether all is done that a join does before the hub opens it. */
  readonly isReady: boolean;
  /** Whether no work runs there; undefined: nobody can tell. */
  readonly isWorkless: boolean | undefined;
  /** Whether its hub has placed work there whose pods were not seen yet. Absent: it has not. */
  readonly isAwaited?: boolean;
  /** Whether it has little work; undefined: nobody can tell, or its policy does not ask. */
  readonly isUnderused: boolean | undefined;
  /** Nodes that it is asked for. undefined: nobody can tell. */
  readonly wanted: number | undefined;
  /** Why it will not come, as far as it says so. */
  readonly failure: string | undefined;
}

/** A purchase with what there is of it. */
export interface Seen {
  readonly purchase: ClusterPurchase;
  /** undefined: it is not there (yet). */
  readonly cluster: WorkerCluster | undefined;
  readonly own: OwnCluster;
  readonly hasJoined: boolean;
  /** It waits, and could take work at once, or when it is woken. Absent: it does not. */
  readonly isWarm?: boolean;
  /** undefined: nobody can tell. */
  readonly isIdle: boolean | undefined;
  /** When its hub has placed work there that it was bought for, or never will, milliseconds since the epoch. Absent: it has not joined. */
  readonly placedBy?: number | undefined;
}

/** A pool that is asked about: of a cluster, `namespace/name`, by its UID. */
export interface PoolNamed extends Pick<NodesPurchase, 'cluster' | 'uid' | 'pool'> {
  /** Nobody needs to know whether it is sold out. Absent: somebody does. */
  readonly isSettled?: boolean;
}

/** A pool that is Coppice's to size, as it is now. */
export interface PoolSeen {
  readonly pool: DesiredPool;
  /** Nodes that take pods. */
  readonly ready: number;
  /** Nodes that there are. */
  readonly present: number;
  /** Nodes that it should have by what is stored, also by what policies have written down and not ordered yet. */
  readonly count: number;
  readonly decidedAt: number | undefined;
  /** What a new node has for work, as the hub counts it; undefined: none is to be had, see `soldOut`. */
  readonly template: NodeTemplate | undefined;
  readonly soldOut: string | undefined;
  /** See PoolView.offer. */
  readonly isLast: boolean;
  /** Whether a cloud's own service ends nodes by name there. */
  readonly removesNodes: boolean;
  /** What it lacks did not come, and is not counted on any more. */
  readonly isLate: boolean;
}

/** How far the work of a cluster is moved away. */
export interface EmptyingSight {
  /** The hub has begun to move it. */
  readonly hasBegun: boolean;
  /** The hub has nothing placed there any more. */
  readonly isDone: boolean;
  /** Why the hub does not move it at all, a sentence. Absent: it does. */
  readonly refused?: string | undefined;
  /** What of it is still there, and why, a sentence. Absent: nobody says. */
  readonly because?: string | undefined;
}

/** What one look at a policy has come to. */
export interface Outcome {
  readonly ready: {
    readonly status: boolean;
    readonly reason: Reason<'BurstPolicy', 'Ready'>;
    readonly message: string;
  };
  readonly receipt: BurstReceipt;
  /** The receipt has changed in this look: sums are told anew. */
  readonly isNews: boolean;
  readonly seen: readonly Seen[];
  /** Clusters of others that it has woken. Absent: none. */
  readonly woken?: readonly WokenCluster[];
  readonly candidates: readonly CandidateView[];
  readonly waiting: readonly HubWork[];
  readonly verdicts: readonly WorkVerdict[];
  /** What keeps clusters that might go, by name: work, or why little of it is not moved away. Absent: nothing was decided. */
  readonly stays?: ReadonlyMap<string, string> | undefined;
  /** What was decided, and is done by now. Absent: nothing was. */
  readonly plan?: ClustersPlan | undefined;
  /** What is known to be sold out of what it may need. Absent: nothing. */
  readonly soldOut?: BurstPolicyStatus['soldOut'];
  /** The policy is on its way out: what it waits for. */
  readonly deleting?: string;
}

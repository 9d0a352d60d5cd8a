import type { ClusterBilling } from '../../cost/billing.ts';
import type { Micros } from '../../cost/money.ts';
import type { FitNode, FitPod, Labels, NodeTemplate } from '../fit/model.ts';

/** Facts by which a hub selects a cluster for work. */
export interface HubMember {
  readonly name: string;
  readonly labels: Labels;
  readonly zones: readonly string[];
  /**
   * For a planned or new cluster: names of older members from the same template. Absent: the hub knows the member
   * itself.
   */
  readonly alike?: readonly string[] | undefined;
}

/** A custom kind that not every cluster serves, as known to a hub. */
export interface HubCustomKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly kind: string;
  /** Names of members that serve it, according to the hub. */
  readonly servedBy: ReadonlySet<string>;
  /** Whether the hub delivers this kind to the member. */
  readonly isBroughtTo: (member: HubMember) => boolean;
}

/** Work that a hub cannot place: equal replicas. */
export interface WaitingWork {
  /** The source object, as text; all work of one source is placed as a whole. */
  readonly source: string;
  /** Namespace of its owner: namespaces take turns. Absent: unknown. */
  readonly namespace?: string | undefined;
  readonly count: number;
  readonly pod: FitPod;
  /** Request of a replica, as text. */
  readonly each: string;
  /** Since when the work has been waiting without a break, milliseconds since the epoch. */
  readonly since: number;
  /**
   * The work was served and its hub still reports it unchanged: nothing is bought until this time, milliseconds since
   * the epoch. Absent: not served.
   */
  readonly servedUntil?: number | undefined;
  /** Priority of its pods. Absent: 0, as in Kubernetes. */
  readonly priority?: number | undefined;
  /** All of the source goes to one cluster. Absent: it may be divided. */
  readonly inOneCluster?: true | undefined;
  /** The hub holds the work until one cluster has room for all of it; added nodes count as room. Absent: not held. */
  readonly isHeld?: true | undefined;
  /** Whether the hub would place the work on the member, apart from room. Absent: everywhere. */
  readonly accepts?: ((member: HubMember) => boolean) | undefined;
  /**
   * The hub places the work only on members that serve this kind. Absent: every cluster serves it, or the hub does not
   * check.
   */
  readonly customKind?: HubCustomKind | undefined;
}

/** Equal nodes of a cluster that do not exist yet. */
export interface PlannedNodes {
  readonly template: NodeTemplate;
  readonly count: number;
}

/** A cluster that takes work of the hub, now or soon. */
export interface Supply {
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly member: HubMember;
  readonly nodes: readonly { readonly node: FitNode; readonly pods: readonly FitPod[] }[];
  /** Nodes that are ordered. */
  readonly planned: readonly PlannedNodes[];
  /** Pods of this cluster that wait for a node of it: they take precedence over work of the hub. Absent: none. */
  readonly pending?: readonly FitPod[];
}

/** A pool of an existing cluster that could grow. */
export interface GrowingPool {
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly member: HubMember;
  readonly pool: string;
  /** Node with room for work, without the share of DaemonSets. */
  readonly template: NodeTemplate;
  /** How many more nodes it may have. */
  readonly more: number;
  /** Cost per hour that budgets count for one more node, in millionths. */
  readonly hourly: Micros;
  /** Number of further nodes that budgets count already: they cost nothing more. Absent: none. */
  readonly counted?: number;
  /** Why waiting pods of its cluster get no more nodes of it now, a sentence. Absent: they may. */
  readonly unasked?: string | undefined;
  /** Real price per hour of one more node; absent: unknown. */
  readonly price?: Micros | undefined;
  /** Billing of its time; absent: by the moment. */
  readonly billing?: ClusterBilling | undefined;
  /** Why it cannot grow now, a sentence; undefined: it can. */
  readonly problem: string | undefined;
  /** The cloud recently interrupted such machines: other pools grow first. Absent: no. */
  readonly isLast?: true | undefined;
  /** Why it does not grow for this work, a sentence. Absent: it grows for any work. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
}

/** Pools that a policy may grow. */
export interface GrowthView {
  /** Name of the policy's entry; undefined: pools of the policy's own clusters. */
  readonly name: string | undefined;
  /** How many more nodes all of them together may have. */
  readonly left: number;
  readonly pools: readonly GrowingPool[];
}

/** A pool of a cluster that could be made. */
export interface OfferedPool {
  readonly name: string;
  readonly template: NodeTemplate;
  /** Minimum number of nodes. */
  readonly minimum: number;
  /** Maximum number of nodes. */
  readonly most: number;
  /** Size to which a cloud's autoscaler may grow it on its own. Absent: it keeps the requested size. */
  readonly autoscaledTo?: number;
  /** Coppice sizes it within a grant: granted nodes count, and more cost more. Absent: no. */
  readonly isGranted?: true;
  /** Price of one more node per hour, in millionths; undefined: unknown. */
  readonly price: Micros | undefined;
  /** Why it keeps its minimum for this work, a sentence. Absent: it takes any work. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
}

/** Price of a cluster per hour. */
export interface ClusterPrice {
  readonly hourly: Micros;
  /** Price with all nodes that autoscalers may add: budgets count this. */
  readonly most: Micros;
  /** Billing of its time; undefined: by the moment. */
  readonly billing?: ClusterBilling | undefined;
}

/** A candidate or cluster whose last purchase or wake-up was of no use. */
export interface UnusedRest {
  /** Until when and why it rests, a sentence. */
  readonly why: string;
  /** Work that has waited this long may use it nevertheless, milliseconds. */
  readonly startsInMs: number;
}

/** A cluster that could be made from a candidate. */
export interface ClusterOffer {
  /** Why it is not bought for this work now, a sentence. Absent: it takes any work. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
  readonly member: HubMember;
  readonly pools: readonly OfferedPool[];
  /** Price with these nodes per pool; or a sentence why it is unknown. */
  price(nodes: ReadonlyMap<string, number>): ClusterPrice | string;
}

/** A cluster that waits warm and can take work at once; or asleep and must be woken. */
export interface WarmCluster {
  readonly name: string;
  readonly candidate: string;
  /** The cluster is not the policy's own, which may wake it by this entry. Absent: it is the policy's. */
  readonly entry?: string | undefined;
  /** Room for work. */
  readonly supply: Supply;
  /** Cost of waking; absent: it is awake. */
  readonly waking?: Waking | undefined;
  /** Why it would not come when woken now, a sentence. Absent: no known obstacle. */
  readonly problem?: string | undefined;
  /** Its last wake-up was of no use recently. Absent: no. */
  readonly unused?: UnusedRest | undefined;
  /** See ClusterOffer. */
  readonly keepsFrom?: ClusterOffer['keepsFrom'];
}

/** Cost of waking a cluster. Money in millionths of the policy's currency. */
export interface Waking {
  /** Cost per hour when awake. */
  readonly hourly: Micros;
  /** Cost per hour with all nodes that autoscalers may add: budgets count this. */
  readonly most: Micros;
  /** Cost that budgets count while it sleeps. */
  readonly counted: Micros;
  /** Billing from the wake-up on; undefined: by the moment. */
  readonly billing?: ClusterBilling | undefined;
  /** Time until it is back, milliseconds; undefined: unknown. */
  readonly startupMs?: number | undefined;
}

/** A candidate of a policy at present. */
export interface CandidateView {
  readonly name: string;
  readonly priority: number;
  /** How many more of its clusters are allowed. */
  readonly left: number;
  /** Why no more are allowed, a sentence; absent: the policy's maximum. */
  readonly noMore?: string;
  /** undefined: see `problem`. */
  readonly offer: ClusterOffer | undefined;
  /** The offer without recently interrupted parts: preferred when it suffices. Absent: nothing was interrupted. */
  readonly steady?: Pick<CandidateView, 'offer' | 'problem'> | undefined;
  /** Number of warm clusters. Absent: none. */
  readonly warm?: number;
  /** Number of sleeping clusters. Absent: none. */
  readonly asleep?: number;
  /** Why its clusters cannot sleep, a sentence; absent: they can. */
  readonly cannotSleep?: string | undefined;
  /** Revision of its template: waiting clusters of another one are replaced. Absent: unknown. */
  readonly revision?: string;
  /** Why none can be made now, a sentence; undefined: one can. */
  readonly problem: string | undefined;
  /** Its last cluster was of no use recently. Absent: no. */
  readonly unused?: UnusedRest | undefined;
  /** Median time until a cluster joins, milliseconds; undefined: unknown. */
  readonly startupMs?: number | undefined;
}

/** A cluster that a policy has bought. */
export interface OwnCluster {
  /** `namespace/name` of the WorkerCluster, and its name alone. */
  readonly key: string;
  readonly name: string;
  readonly candidate: string;
  /** When it was ordered or last woken, milliseconds since the epoch. */
  readonly at: number;
  readonly phase: 'Ordered' | 'Making' | 'Waking' | 'Joined' | 'Leaving';
  /** Since when it has no work; undefined: it has work, or unknown. */
  readonly idleSince: number | undefined;
  /** For an order: since when no work waits for it. Absent: it has joined, or work may wait. */
  readonly unneededSince?: number | undefined;
  /** For an order that may be cut. Absent: it has joined, waits, or may not be cut. */
  readonly order?: OrderedNodes | undefined;
  /** Cost per hour that budgets count. */
  readonly hourly: Micros;
  /** Number of nodes that limits count. Absent: none. */
  readonly nodes?: number;
  /** Billing of its time from `at` on; undefined: by the moment. */
  readonly billing?: ClusterBilling | undefined;
  /** It waits, or will: it takes no work. */
  readonly warm?: boolean | undefined;
  /** It waits asleep, or will. */
  readonly sleeps?: boolean | undefined;
  /** Revision of its template. */
  readonly revision?: string | undefined;
  /** Why it will not come, a sentence; undefined: no known failure. */
  readonly failure: string | undefined;
  /** Somebody's work runs there. */
  readonly hasWork?: boolean;
  /** Since when it has little or no work; undefined: it has more, unknown, or the policy does not consolidate. */
  readonly underusedSince?: number | undefined;
  /** Since when its hub moves its work away; undefined: it does not. */
  readonly emptyingSince?: number | undefined;
  /** Emptying failed: no further try before this time, milliseconds since the epoch. */
  readonly leftAloneUntil?: number | undefined;
}

/** Nodes of an ordered cluster, by pool. */
export interface OrderedNodes {
  /** Minimums in its spec. */
  readonly ordered: ReadonlyMap<string, number>;
  /** Minimums in its template: the order is never cut below. */
  readonly least: ReadonlyMap<string, number>;
  /** Most nodes that its work has needed since this time, milliseconds since the epoch. Absent: all. */
  readonly lessNeeded?: { readonly since: number; readonly nodes: ReadonlyMap<string, number> } | undefined;
}

/** A woken cluster that is not the policy's own; `candidate` is the entry that woke it. */
export type WokenCluster = Omit<OwnCluster, 'warm' | 'sleeps' | 'revision' | 'order'>;

/** Limits of a policy. Times in milliseconds, money in millionths of its currency. */
export interface Limits {
  readonly pendingForMs: number;
  /** Work of lower priority buys nothing. Absent: all work counts. */
  readonly minimumPriority?: number | undefined;
  /** Longest startup time while another candidate is quicker; undefined: no limit. */
  readonly startWithinMs?: number | undefined;
  readonly maximumClusters: number;
  /** For all its clusters and the nodes that it added to others. Absent: no limit. */
  readonly maximumNodes?: number | undefined;
  readonly hourly: Micros;
  readonly monthly: Micros | undefined;
  readonly currency: string;
  readonly idleForMs: number;
  readonly minimumLifeMs: number;
  readonly cooldownOutMs: number;
  readonly cooldownInMs: number;
  readonly isSuspended: boolean;
}

/** A scheduled peak: this many clusters exist from `from` (milliseconds since the epoch) until `until`. */
export interface Peak {
  readonly name: string;
  /** undefined: any candidate. */
  readonly candidate: string | undefined;
  readonly clusters: number;
  readonly from: number;
  readonly until: number;
  /** It is the policy's permanent minimum: it never ends, and clusters beyond it may be emptied. */
  readonly isMinimum?: true;
}

/** All inputs of a decision. */
export interface ClustersView {
  readonly limits: Limits;
  /** Work of the hub that this policy may serve. */
  readonly waiting: readonly WaitingWork[];
  /** All work of the hub: no cluster is emptied while some may need its room. Absent: same as `waiting`. */
  readonly hubWaiting?: readonly WaitingWork[] | undefined;
  /** More work waits than is listed, so a cluster that looks unneeded may be needed. Absent: this is all. */
  readonly isPartial?: boolean;
  /** Clusters of the hub, whoever made them. */
  readonly supply: readonly Supply[];
  readonly candidates: readonly CandidateView[];
  /** Pools that may grow before a cluster is bought. Absent: none. */
  readonly growth?: readonly GrowthView[];
  /** Pods without a node in the policy's clusters, by `namespace/name` of the cluster. Absent: none. */
  readonly lacking?: ReadonlyMap<string, readonly FitPod[]>;
  /** Cost per hour that budgets count for added nodes and for woken clusters of others. Absent: none. */
  readonly grownHourly?: Micros;
  /** Nodes added to pools of others. Absent: none. */
  readonly grownNodes?: number;
  /** The policy's clusters that wait, warm or asleep. Absent: none. */
  readonly warm?: readonly WarmCluster[];
  /** Current and next peaks. Absent: none. */
  readonly peaks?: readonly Peak[];
  /** Content of clusters with little work, by `namespace/name`; others are not emptied. Absent: none. */
  readonly movable?: ReadonlyMap<string, Movable>;
  /** The policy's clusters that are being emptied. Absent: none. */
  readonly emptying?: readonly EmptyingCluster[];
  /** Why no cluster is emptied now, a sentence. Absent: no reason outside of this policy. */
  readonly unsettled?: string | undefined;
  readonly clusters: readonly OwnCluster[];
  /** Clusters of others that it woke. Absent: none. */
  readonly woken?: readonly WokenCluster[];
  /** Spent in this month so far. */
  readonly spent: Micros;
  /** Last purchase and last return, milliseconds since the epoch. */
  readonly lastOut: number | undefined;
  readonly lastIn: number | undefined;
}

/** A cluster's work as it would wait for room elsewhere; or what of it cannot move, a sentence. */
export type Movable = { readonly work: readonly WaitingWork[] } | { readonly stays: string };

/** A cluster that is being emptied. */
export interface EmptyingCluster {
  readonly name: string;
  /** Its room, in case it takes work again. */
  readonly supply: Supply;
  /** The hub has begun to move its work. */
  readonly hasBegun: boolean;
  /** The hub has nothing placed there any more. */
  readonly isDone: boolean;
  /** Why emptying cannot continue, a sentence; undefined: it can. */
  readonly problem: string | undefined;
}

import type { ClusterBilling } from '../../cost/billing.ts';
import type { Micros } from '../../cost/money.ts';
import type { FitNode, FitPod, Labels, NodeTemplate } from '../fit/model.ts';

/** What a hub knows a cluster by when it chooses where work may go. */
export interface HubMember {
  readonly name: string;
  readonly labels: Labels;
  readonly zones: readonly string[];
  /** Of one that is to be made, or has just come: names of older members made like it. Absent: it is known by what the hub says of itself. */
  readonly alike?: readonly string[] | undefined;
}

/** A kind that not every cluster serves, as a hub knows of it. */
export interface CustomKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly kind: string;
  /** Names of the members that serve it, as the hub says. */
  readonly servedBy: ReadonlySet<string>;
  /** Whether the hub itself has it come to such a member. */
  readonly isBroughtTo: (member: HubMember) => boolean;
}

/** Work that a hub cannot place, of which each replica asks for the same. */
export interface WaitingWork {
  /** Whose it is, in words; all work of one source is placed as a whole. */
  readonly source: string;
  /** Of its owner: much work of one namespace keeps that of others from being looked at no longer than it must. Absent: nobody knows. */
  readonly namespace?: string | undefined;
  readonly count: number;
  readonly pod: FitPod;
  /** What a replica asks for, in words. */
  readonly each: string;
  /** Since when it is seen to wait without a break, milliseconds since the epoch. */
  readonly since: number;
  /** It was served, and its hub says the same of it as before: nothing is bought for it until then, milliseconds since the epoch. Absent: it was not. */
  readonly servedUntil?: number | undefined;
  /** Of its pods. Absent: 0, as in Kubernetes. */
  readonly priority?: number | undefined;
  /** All of the source goes to one cluster. Absent: it may be divided. */
  readonly inOneCluster?: true | undefined;
  /** Its hub holds it until one cluster has room for all of it: nodes that are added to a pool are such room. Absent: it does not. */
  readonly isHeld?: true | undefined;
  /** Whether the hub would place it there, room aside. Absent: everywhere. */
  readonly accepts?: ((member: HubMember) => boolean) | undefined;
  /** The hub places it only where this is served. Absent: every cluster serves it, or the hub does not look. */
  readonly customKind?: CustomKind | undefined;
}

/** Equal nodes of a cluster that are not there yet. */
export interface PlannedNodes {
  readonly template: NodeTemplate;
  readonly count: number;
}

/** A cluster that takes work of the hub, or is about to. */
export interface Supply {
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly member: HubMember;
  readonly nodes: readonly { readonly node: FitNode; readonly pods: readonly FitPod[] }[];
  /** What is on its way. */
  readonly planned: readonly PlannedNodes[];
  /** Pods of this cluster that wait for a node of it: they have theirs before work of the hub has any. Absent: none. */
  readonly pending?: readonly FitPod[];
}

/** A pool of a cluster that is there, which could have more nodes. */
export interface GrowingPool {
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly member: HubMember;
  readonly pool: string;
  /** What a node of it has for work: without the share of DaemonSets. */
  readonly template: NodeTemplate;
  /** How many more nodes it may have. */
  readonly more: number;
  /** What budgets count an hour of one more node with, in millionths. */
  readonly hourly: Micros;
  /** So many more nodes than it has now are counted already: they cost nothing more. Absent: none. */
  readonly counted?: number;
  /** Why pods that wait in its cluster are granted no more of it now, a sentence. Absent: they may be. */
  readonly unasked?: string | undefined;
  /** What an hour of one more node costs, whatever budgets count; absent: nobody knows. */
  readonly price?: Micros | undefined;
  /** How its time is billed; absent: every moment counts. */
  readonly billing?: ClusterBilling | undefined;
  /** Why it has no more now, a sentence; undefined: it can. */
  readonly problem: string | undefined;
  /** A cloud took such machines away a moment ago: others grow first. Absent: it did not. */
  readonly isLast?: true | undefined;
  /** Why it does not grow for this work, a sentence. Absent: nothing keeps it from any. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
}

/** Pools that a policy may have grow. */
export interface GrowthView {
  /** Of the entry of the policy; undefined: they are of clusters of the policy itself. */
  readonly name: string | undefined;
  /** How many more nodes all of them together may have. */
  readonly left: number;
  readonly pools: readonly GrowingPool[];
}

/** A pool of a cluster that could be made. */
export interface OfferedPool {
  readonly name: string;
  readonly template: NodeTemplate;
  /** Nodes that it has at least. */
  readonly minimum: number;
  /** Nodes that it may have. */
  readonly most: number;
  /** So many an autoscaler may make of it without asking anybody here. Absent: it has as many as are asked for. */
  readonly autoscaledTo?: number;
  /** Coppice sizes it, within what is granted to it: so many nodes count, and more cost more. Absent: it does not. */
  readonly isGranted?: true;
  /** One more node in an hour, in millionths; undefined: not known. */
  readonly price: Micros | undefined;
  /** Why it has no more nodes than its minimum for this work, a sentence. Absent: nothing keeps it from any. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
}

/** What a cluster costs in an hour. */
export interface ClusterPrice {
  readonly hourly: Micros;
  /** With all nodes that autoscalers may add to it: what budgets count. */
  readonly most: Micros;
  /** How its time is billed; undefined: every moment counts. */
  readonly billing?: ClusterBilling | undefined;
}

/** Something that was of no use when it was bought, or woken, last. */
export interface UnusedRest {
  /** Until when and why it is left alone, a sentence. */
  readonly why: string;
  /** Work that has waited for so long has it all the same, milliseconds. */
  readonly startsInMs: number;
}

/** A cluster that could be made from a candidate. */
export interface ClusterOffer {
  /** Why it is not bought for this work now, a sentence. Absent: nothing keeps it from any. */
  readonly keepsFrom?: (work: WaitingWork) => string | undefined;
  readonly member: HubMember;
  readonly pools: readonly OfferedPool[];
  /** With so many nodes in each pool; a sentence: why its price is not known. */
  price(nodes: ReadonlyMap<string, number>): ClusterPrice | string;
}

/** A cluster that waits warm, and could take work at once; or asleep, and has to be woken. */
export interface WarmCluster {
  readonly name: string;
  readonly candidate: string;
  /** It is somebody's, and the policy may wake it by this entry. Absent: it is the policy's. */
  readonly entry?: string | undefined;
  /** What it would take. */
  readonly supply: Supply;
  /** What waking it means; absent: it is awake. */
  readonly waking?: Waking | undefined;
  /** Why it would not come if it were woken now, a sentence. Absent: nothing that is known speaks against it. */
  readonly problem?: string | undefined;
  /** The last time it was woken in vain. Absent: it was of use, or that is long ago. */
  readonly unused?: UnusedRest | undefined;
  /** See ClusterOffer. */
  readonly keepsFrom?: ClusterOffer['keepsFrom'];
}

/** What it means to wake a cluster. Money is in millionths of the currency of the policy. */
export interface Waking {
  /** What it costs in an hour when it is awake. */
  readonly hourly: Micros;
  /** With all nodes that autoscalers may add to it: what budgets count then. */
  readonly most: Micros;
  /** What budgets count it with while it sleeps. */
  readonly counted: Micros;
  /** How its time is billed, from when it is woken; undefined: every moment counts. */
  readonly billing?: ClusterBilling | undefined;
  /** How long it takes, milliseconds; undefined: not known. */
  readonly startupMs?: number | undefined;
}

/** A candidate of a policy, as it is now. */
export interface CandidateView {
  readonly name: string;
  readonly priority: number;
  /** How many more clusters of it there may be. */
  readonly left: number;
  /** Why there may be no more, a sentence; absent: the policy says so. */
  readonly noMore?: string;
  /** undefined: `problem` says why there is none. */
  readonly offer: ClusterOffer | undefined;
  /** The same without what its cloud took away a moment ago: that is bought where nothing else takes the work. Absent: it took nothing. */
  readonly steady?: Pick<CandidateView, 'offer' | 'problem'> | undefined;
  /** How many wait warm. Absent: none. */
  readonly warm?: number;
  /** How many wait asleep. Absent: none. */
  readonly asleep?: number;
  /** Why none of it can sleep, a sentence; absent: it can. */
  readonly cannotSleep?: string | undefined;
  /** Of its template: clusters of another one that wait are replaced. Absent: not known. */
  readonly revision?: string;
  /** Why none is made now, a sentence; undefined: it can be. */
  readonly problem: string | undefined;
  /** The last one was bought in vain. Absent: it was of use, or that is long ago. */
  readonly unused?: UnusedRest | undefined;
  /** How long one takes to come, milliseconds; undefined: not known. */
  readonly startupMs?: number | undefined;
}

/** A cluster that a policy has bought. */
export interface OwnCluster {
  /** `namespace/name` of the WorkerCluster, and its name alone. */
  readonly key: string;
  readonly name: string;
  readonly candidate: string;
  /** When it was ordered, or woken last; milliseconds since the epoch. */
  readonly at: number;
  readonly phase: 'Ordered' | 'Making' | 'Waking' | 'Joined' | 'Leaving';
  /** Since when it has no work; undefined: it has some, or nobody can tell. */
  readonly idleSince: number | undefined;
  /** Of one that is to come: since when no work waits for it. Absent: it has come, or some may. */
  readonly unneededSince?: number | undefined;
  /** What budgets count it with. */
  readonly hourly: Micros;
  /** How many nodes count of it. Absent: none. */
  readonly nodes?: number;
  /** How its time is billed, which is counted from `at`; undefined: every moment counts. */
  readonly billing?: ClusterBilling | undefined;
  /** It waits, or is to: it takes no work. */
  readonly warm?: boolean | undefined;
  /** It waits asleep, or is to. */
  readonly sleeps?: boolean | undefined;
  /** Of the template that it was made from. */
  readonly revision?: string | undefined;
  /** Why it will not come, a sentence; undefined: nothing says so. */
  readonly failure: string | undefined;
  /** Somebody's work is seen to run there, whatever else is known. */
  readonly hasWork?: boolean;
  /** Since when it has little work or none; undefined: it has more, nobody can tell, or its policy does not ask. */
  readonly underusedSince?: number | undefined;
  /** Since when its hub is to move its work away; undefined: it is not. */
  readonly emptyingSince?: number | undefined;
  /** An attempt to empty it has failed: there is none before then, milliseconds since the epoch. */
  readonly leftAloneUntil?: number | undefined;
}

/** A cluster of somebody that the policy has woken; its candidate is the entry by which it was. */
export type WokenCluster = Omit<OwnCluster, 'warm' | 'sleeps' | 'revision'>;

/** What a policy allows. Times in milliseconds, money in millionths of its currency. */
export interface Limits {
  readonly pendingForMs: number;
  /** For work of less nothing is bought. Absent: all work counts. */
  readonly minimumPriority?: number | undefined;
  /** How long a cluster may take to come where another is quicker; undefined: as long as it takes. */
  readonly startWithinMs?: number | undefined;
  readonly maximumClusters: number;
  /** Of all clusters, and of what was added to pools of others, together. Absent: no limit. */
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

/** A peak that is known before: so many clusters are there from `from` (milliseconds since the epoch) until `until`. */
export interface Peak {
  readonly name: string;
  /** undefined: clusters of any. */
  readonly candidate: string | undefined;
  readonly clusters: number;
  readonly from: number;
  readonly until: number;
  /** It is what the policy always has: it never ends, and clusters beyond it may be emptied. */
  readonly isMinimum?: true;
}

/** All that a decision rests on. */
export interface ClustersView {
  readonly limits: Limits;
  /** Work of the hub that this policy may serve. */
  readonly waiting: readonly WaitingWork[];
  /** All work of the hub, whoever may serve it: no cluster is emptied while some of it may need the room. Absent: that is all. */
  readonly hubWaiting?: readonly WaitingWork[] | undefined;
  /** More waits than is told here: what none of it needs may be needed all the same. Absent: this is all. */
  readonly isPartial?: boolean;
  /** Clusters of the hub, whoever made them. */
  readonly supply: readonly Supply[];
  readonly candidates: readonly CandidateView[];
  /** Pools that may grow before a cluster is bought. Absent: none. */
  readonly growth?: readonly GrowthView[];
  /** Pods that wait in clusters of the policy for a node, by `namespace/name` of the cluster. Absent: none. */
  readonly lacking?: ReadonlyMap<string, readonly FitPod[]>;
  /** What nodes that were added to pools, and clusters of others that were woken, cost in an hour, as budgets count it. Absent: nothing. */
  readonly grownHourly?: Micros;
  /** How many nodes were added to pools of others. Absent: none. */
  readonly grownNodes?: number;
  /** Clusters of the policy that wait, warm or asleep. Absent: none. */
  readonly warm?: readonly WarmCluster[];
  /** Those that are on, or come next. Absent: none. */
  readonly peaks?: readonly Peak[];
  /** What runs on clusters that have little work, by `namespace/name`; nothing is begun with those that are left out. Absent: none. */
  readonly movable?: ReadonlyMap<string, Movable>;
  /** Clusters of the policy whose work is being moved away. Absent: none. */
  readonly emptying?: readonly EmptyingCluster[];
  /** Why no cluster is to be emptied now, a sentence. Absent: nothing outside of this policy is in the way. */
  readonly unsettled?: string | undefined;
  readonly clusters: readonly OwnCluster[];
  /** Clusters of others that it has woken. Absent: none. */
  readonly woken?: readonly WokenCluster[];
  /** In this month, until now. */
  readonly spent: Micros;
  /** When something was bought, or given back, last; milliseconds since the epoch. */
  readonly lastOut: number | undefined;
  readonly lastIn: number | undefined;
}

/** The work of a cluster, as it would wait for room elsewhere; or what of it cannot go elsewhere, a sentence. */
export type Movable = { readonly work: readonly WaitingWork[] } | { readonly stays: string };

/** A cluster whose work is being moved away. */
export interface EmptyingCluster {
  readonly name: string;
  /** What it takes, if it is to take work again. */
  readonly supply: Supply;
  /** The hub has begun to move its work. */
  readonly hasBegun: boolean;
  /** The hub has nothing placed there any more. */
  readonly isDone: boolean;
  /** Why that cannot go on, a sentence; undefined: it can. */
  readonly problem: string | undefined;
}

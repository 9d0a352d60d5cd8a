import type { NotJudgedReason } from './not-judged.ts';

/** Amounts of a pod or a node, whole numbers: millicores, bytes, bytes, and what else there is by name (GPUs, hugepages). */
export interface Amounts {
  cpu: number;
  memory: number;
  /** Ephemeral storage. */
  storage: number;
  others: ReadonlyMap<string, number>;
}

export type Labels = Readonly<Record<string, string>>;
/** Whether labels are what a selector asks for. */
export type Matches = (labels: Labels) => boolean;

export interface HostPort {
  /** 0.0.0.0: on all addresses. */
  ip: string;
  protocol: string;
  port: number;
}

export interface Toleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
}

/** A hard term of pod affinity or anti-affinity. */
export interface PodTerm {
  topologyKey: string;
  /** Of the pods that it speaks of. */
  matches: Matches;
  /** A label that they all have, as `key=value`; undefined: no one label. */
  label: string | undefined;
  namespaces: ReadonlySet<string>;
  /** Of the labels of their namespaces, besides those that are named; undefined: no others. */
  namespaceMatches: Matches | undefined;
}

/** A topologySpreadConstraint that must hold (DoNotSchedule). */
export interface SpreadConstraint {
  topologyKey: string;
  maxSkew: number;
  minDomains: number;
  /** Whether a pod that is there counts. */
  counts: Matches;
  /** A label that all that count have, as `key=value`; undefined: no one label. */
  label: string | undefined;
  /** Whether the pod itself does: an empty selector counts no other, but itself. */
  countsItself: boolean;
  honorsAffinity: boolean;
  honorsTaints: boolean;
}

/** A claim that a pod uses, in its namespace. */
export interface ClaimUse {
  name: string;
  /** UID of the pod that must own it (an ephemeral volume). */
  owner?: string;
}

/**
 * What decides where a pod fits, made by `fitPod()`. Pods that are alike in all of it share one: what is judged for one holds for all. It
 * has no name for that reason.
 */
export interface FitPod {
  namespace: string;
  labels: Labels;
  /** With init containers, sidecars, pod-level resources and overhead, by the scheduler's rule. */
  requests: Amounts;
  ports: readonly HostPort[];
  /** nodeSelector and required node affinity. */
  acceptsNode: (node: Pick<FitNode, 'name' | 'labels'>) => boolean;
  /** It has neither. */
  acceptsAnyNode: boolean;
  tolerations: readonly Toleration[];
  affinity: readonly PodTerm[];
  antiAffinity: readonly PodTerm[];
  spread: readonly SpreadConstraint[];
  claims: readonly ClaimUse[];
  priority: number;
  /** It is being deleted: spread does not count it, affinity does. */
  terminating: boolean;
  /** What of it is not modelled; empty: it can be judged. */
  notJudged: readonly NotJudgedReason[];
}

export interface NodeTaint {
  key: string;
  value?: string;
  effect: string;
}

/** What decides which pods fit on a node, made by `fitNode()` of a Node, or by `nodeOf()` of a template. */
export interface FitNode {
  name: string;
  labels: Labels;
  taints: readonly NodeTaint[];
  unschedulable: boolean;
  allocatable: Amounts & { pods: number };
  /** Most volumes attached at once, by CSI driver; a driver that is not named has no limit. */
  attachLimits: ReadonlyMap<string, number>;
}

/** A node that could be bought: of this machine type, in this pool, zone and capacity type. */
export interface NodeTemplate {
  /** Unique among the templates that are packed onto. */
  id: string;
  /** Labels of its nodes but the hostname. */
  labels: Labels;
  /** Those that stay: startup taints are gone before pods come. */
  taints: readonly NodeTaint[];
  allocatable: Amounts & { pods: number };
  attachLimits: ReadonlyMap<string, number>;
}

/** A template that is for sale. */
export interface Offer {
  template: NodeTemplate;
  /** Of one node for an hour, in any unit that all offers of a call share. */
  price: number;
  /** Whose limits its nodes count against, such as pool and zone: keys of `limits` of `pack()`. */
  countsAgainst: readonly string[];
  /** Pods that it is not bought for, and why. Absent: none. */
  closedTo?: ReadonlyMap<FitPod, Closed>;
}

/** Why an offer is not for a pod: in a word of the caller's, and for people. */
export interface Closed {
  reason: string;
  why: string;
}

/** The scheduler's plugin that says no. */
export type Plugin =
  | 'NodeUnschedulable'
  | 'TaintToleration'
  | 'NodeAffinity'
  | 'NodePorts'
  | 'NodeResourcesFit'
  | 'VolumeRestrictions'
  | 'NodeVolumeLimits'
  | 'VolumeBinding'
  | 'VolumeZone'
  | 'PodTopologySpread'
  | 'InterPodAffinity'
  /** Said by nobody of kube-scheduler's: Coppice has not looked. */
  | 'Coppice';

export interface Misfit {
  plugin: Plugin;
  /** In kube-scheduler's words, which people search for. */
  message: string;
  /** No node would take it, whatever is bought: something else must change first (a claim is missing, or used by another pod). */
  everywhere: boolean;
}

/** What kube-scheduler would say, or that this is not known. */
export type Verdict =
  | { verdict: 'Fits' }
  | { verdict: 'DoesNotFit'; misfits: readonly Misfit[] }
  | { verdict: 'NotJudged'; reasons: readonly NotJudgedReason[] };

/** A pod that waits, by a key of the caller's (its UID, for example), unique in a call. */
export interface PendingPod {
  key: string;
  pod: FitPod;
  /** It gets room that is there before all others, and a new node only after them: it serves them. */
  isLast?: boolean;
}

/** A node to buy, and who goes there. */
export interface OpenedNode {
  offer: Offer;
  /** As it was packed onto; its name is made up. */
  node: FitNode;
  /** Pods of DaemonSets whose share was taken first. */
  daemons: readonly FitPod[];
  /** Keys. */
  pods: string[];
}

/** Why a pod got no node, on the new ones too. Where both are empty, nothing is for sale. */
export interface Unplaced {
  /** Of new nodes, each reason once. One that holds everywhere is the only one. */
  misfits: readonly Misfit[];
  /** Limits that are reached, of offers that would do. */
  atLimit: readonly string[];
  /** Why offers that would do are closed to it. Absent: none is. */
  closed?: readonly Closed[];
}

export interface Packed {
  /** Key of the pod → name of the node that is there already. */
  placed: Map<string, string>;
  opened: OpenedNode[];
  /** Key → why not. */
  unplaced: Map<string, Unplaced>;
  /** Key → why; these buy nothing. */
  notJudged: Map<string, readonly NotJudgedReason[]>;
}

import type { NotJudgedReason } from './not-judged.ts';

/**
 * Amounts of a pod or a node, whole numbers: millicores, bytes of memory, bytes of storage, and others by name (GPUs,
 * hugepages).
 */
export interface Amounts {
  cpu: number;
  memory: number;
  /** Ephemeral storage. */
  storage: number;
  others: ReadonlyMap<string, number>;
}

export type Labels = Readonly<Record<string, string>>;
/** Whether a selector matches labels. */
export type Matches = (labels: Labels) => boolean;

export interface HostPort {
  /** 0.0.0.0: all addresses. */
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

/** A required term of pod affinity or anti-affinity. */
export interface PodTerm {
  topologyKey: string;
  /** Matches labels of the selected pods. */
  matches: Matches;
  /** A label that all selected pods have, as `key=value`; undefined: none known. */
  label: string | undefined;
  namespaces: ReadonlySet<string>;
  /** Matches labels of further namespaces; undefined: only the named ones. */
  namespaceMatches: Matches | undefined;
}

/** A topologySpreadConstraint with DoNotSchedule. */
export interface SpreadConstraint {
  topologyKey: string;
  maxSkew: number;
  minDomains: number;
  /** Whether an existing pod counts. */
  counts: Matches;
  /** A label that all counted pods have, as `key=value`; undefined: none known. */
  label: string | undefined;
  /** Whether the pod counts itself: an empty selector counts no other pod, but the pod itself. */
  countsItself: boolean;
  honorsAffinity: boolean;
  honorsTaints: boolean;
}

/** A claim that a pod uses, in the pod's namespace. */
export interface ClaimUse {
  name: string;
  /** UID of the pod that must own the claim (an ephemeral volume). */
  owner?: string;
}

/**
 * Everything that decides where a pod fits, made by `fitPod()`. Equal pods share one object, so a verdict on it holds
 * for all; therefore it has no name.
 */
export interface FitPod {
  namespace: string;
  labels: Labels;
  /** Including init containers, sidecars, pod-level resources and overhead, by the scheduler's rule. */
  requests: Amounts;
  ports: readonly HostPort[];
  /** nodeSelector and required node affinity. */
  acceptsNode: (node: Pick<FitNode, 'name' | 'labels'>) => boolean;
  /** Without nodeSelector and node affinity. */
  acceptsAnyNode: boolean;
  tolerations: readonly Toleration[];
  affinity: readonly PodTerm[];
  antiAffinity: readonly PodTerm[];
  spread: readonly SpreadConstraint[];
  claims: readonly ClaimUse[];
  priority: number;
  /** Being deleted: spread does not count it, affinity does. */
  terminating: boolean;
  /** Parts that are not modelled; empty: the pod can be judged. */
  notJudged: readonly NotJudgedReason[];
}

export interface NodeTaint {
  key: string;
  value?: string;
  effect: string;
}

/**
 * Everything that decides which pods fit on a node, made by `fitNode()` from a Node, or by `nodeOf()` from a template.
 */
export interface FitNode {
  name: string;
  labels: Labels;
  taints: readonly NodeTaint[];
  unschedulable: boolean;
  allocatable: Amounts & { pods: number };
  /** Most attached volumes by CSI driver; other drivers have no limit. */
  attachLimits: ReadonlyMap<string, number>;
}

/** A node that could be bought: machine type, pool, zone and capacity type. */
export interface NodeTemplate {
  /** Unique among the templates of a packing. */
  id: string;
  /** Labels of its nodes, except hostname. */
  labels: Labels;
  /** Permanent taints: startup taints are gone before pods arrive. */
  taints: readonly NodeTaint[];
  allocatable: Amounts & { pods: number };
  attachLimits: ReadonlyMap<string, number>;
}

/** A template with a price. */
export interface PricedTemplate {
  template: NodeTemplate;
  /** Price per node and hour, in any unit that all offers of a call share. */
  price: number;
  /** Keys of `limits` of `pack()` that its nodes count against, such as pool and zone. */
  countsAgainst: readonly string[];
  /** Pods that it is not bought for, with reasons. Absent: none. */
  closedTo?: ReadonlyMap<FitPod, Closed>;
}

/** Why an offer is not for a pod: a reason of the caller, and a text for people. */
export interface Closed {
  reason: string;
  why: string;
}

/** The scheduler plugin that rejects. */
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
  /** Not a scheduler plugin: Coppice did not look. */
  | 'Coppice';

export interface Misfit {
  plugin: Plugin;
  /** In kube-scheduler's words, which people search for. */
  message: string;
  /**
   * No node would take the pod, bought or not: something else must change first (a claim is missing, or used by another
   * pod).
   */
  everywhere: boolean;
}

/** kube-scheduler's expected verdict, or unknown. */
export type Verdict =
  | { verdict: 'Fits' }
  | { verdict: 'DoesNotFit'; misfits: readonly Misfit[] }
  | { verdict: 'NotJudged'; reasons: readonly NotJudgedReason[] };

/** A pending pod with a key of the caller (its UID, for example), unique in a call. */
export interface PendingPod {
  key: string;
  pod: FitPod;
  /** A pod that serves the other pods: gets existing room before all others, and a new node only after them. */
  isLast?: boolean;
}

/** A node to buy, and its pods. */
export interface OpenedNode {
  offer: PricedTemplate;
  /** The node as packed, with an invented name. */
  node: FitNode;
  /** DaemonSet pods whose share was reserved first. */
  daemons: readonly FitPod[];
  /** Keys of pods. */
  pods: string[];
}

/** Why a pod got no node, including new ones. Both lists are empty when there are no offers. */
export interface Unplaced {
  /** Faults of new nodes, each once. A fault that holds everywhere is the only one. */
  misfits: readonly Misfit[];
  /** Reached limits of suitable offers. */
  atLimit: readonly string[];
  /** Suitable offers that are closed to the pod. Absent: none. */
  closed?: readonly Closed[];
}

export interface Packed {
  /** Existing node by pod key. */
  placed: Map<string, string>;
  opened: OpenedNode[];
  /** Reason by pod key. */
  unplaced: Map<string, Unplaced>;
  /** Reason by pod key; these pods buy nothing. */
  notJudged: Map<string, readonly NotJudgedReason[]>;
}

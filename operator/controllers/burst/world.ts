import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { Hub } from '../../api/hub.ts';
import type { Quota } from '../../api/quota.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { HubMember, Movable, Supply } from '../../burst/clusters/model.ts';
import type { OfferInputs } from '../../burst/clusters/offer.ts';
import type { NodesPurchase } from '../../burst/clusters/purchases.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { PoolNow } from '../../burst/clusters/receipt-facts.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import type { KnownCapacity } from '../../capacity/offers.ts';
import type { KnownSleepOrder, SleepOrder } from '../../capacity/sleep-order.ts';
import type { Claimant } from '../../cost/admission.ts';
import type { Asking, Demand, PlacedSource, StatusPart } from '../../hubs/contract.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import type { Core } from '../core.ts';
import type { Decision } from '../decided-sizes.ts';
import type { HubWork } from './hub-work.ts';
import type { WaitingSince } from './memory.ts';
import type { EmptyingSight, Outcome, PoolNamed, PoolSeen, Sight } from './seen.ts';

/** Unplaced work of unknown size. */
export interface Unread {
  readonly source: string;
  readonly namespace: string | undefined;
  readonly problem: string;
}

/** A hub's report. */
export interface Heard {
  /** Unplaced work, to track how long each source waits. undefined: its type does not report that. */
  readonly demands: readonly Pick<Demand, 'source' | 'count' | 'each' | 'others'>[] | undefined;
  /** The same work for the planner. */
  readonly work: (waits: ReadonlyMap<string, WaitingSince>, now: number) => HubWork[];
  readonly unread: readonly Unread[];
  /** Placements. Absent: not reported. */
  readonly placed?: readonly PlacedSource[] | undefined;
  /** Questions about held work. Absent: none, or not answered. */
  readonly asking?: Asking | undefined;
}

/**
 * Inputs of decisions about clusters, with the clock. A garden and a rehearsal implement it; everything above is
 * shared. Unless noted, methods are as cheap as a cache read.
 */
export interface BurstSight {
  now(): Date;
  /** With index BY_HUB. */
  readonly policies: { byIndex(index: string, hub: string): readonly BurstPolicy[] };
  readonly hubs: { get(name: string): Hub | undefined };
  /** By `namespace/name`; with index BY_NAMESPACE. */
  readonly clusters: {
    get(key: string): WorkerCluster | undefined;
    byIndex(index: string, namespace: string): readonly WorkerCluster[];
  };
  readonly profiles: { get(name: string): CloudProfile | undefined };
  /** With index BY_NAMESPACE. */
  readonly quotas: { byIndex(index: string, namespace: string): readonly Quota[] };
  readonly capacity: { known(decider: { namespace?: string | undefined; uid?: string | undefined }): KnownCapacity };
  /** All shares of the namespace's quotas. */
  claimants(namespace: string): Claimant[];
  /** Granted size of a cluster. */
  heldBy(cluster: WorkerCluster): ClusterSize | undefined;
  /** Decided sizes of a cluster's pools. */
  decided(cluster: WorkerCluster): Decided;
  sleepOrder(key: string, uid: string): KnownSleepOrder;

  /** Reads a hub. Throws when it does not answer. */
  hear(hub: Hub, signal: AbortSignal): Promise<Heard>;
  /** Questions of a hub without a policy. undefined: none. Throws when it does not answer. */
  asksOf(hub: Hub, signal: AbortSignal): Promise<Asking | undefined>;
  /** Clusters on which a hub may have placed work: members that are not leaving. */
  members(hub: Hub): readonly WorkerCluster[];
  /** A cluster as the hub knows it, or would know a future one. */
  member(hub: Hub, cluster: WorkerCluster): HubMember;
  /** Name of a cluster in a hub. */
  nameIn(hub: string, cluster: WorkerCluster): string;
  /** Work pods on a cluster of this hub; undefined: unknown. */
  workOn(hub: string, cluster: WorkerCluster): readonly Pod[] | undefined;
  /** Reserved resources of a cluster's nodes, and what a hub counts. @param profile of the cluster's place */
  keeps(hub: Hub, cluster: WorkerCluster, profile: CloudProfile): Pick<OfferInputs, 'reserve' | 'daemons' | 'counts'>;
  /** Ready nodes with their pods, as counted by the hub. */
  room(hub: Hub, cluster: WorkerCluster): Supply['nodes'];
  /** Pending pods of a cluster. */
  pending(cluster: WorkerCluster): readonly FitPod[];
  /** Pending pods for which a cluster's autoscaler would buy nodes; empty when it does not answer. */
  lacking(cluster: WorkerCluster): readonly FitPod[];
  /** Pools that Coppice sizes; undefined: unknown, or not open to decisions. */
  pools(hub: Hub, cluster: WorkerCluster, growths: readonly NodesPurchase[]): PoolSeen[] | undefined;
  /** Observed state of a pool. 'gone': it no longer exists; 'unknown': not observable. */
  poolNow(pool: PoolNamed): PoolNow | 'gone' | 'unknown';
  /** State of a cluster in the policy's hub, and its load. */
  sight(policy: BurstPolicy, cluster: WorkerCluster): Omit<Sight, 'cluster' | 'failure' | 'isAwaited'>;
  /** Reported failure of a cluster or of its missing nodes. */
  failure(cluster: WorkerCluster): string | undefined;
  /** Ready nodes of a cluster; empty when it does not answer. */
  readyNodes(cluster: WorkerCluster): readonly Pick<Node, 'status'>[];
  /** Whether somebody's cluster sleeps by its own spec, and is in the hub. */
  sleepsBySpec(hub: Hub, cluster: WorkerCluster): boolean;
  /** Work of a cluster as it would wait elsewhere. May ask the hub and the cluster. */
  movable(hub: Hub, cluster: WorkerCluster, signal: AbortSignal): Promise<Movable>;
  /** Progress of emptying a cluster. */
  emptying(hub: Hub, cluster: WorkerCluster): EmptyingSight;
  /** Whether the hub moves work of a leaving cluster. */
  isMoving(hub: Hub): boolean;
  /** Why the API server would refuse this cluster; undefined: it would not. May ask it. */
  whyRefused(cluster: WorkerCluster, signal: AbortSignal): Promise<string | undefined>;
  /** The object from the API server, bypassing caches. */
  live(name: string, namespace: string, signal: AbortSignal): Promise<WorkerCluster | undefined>;
  /** For a dry-run policy: whether others treat its decisions as done. */
  claims(policy: BurstPolicy): boolean;
}

/** Actions of decisions. Each throws as KubeClient does, and the next cycle repeats it. */
export interface BurstActs {
  /** Receipts of policies. `read` throws for an invalid one. */
  readonly receipts: {
    read(key: string, signal: AbortSignal): Promise<BurstReceipt | undefined>;
    /** Records that `next` replaces `before`, a different or missing receipt. */
    madeFrom(next: BurstReceipt, before: BurstReceipt | undefined): BurstReceipt;
    /** @param before what it was made from; see Receipts.save */
    save(key: string, receipt: BurstReceipt, before: BurstReceipt, signal: AbortSignal): Promise<void>;
    remove(key: string, signal: AbortSignal): Promise<void>;
  };
  /** Adds or removes the policy's finalizer. */
  hold(policy: BurstPolicy, isHeld: boolean, signal: AbortSignal): Promise<void>;
  create(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  patch(cluster: WorkerCluster, patch: ClusterPatch, signal: AbortSignal): Promise<void>;
  delete(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  /** Stores a pool's size. */
  decide(decision: Decision, signal: AbortSignal): Promise<void>;
  /** Stores an order to sleep or to be awake; undefined withdraws it. */
  orderSleep(key: string, uid: string, order: SleepOrder | undefined, signal: AbortSignal): Promise<void>;
  /** Remembers interrupted offers of these clusters. */
  noteInterruptions(clusters: readonly WorkerCluster[]): void;
  /** Reports decisions that are new or newly finished since `before`. */
  told(policy: BurstPolicy, before: readonly BurstDecision[], after: readonly BurstDecision[]): void;
  /** Reports a cycle's result. */
  tell(policy: BurstPolicy, outcome: Outcome, signal: AbortSignal): Promise<void>;
  /** Reports a cycle's error. */
  fail(policy: BurstPolicy, error: unknown): Promise<void>;
  /** Writes an answer into a hub. */
  answer(hub: Hub, part: StatusPart, signal: AbortSignal): Promise<void>;
  recordEvent: Core['recordEvent'];
}

/** A change of a WorkerCluster, as a JSON merge patch. */
export interface ClusterPatch {
  readonly metadata: {
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string | null>>;
  };
  readonly spec?: Partial<WorkerCluster['spec']>;
}

/** World of policies: a garden, a dry run on a garden, or a rehearsal. */
export type BurstWorld = BurstSight & BurstActs;

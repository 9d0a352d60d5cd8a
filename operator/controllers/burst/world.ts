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
import type { Waits } from './memory.ts';
import type { EmptyingSight, Outcome, PoolNamed, PoolSeen, Sight } from './seen.ts';

/** Work of which a hub says that it has no place, and not how much that is. */
export interface Unread {
  readonly source: string;
  readonly namespace: string | undefined;
  readonly problem: string;
}

/** What a hub says now. */
export interface Heard {
  /** What it has no place for, by which it is known how long each source waits. undefined: hubs of its type do not tell. */
  readonly demands: readonly Pick<Demand, 'source' | 'count' | 'each' | 'others'>[] | undefined;
  /** The same as the planner takes it. */
  readonly work: (waits: ReadonlyMap<string, Waits>, now: number) => HubWork[];
  readonly unread: readonly Unread[];
  /** What it has decided to run where. Absent: it does not tell. */
  readonly placed?: readonly PlacedSource[] | undefined;
  /** What it asks about work that it holds. Absent: nothing there asks, or nobody would answer. */
  readonly asking?: Asking | undefined;
}

/**
 * What decisions about clusters are made of, and the clock. A garden and a rehearsal build it by different code; all that is made of it is made
 * once. Where nothing else is said, methods are as cheap as a look into a cache.
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
  /** Everybody in the namespace who has a share of its quotas. */
  claimants(namespace: string): Claimant[];
  /** What a cluster was granted of quotas. */
  heldBy(cluster: WorkerCluster): ClusterSize | undefined;
  /** What was decided for pools of a cluster. */
  decided(cluster: WorkerCluster): Decided;
  sleepOrder(key: string, uid: string): KnownSleepOrder;

  /** What a hub says now. Throws where it does not answer. */
  hear(hub: Hub, signal: AbortSignal): Promise<Heard>;
  /** What a hub asks that no policy names. undefined: nothing there asks. Throws where it does not answer. */
  asksOf(hub: Hub, signal: AbortSignal): Promise<Asking | undefined>;
  /** Clusters in which a hub may have placed work: members that do not leave. */
  members(hub: Hub): readonly WorkerCluster[];
  /** How the hub knows a cluster, or would know one that is not made yet. */
  member(hub: Hub, cluster: WorkerCluster): HubMember;
  /** By what name a hub has a cluster. */
  nameIn(hub: string, cluster: WorkerCluster): string;
  /** Pods of work on a cluster of this hub; undefined: nobody can tell. */
  workOn(hub: string, cluster: WorkerCluster): readonly Pod[] | undefined;
  /** What nodes of a cluster keep for themselves, and what a hub counts of them. @param profile of the place that the cluster is in */
  keeps(hub: Hub, cluster: WorkerCluster, profile: CloudProfile): Pick<OfferInputs, 'reserve' | 'daemons' | 'counts'>;
  /** Ready nodes with what runs there, as the hub counts it. */
  room(hub: Hub, cluster: WorkerCluster): Supply['nodes'];
  /** Pods of a cluster that wait for a node of it. */
  pending(cluster: WorkerCluster): readonly FitPod[];
  /** Pods of a cluster that no node of it takes, and for which its autoscaler would ask for nodes; none where it does not answer. */
  lacking(cluster: WorkerCluster): readonly FitPod[];
  /** Pools of a cluster that are Coppice's to size; undefined: nobody can tell now, or nothing may be decided about it. */
  pools(hub: Hub, cluster: WorkerCluster, growths: readonly NodesPurchase[]): PoolSeen[] | undefined;
  /** What is seen of a pool that Coppice sizes. 'gone': it is no more; 'unknown': nobody can tell now. */
  poolNow(pool: PoolNamed): PoolNow | 'gone' | 'unknown';
  /** Whether a cluster takes work of the policy's hub, and how much runs there. */
  sight(policy: BurstPolicy, cluster: WorkerCluster): Omit<Sight, 'cluster' | 'failure' | 'isAwaited'>;
  /** Why a cluster, or nodes that it lacks, will not come, as far as it says so. */
  failure(cluster: WorkerCluster): string | undefined;
  /** Nodes of a cluster that are Ready; none where it does not answer. */
  readyNodes(cluster: WorkerCluster): readonly Pick<Node, 'status'>[];
  /** Whether somebody's cluster sleeps because its own spec says so, and is in the hub. */
  sleepsBySpec(hub: Hub, cluster: WorkerCluster): boolean;
  /** What runs there, as it would wait for room elsewhere. May ask the hub and the cluster. */
  movable(hub: Hub, cluster: WorkerCluster, signal: AbortSignal): Promise<Movable>;
  /** How far the work of a cluster is moved away. */
  emptying(hub: Hub, cluster: WorkerCluster): EmptyingSight;
  /** Whether work of some cluster of the hub is being moved, as it leaves. */
  isMoving(hub: Hub): boolean;
  /** Why the API server would refuse this cluster; undefined: it would not. May ask it. */
  whyRefused(cluster: WorkerCluster, signal: AbortSignal): Promise<string | undefined>;
  /** As the API server has it, also where no cache has heard of it. */
  live(name: string, namespace: string, signal: AbortSignal): Promise<WorkerCluster | undefined>;
  /** Of a policy that only says what it would do: whether others are to find it done. */
  claims(policy: BurstPolicy): boolean;
}

/** What is done about decisions. Each throws as KubeClient does, and is done again by the next look. */
export interface BurstActs {
  /** What policies have written down. `read` throws where it cannot be understood. */
  readonly receipts: {
    read(key: string, signal: AbortSignal): Promise<BurstReceipt | undefined>;
    /** Says that `next` takes the place of `before`, which is of something else, or of nothing. */
    madeFrom(next: BurstReceipt, before: BurstReceipt | undefined): BurstReceipt;
    /** @param before what it was made from; see Receipts.save */
    save(key: string, receipt: BurstReceipt, before: BurstReceipt, signal: AbortSignal): Promise<void>;
    remove(key: string, signal: AbortSignal): Promise<void>;
  };
  /** Keeps a policy from going before its clusters, or lets it go. */
  hold(policy: BurstPolicy, isHeld: boolean, signal: AbortSignal): Promise<void>;
  create(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  patch(cluster: WorkerCluster, patch: ClusterPatch, signal: AbortSignal): Promise<void>;
  delete(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  /** Writes down what a pool should have. */
  decide(decision: Decision, signal: AbortSignal): Promise<void>;
  /** Writes down that a cluster is to sleep, or to be awake, or that its spec alone says so (undefined). */
  orderSleep(key: string, uid: string, order: SleepOrder | undefined, signal: AbortSignal): Promise<void>;
  /** Remembers what clouds take away of these clusters. */
  noteInterruptions(clusters: readonly WorkerCluster[]): void;
  /** Tells of decisions that were not known before, and of those of which nothing more will become. The oldest first. */
  told(policy: BurstPolicy, fresh: readonly BurstDecision[], ended: readonly BurstDecision[]): void;
  /** Tells what a look has come to. */
  tell(policy: BurstPolicy, outcome: Outcome, signal: AbortSignal): Promise<void>;
  /** Tells what a look has thrown. */
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

/** The world of policies: a garden, a garden on which nothing is done, or a rehearsal. */
export type BurstWorld = BurstSight & BurstActs;

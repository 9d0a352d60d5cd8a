import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Ignored, ReplicaDemand } from '../../burst/demand.ts';
import type { ClusterState } from '../../burst/fit/state.ts';
import type { PoolView } from '../../burst/nodes/model.ts';
import type { NodesView } from '../../burst/nodes/plan.ts';
import type { Decided, DecidedSize } from '../../capacity/desired-sizes.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import type { Claimant } from '../../cost/admission.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import type { Emptied, EvictionTurn } from './empty-node.ts';
import type { ClusterMemory } from './memory.ts';
import type { Daemon, PoolAsked } from './nodes-seen.ts';

/**
 * Inputs of a decision about one cluster's nodes, with the clock. A garden and a rehearsal implement it; everything
 * above is shared.
 */
export interface NodesSight {
  now(): Date;
  /** Runs the steps of an observation or a decision. A garden pauses between them. */
  run<T>(steps: Steps<T>, signal: AbortSignal): Promise<T>;
  /** The cluster as written for its place, with that place's CloudProfile. */
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** Decided sizes of its pools. */
  readonly decided: Exclude<Decided, 'unknown'>;
  /** Nodes by name. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** UIDs of all its pods. */
  readonly podIDs: ReadonlySet<string>;
  /** Running pods by node. */
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Its DaemonSets with expected pods. */
  readonly daemons: readonly Daemon[];
  /** Demand of pending pods, and ignored ones. */
  waiting(memory: Pick<ClusterMemory, 'nominatedMs'>): Steps<{
    demands: readonly ReplicaDemand[];
    ignored: readonly Ignored[];
  }>;
  /**
   * Expected next node of a pool, or why there is none.
   * @param siblings its Ready nodes, then the last seen of each machine type
   * @param models from learnNodes()
   */
  offer(pool: DesiredPool, siblings: readonly Node[], models: PoolMemory['types']): Pick<PoolView, 'offer' | 'soldOut'>;
  /** State with expected nodes and running pods. @param own pools that Coppice sizes, with their `views` */
  room(nodes: readonly Node[], own: readonly DesiredPool[], views: readonly PoolView[]): Steps<ClusterState>;
  /** Last requested parts of pools. */
  readonly parts: readonly PoolAsked[];
  /** Whether a cloud was asked to end named nodes and has not answered. */
  readonly isRemoving: boolean;
  /** Whether nodes must be empty before removal: a cloud does not drain. */
  readonly isManaged: boolean;
  /** Why nodes cannot be removed here; absent: they can. */
  readonly noShrinking?: string;
  /** See ShrinkView. */
  readonly whyBlocked?: NodesView['whyBlocked'];
  /** Changes by time alone, milliseconds since the epoch. @param nodes that stay */
  changesAt(nodes: readonly Node[]): readonly number[];
  /** Quotas of its namespace. */
  readonly quotas: readonly Quota[];
  /** All cluster shares of its namespace's quotas. */
  claimants(): readonly Claimant[];
  /** Granted size. */
  readonly held: ClusterSize | undefined;
}

/** Actions on nodes. Each throws as KubeClient does, and the next cycle repeats it. */
export interface NodesActs {
  /** Cordons a node and records the time. */
  beginEmptying(node: Node, signal: AbortSignal): Promise<void>;
  /** Uncordons a node. */
  endEmptying(node: Node, signal: AbortSignal): Promise<void>;
  /** Marks a node to be removed first. Does nothing if marked. */
  markEmpty(node: Node, signal: AbortSignal): Promise<void>;
  /** Evicts pods that must leave a node. @param pods all pods of the node */
  evict(node: Node, pods: readonly Pod[], turn: EvictionTurn): Promise<Emptied>;
  /** Stores a pool's size. */
  decide(pool: DesiredPool, size: DecidedSize, signal: AbortSignal): Promise<void>;
  recordEvent(type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** World of one cluster's nodes for one cycle: a garden, or a rehearsal. */
export type NodesWorld = NodesSight & NodesActs;

import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { Demand, Ignored } from '../../burst/demand.ts';
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
 * What a decision about the nodes of one cluster is made of, and the clock. A garden and a rehearsal build it by different code; all that is made
 * of it is made once.
 */
export interface NodesSight {
  now(): Date;
  /** Goes through the steps of a decision. A garden pauses between them. */
  run<T>(steps: Steps<T>, signal: AbortSignal): Promise<T>;
  /** As it is written for the place that it is in, with the CloudProfile of that. */
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile;
  /** What was decided for its pools. */
  readonly decided: Exclude<Decided, 'unknown'>;
  /** Its nodes by name. */
  readonly nodes: ReadonlyMap<string, Node>;
  /** UIDs of all its pods. */
  readonly podIDs: ReadonlySet<string>;
  /** Pods that have not ended, by the name of their node. */
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Its DaemonSets, as their pods would be on a node to come. */
  readonly daemons: readonly Daemon[];
  /** Pods that wait for a node, and those that no node cures. */
  waiting(memory: Pick<ClusterMemory, 'nominatedMs'>): { demands: readonly Demand[]; ignored: readonly Ignored[] };
  /**
   * What the next node of a pool would be; or why there is none.
   * @param siblings its nodes that are Ready, then those that were last seen of each machine type
   * @param models what learnNodes() knows
   */
  offer(pool: DesiredPool, siblings: readonly Node[], models: PoolMemory['types']): Pick<PoolView, 'offer' | 'soldOut'>;
  /** Nodes as they are once they are up, and what runs on them. @param own pools that are Coppice's to size, as `views` has them */
  room(nodes: readonly Node[], own: readonly DesiredPool[], views: readonly PoolView[]): ClusterState;
  /** What pools were divided into when they were asked for last. */
  readonly parts: readonly PoolAsked[];
  /** Whether a cloud was asked to end named nodes and has not answered. */
  readonly isRemoving: boolean;
  /** Whether who takes named nodes away relies on their being empty: a cloud that is asked to end one drains nothing. */
  readonly isManaged: boolean;
  /** Why nodes cannot be taken away here at all; absent: they can. */
  readonly noShrinking?: string;
  /** See ShrinkView. */
  readonly whyBlocked?: NodesView['whyBlocked'];
  /** When something of this is seen otherwise though nothing happens, milliseconds since the epoch. @param nodes that stay */
  changesAt(nodes: readonly Node[]): readonly number[];
  /** Quotas of its namespace. */
  readonly quotas: readonly Quota[];
  /** Everybody in its namespace who has a share of its quotas. */
  claimants(): readonly Claimant[];
  /** What it was granted of quotas. */
  readonly held: ClusterSize | undefined;
}

/** What is done about nodes. Each throws as KubeClient does, and is done again by the next look. */
export interface NodesActs {
  /** Has nothing new go to a node, and notes since when. */
  beginEmptying(node: Node, signal: AbortSignal): Promise<void>;
  /** Has a node take pods again. */
  endEmptying(node: Node, signal: AbortSignal): Promise<void>;
  /** Has whoever takes machines away take this one first. Does nothing where that is so. */
  markEmpty(node: Node, signal: AbortSignal): Promise<void>;
  /** Asks pods that must leave a node to do so. @param pods all that are there */
  evict(node: Node, pods: readonly Pod[], turn: EvictionTurn): Promise<Emptied>;
  /** Writes down what a pool should have. */
  decide(pool: DesiredPool, size: DecidedSize, signal: AbortSignal): Promise<void>;
  recordEvent(type: 'Normal' | 'Warning', reason: string, message: string): void;
}

/** The world of the nodes of one cluster, for one look: a garden, or a rehearsal. */
export type NodesWorld = NodesSight & NodesActs;

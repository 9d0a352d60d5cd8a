import type { Pod } from '../../kube/resources.ts';
import type { NodeTemplate } from '../fit/model.ts';
import type { Disruption } from './budgets.ts';

/** A pool of nodes that is Coppice's to size. */
export interface PoolView {
  readonly name: string;
  /** Nodes that it should have now, those that are yet to come included. */
  readonly count: number;
  readonly minimum: number;
  readonly maximum: number;
  /** Nodes that there are, without those on their way out. */
  readonly present: number;
  /** When `count` was decided, milliseconds since the epoch. Absent: nobody knows, or nobody decided. */
  readonly decidedAt?: number;
  /** What its next node would be, and costs an hour. Absent: nothing is to be had, see `soldOut`. */
  readonly offer?: {
    readonly template: NodeTemplate;
    readonly price: number;
    /**
     * It is bought where nothing else takes the pods: a cloud took such machines away a moment ago, or a DaemonSet is larger than they are.
     * Absent: none of these.
     */
    readonly isLast?: true;
  };
  /** Whether its nodes have GPUs, for a pool without an offer. Absent: they have none. */
  readonly hasGPUs?: true;
  /** Why nothing is to be bought now: for people. */
  readonly soldOut?: string;
  /** Pods, by their likeness, for which none is bought, since one that came did not take them; and why. Absent: none. */
  readonly noHelp?: ReadonlyMap<string, string>;
  /** Absent: as many nodes may go at once as nobody needs. */
  readonly disruption?: Disruption;
}

/** A pool is to have another size. */
export interface SizeChange {
  readonly pool: string;
  readonly count: number;
  readonly why: string;
  /** Likeness of the pods that nodes are bought for. Absent: for none, or nobody keeps that. */
  readonly pods?: readonly string[];
}

/** A node of a pool that is Coppice's to size. */
export interface NodeView {
  readonly name: string;
  readonly pool: string;
  /** Of its machine for an hour, in the unit of PoolView. */
  readonly price: number;
  /** Pods there that must leave before it goes. */
  readonly pods: readonly Pod[];
  /** Why it may not be taken away; absent: it may. */
  readonly stays?: string;
  /** Whether it is being emptied already. */
  readonly isEmptying: boolean;
}

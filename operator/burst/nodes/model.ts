import type { Pod } from '../../kube/resources.ts';
import type { NodeTemplate } from '../fit/model.ts';
import type { Disruption } from './budgets.ts';

/** A pool that Coppice sizes. */
export interface PoolView {
  readonly name: string;
  /** Desired number of nodes, including ordered ones. */
  readonly count: number;
  readonly minimum: number;
  readonly maximum: number;
  /** Existing nodes, except those being deleted. */
  readonly present: number;
  /** When `count` was decided, milliseconds since the epoch. Absent: unknown, or not decided. */
  readonly decidedAt?: number;
  /** Its next node and its price per hour. Absent: see `soldOut`. */
  readonly offer?: {
    readonly template: NodeTemplate;
    readonly price: number;
    /** Bought only as a last resort: recently interrupted by the cloud, or too small for a DaemonSet. Absent: no. */
    readonly isLast?: true;
  };
  /** Whether its nodes have GPUs, for a pool without an offer. Absent: no. */
  readonly hasGPUs?: true;
  /** Why nothing can be bought now, for people. */
  readonly soldOut?: string;
  /**
   * Pods, by likeness, that buy no node of this pool because a bought one did not take them, with reasons. Absent:
   * none.
   */
  readonly noHelp?: ReadonlyMap<string, string>;
  /** Absent: no disruption budget. */
  readonly disruption?: Disruption;
}

/** A new size of a pool. */
export interface SizeChange {
  readonly pool: string;
  readonly count: number;
  readonly why: string;
  /** Likeness of the pods that nodes are bought for. Absent: none, or not tracked. */
  readonly pods?: readonly string[];
}

/** A node of a pool that Coppice sizes. */
export interface NodeView {
  readonly name: string;
  readonly pool: string;
  /** Price of its machine per hour, in the unit of PoolView. */
  readonly price: number;
  /** Its pods that must leave before it is removed. */
  readonly pods: readonly Pod[];
  /** Why it must not be removed; absent: it may. */
  readonly stays?: string;
  /** Whether it is being drained. */
  readonly isEmptying: boolean;
}

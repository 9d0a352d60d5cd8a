import type { Micros } from '../../cost/money.ts';
import type { ClusterPrice, WaitingWork, Waking } from './model.ts';

/** What else there was to choose, or why not. */
export interface Alternative {
  readonly candidate: string;
  readonly hourly?: Micros;
  readonly whyNot?: string;
}

/** How many nodes a pool may have at most. */
export interface Grant {
  readonly nodes: number;
  /** What budgets count an hour of one node with. */
  readonly each: Micros;
}

/** What is to be bought, or put to use, or emptied. */
export type Order = ClusterOrder | NodesOrder | GrantOrder | OpenOrder | WakeOrder | EmptyOrder;

/** A cluster to buy. */
export interface ClusterOrder {
  readonly kind: 'cluster';
  readonly candidate: string;
  /** Nodes by pool. */
  readonly nodes: Readonly<Record<string, number>>;
  /** How many autoscalers may make of them. Absent: no more. */
  readonly mostNodes?: number;
  /** Nodes that are granted to pools that Coppice sizes, and what one of them counts for in an hour. Absent: it has no such pools. */
  readonly granted?: Readonly<Record<string, Grant>>;
  readonly price: ClusterPrice;
  readonly sources: readonly string[];
  readonly why: string;
  readonly alternatives: readonly Alternative[];
  /** How it is to wait. Absent: it takes work. */
  readonly waits?: 'warm' | 'asleep' | undefined;
  readonly revision?: string | undefined;
}

/** A cluster of the policy that waited warm and is to take work. */
export interface OpenOrder {
  readonly kind: 'open';
  readonly name: string;
  readonly candidate: string;
  readonly sources: readonly string[];
  readonly why: string;
}

/** A cluster that sleeps and is to be woken for work. */
export interface WakeOrder {
  readonly kind: 'wake';
  readonly name: string;
  readonly candidate: string;
  readonly sources: readonly string[];
  readonly why: string;
  readonly waking: Waking;
  /** It is somebody's, and woken by this entry. Absent: it is the policy's. */
  readonly entry?: string | undefined;
  /** What else there was to choose. Absent: nothing. */
  readonly alternatives?: readonly Alternative[];
}

/** Nodes to add to a pool. */
export interface NodesOrder {
  readonly kind: 'nodes';
  /** Of the entry of the policy; undefined: the cluster is the policy's. */
  readonly entry: string | undefined;
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly pool: string;
  /** How many more. */
  readonly nodes: number;
  /** What one of them costs in an hour, as budgets count it. */
  readonly each: Micros;
  /** So many of them are granted to a pool of the policy's own cluster. Absent: all of them were granted before, or the cluster is somebody's. */
  readonly granted?: number;
  readonly sources: readonly string[];
  readonly why: string;
}

/** Nodes that a pool of a cluster of the policy may have more: for pods that wait in that cluster, for which its autoscaler asks. */
export interface GrantOrder {
  readonly kind: 'grant';
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly pool: string;
  /** How many more. */
  readonly nodes: number;
  /** What budgets count an hour of one of them with. */
  readonly each: Micros;
  readonly why: string;
}

/** A cluster whose work its hub is to move away, so that it can be given back. */
export interface EmptyOrder {
  readonly kind: 'empty';
  readonly name: string;
  readonly why: string;
}

/** A cluster that was being emptied and takes work again. */
export interface Kept {
  readonly name: string;
  readonly why: string;
  /** It could not be emptied: it is left alone for a while. */
  readonly isFailure: boolean;
}

/** A cluster to give back. */
export interface Removal {
  readonly name: string;
  readonly why: string;
  /** It did not come: its candidate rests. */
  readonly isFailure: boolean;
  /** It is put to sleep, and not given back. */
  readonly toSleep?: true;
  /** It is somebody's that was woken: it sleeps again as its spec says. */
  readonly isOthers?: true;
}

/** What becomes of waiting work. */
export type WorkState =
  /** It fits on what is there: the hub has yet to place it. */
  | 'Fits'
  /** Room is on its way. */
  | 'RoomOrdered'
  /** It has not waited long enough. */
  | 'Stabilising'
  /** A purchase was made a moment ago. */
  | 'CoolingDown'
  | 'Bought'
  /** Nodes are added for it to clusters that are there, and no cluster is bought. */
  | 'Growing'
  /** A cluster that waited warm takes it, and none is bought. */
  | 'Opened'
  /** A cluster that sleeps is woken for it, and none is bought. */
  | 'Waking'
  | 'Suspended'
  /** There is more than is looked at in one go. */
  | 'Later'
  /** Its priority is less than what the policy buys for. */
  | 'LowPriority'
  /** Nothing may be bought for it. */
  | 'Refused';

export interface WorkVerdict {
  readonly source: string;
  readonly state: WorkState;
  readonly message: string;
  /** Of a refusal. */
  readonly alternatives?: readonly Alternative[];
}

/** What is to be done now. */
export interface ClustersPlan {
  /** In the order in which the receipt takes them. Of kind `empty` there is one at most. */
  readonly orders: readonly Order[];
  readonly removals: readonly Removal[];
  readonly kept: readonly Kept[];
  /** Why clusters are not emptied that have little work: sentences, by name. */
  readonly stays: ReadonlyMap<string, string>;
  readonly verdicts: readonly WorkVerdict[];
  /** Work that another policy may serve: this one does not. */
  readonly left: readonly WaitingWork[];
  /** Clusters that waiting work would go to, as `namespace/name`: they are idle from now on at the earliest. */
  readonly needed: ReadonlySet<string>;
  /** When something changes by the clock alone, milliseconds since the epoch; undefined: nothing does. */
  readonly next: number | undefined;
}

/** The orders of one kind. */
export const ordersOf = <Kind extends Order['kind']>(
  orders: readonly Order[],
  kind: Kind,
): Extract<Order, { readonly kind: Kind }>[] =>
  orders.filter((one): one is Extract<Order, { readonly kind: Kind }> => one.kind === kind);

import type { Micros } from '../../cost/money.ts';
import type { ClusterPrice, WaitingWork, Waking } from './model.ts';

/** An option that was not chosen, and why. */
export interface Alternative {
  readonly candidate: string;
  readonly hourly?: Micros;
  readonly whyNot?: string;
}

/** Most nodes that a pool may have. */
export interface Grant {
  readonly nodes: number;
  /** Cost per node and hour that budgets count. */
  readonly each: Micros;
}

/** An order: cluster, nodes, grant, opening, wake-up, emptying or cut. */
export type Order = ClusterOrder | NodesOrder | GrantOrder | OpenOrder | WakeOrder | EmptyOrder | CutOrder;

/** A cluster to buy. */
export interface ClusterOrder {
  readonly kind: 'cluster';
  readonly candidate: string;
  /** Nodes by pool. */
  readonly nodes: Readonly<Record<string, number>>;
  /** Most nodes with autoscalers. Absent: the same. */
  readonly mostNodes?: number;
  /** Grants of pools that Coppice sizes. Absent: no such pools. */
  readonly granted?: Readonly<Record<string, Grant>>;
  readonly price: ClusterPrice;
  readonly sources: readonly string[];
  readonly why: string;
  readonly alternatives: readonly Alternative[];
  /** How it waits. Absent: it takes work. */
  readonly waits?: 'warm' | 'asleep' | undefined;
  readonly revision?: string | undefined;
}

/** A warm cluster of the policy to open for work. */
export interface OpenOrder {
  readonly kind: 'open';
  readonly name: string;
  readonly candidate: string;
  readonly sources: readonly string[];
  readonly why: string;
}

/** A sleeping cluster to wake for work. */
export interface WakeOrder {
  readonly kind: 'wake';
  readonly name: string;
  readonly candidate: string;
  readonly sources: readonly string[];
  readonly why: string;
  readonly waking: Waking;
  /** It is not the policy's own and is woken by this entry. Absent: it is the policy's. */
  readonly entry?: string | undefined;
  /** Alternatives. Absent: none. */
  readonly alternatives?: readonly Alternative[];
}

/** Nodes to add to a pool. */
export interface NodesOrder {
  readonly kind: 'nodes';
  /** Name of the policy's entry; undefined: the cluster is the policy's. */
  readonly entry: string | undefined;
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly pool: string;
  /** How many more nodes. */
  readonly nodes: number;
  /** Cost per node and hour that budgets count. */
  readonly each: Micros;
  /** How many of them are newly granted to the policy's own pool. Absent: none, or the cluster is somebody's. */
  readonly granted?: number;
  readonly sources: readonly string[];
  readonly why: string;
}

/** A raised grant of a pool in the policy's own cluster, for pods that wait there: its autoscaler buys the nodes. */
export interface GrantOrder {
  readonly kind: 'grant';
  /** `namespace/name` of the WorkerCluster. */
  readonly cluster: string;
  readonly pool: string;
  /** How many more nodes. */
  readonly nodes: number;
  /** Cost per node and hour that budgets count. */
  readonly each: Micros;
  readonly why: string;
}

/** A cluster to empty, so that it can be given back. */
export interface EmptyOrder {
  readonly kind: 'empty';
  readonly name: string;
  readonly why: string;
}

/** An ordered cluster that is to start with fewer nodes. The receipt follows the spec of its WorkerCluster. */
export interface CutOrder {
  readonly kind: 'cut';
  readonly name: string;
  /** Remaining nodes, by pool. Other pools stay as they are. */
  readonly nodes: Readonly<Record<string, number>>;
  readonly why: string;
}

/** Nodes that an order needs for its work; fewer than ordered in at least one pool. By pool. */
export interface OrderNeed {
  readonly ordered: ReadonlyMap<string, number>;
  readonly nodes: ReadonlyMap<string, number>;
}

/** A cluster whose emptying stops. */
export interface Kept {
  readonly name: string;
  readonly why: string;
  /** Emptying failed: no further try for a while. */
  readonly isFailure: boolean;
}

/** A cluster to give back. */
export interface ClusterRemoval {
  readonly name: string;
  readonly why: string;
  /** It did not come: its candidate rests. */
  readonly isFailure: boolean;
  /** It is put to sleep instead of given back. */
  readonly toSleep?: true;
  /** It is a woken cluster of somebody else: it sleeps again by its own spec. */
  readonly isOthers?: true;
}

/** What happens with waiting work. */
export type WorkState =
  /** It fits on existing nodes: the hub has yet to place it. */
  | 'Fits'
  /** Room is ordered. */
  | 'RoomOrdered'
  /** It has not waited long enough. */
  | 'Stabilising'
  /** A purchase was made recently. */
  | 'CoolingDown'
  | 'Bought'
  /** Existing clusters get more nodes for it. */
  | 'Growing'
  /** A warm cluster is opened for it. */
  | 'Opened'
  /** A sleeping cluster is woken for it. */
  | 'Waking'
  | 'Suspended'
  /** There is more work than one decision looks at. */
  | 'Later'
  /** Its priority is below the policy's minimum. */
  | 'LowPriority'
  /** No purchase is possible. */
  | 'Refused';

export interface WorkVerdict {
  readonly source: string;
  readonly state: WorkState;
  readonly message: string;
  /** For a refusal. */
  readonly alternatives?: readonly Alternative[];
}

/** A decision. */
export interface ClustersPlan {
  /** In the order in which the receipt applies them. At most one is of kind `empty`. */
  readonly orders: readonly Order[];
  readonly removals: readonly ClusterRemoval[];
  readonly kept: readonly Kept[];
  /** Why underused clusters are not emptied: sentences, by name. */
  readonly stays: ReadonlyMap<string, string>;
  readonly verdicts: readonly WorkVerdict[];
  /** Work that this policy does not serve and another one may. */
  readonly left: readonly WaitingWork[];
  /** Clusters that waiting work would go to, as `namespace/name`: their idle time starts now at the earliest. */
  readonly needed: ReadonlySet<string>;
  /** Ordered clusters, as `namespace/name`, whose work needs fewer nodes than ordered. */
  readonly needs: ReadonlyMap<string, OrderNeed>;
  /** Next change by time alone, milliseconds since the epoch; undefined: none. */
  readonly next: number | undefined;
}

/** Orders of one kind. */
export const ordersOf = <Kind extends Order['kind']>(
  orders: readonly Order[],
  kind: Kind,
): Extract<Order, { readonly kind: Kind }>[] =>
  orders.filter((one): one is Extract<Order, { readonly kind: Kind }> => one.kind === kind);

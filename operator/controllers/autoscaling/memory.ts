import { ANNOTATIONS } from '../../api/group.ts';
import type { Node } from '../../kube/resources.ts';

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/** Rest of a node whose drain failed, milliseconds; doubles each time, up to an hour. */
const FIRST_BACKOFF_MS = 5 * 60_000;
const LONGEST_BACKOFF_MS = 60 * 60_000;

/** Memory about a cluster between cycles. Losing it only delays the removal of nodes. */
export class ClusterMemory {
  /** UID of the WorkerCluster. */
  readonly uid: string;
  /** Since when a node is unneeded, milliseconds since the epoch. */
  readonly unneededSince = new Map<string, number>();
  /** UIDs of pods whose eviction got no answer. */
  readonly unanswered = new Set<string>();
  readonly #givenUp = new Map<string, { until: number; times: number; why: string }>();
  /** By pod UID: nominated node, and since when. */
  readonly #nominated = new Map<string, { node: string; since: number }>();
  /** Pools with nodes that a disruption budget keeps. */
  #held: ReadonlySet<string> = new Set();
  /** Last seen node by pool and machine type. */
  readonly #seen = new Map<string, Node>();

  /** By node: number of pods yet to leave, and time of its last decrease. */
  readonly #left = new Map<string, { left: number; at: number }>();
  /** UIDs of nodes seen Ready; undefined: no cycle yet. */
  #ready: Set<string> | undefined;

  constructor(uid: string) {
    this.uid = uid;
  }

  /**
   * Nodes of a pool, followed by the last seen node of each machine type. Without the latter, a wrong estimate would be
   * repeated, with another purchase, once the disproving node is gone.
   */
  alsoGone(pool: string, there: readonly Node[]): readonly Node[] {
    for (const node of there) this.#seen.set(`${pool}/${node.metadata.labels?.[INSTANCE_TYPE]}`, node);
    const gone = [...this.#seen].flatMap(([key, node]) => (key.startsWith(`${pool}/`) ? [node] : []));
    return [...there, ...gone];
  }

  /**
   * Nodes that are Ready for the first time. Empty in the first cycle, when that is unknown.
   * @param nodes all Ready nodes
   */
  readyNow(nodes: readonly Node[]): ReadonlySet<Node> {
    const before = this.#ready;
    this.#ready = new Set(nodes.map(idOf).concat([...(before ?? [])]));
    return new Set(before ? nodes.filter((node) => !before.has(idOf(node))) : []);
  }

  /** Records exactly these nodes as unneeded. */
  unneeded(nodes: readonly string[], now: number): void {
    const all = new Set(nodes);
    for (const known of this.unneededSince.keys()) if (!all.has(known)) this.unneededSince.delete(known);
    for (const node of nodes) if (!this.unneededSince.has(node)) this.unneededSince.set(node, now);
  }

  /** Records exactly these pools as kept by budgets. @returns the new ones */
  heldBack(pools: readonly string[]): string[] {
    const begun = pools.filter((pool) => !this.#held.has(pool));
    this.#held = new Set(pools);
    return begun;
  }

  /** Time of the last decrease of a node's pods, milliseconds since the epoch. */
  lastLeft(node: string, left: number, now: number): number {
    const known = this.#left.get(node);
    // A restarted operator does not know whether pods have left.
    if (!known) this.#left.set(node, { left, at: Number.NEGATIVE_INFINITY });
    else if (left < known.left) this.#left.set(node, { left, at: now });
    return this.#left.get(node)!.at;
  }

  /** Records a failed drain. */
  giveUp(node: string, why: string, now: number): void {
    const times = (this.#givenUp.get(node)?.times ?? 0) + 1;
    const until = now + Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (times - 1));
    this.#givenUp.set(node, { until, times, why });
  }

  /** Why a node rests; undefined: it does not. */
  leftAlone(node: string, now: number): { until: number; why: string } | undefined {
    const known = this.#givenUp.get(node);
    return known && known.until > now ? known : undefined;
  }

  /** How long a pod has been nominated for this node, milliseconds. */
  nominatedMs(pod: string, node: string, now: number): number {
    const known = this.#nominated.get(pod);
    if (known?.node === node) return now - known.since;
    this.#nominated.set(pod, { node, since: now });
    return 0;
  }

  /** Forgets missing nodes and pods. */
  keepOnly(nodes: ReadonlyMap<string, Node>, pods: ReadonlySet<string>): void {
    for (const node of this.#givenUp.keys()) if (!nodes.has(node)) this.#givenUp.delete(node);
    for (const node of this.#left.keys())
      if (!nodes.get(node)?.metadata.annotations?.[ANNOTATIONS.emptiedSince]) this.#left.delete(node);
    const ids = new Set([...nodes.values()].map(idOf));
    for (const id of this.#ready ?? []) if (!ids.has(id)) this.#ready!.delete(id);
    for (const pod of this.unanswered) if (!pods.has(pod)) this.unanswered.delete(pod);
    for (const pod of this.#nominated.keys()) if (!pods.has(pod)) this.#nominated.delete(pod);
  }
}

const idOf = ({ metadata: { uid, name } }: Node): string => uid ?? name;

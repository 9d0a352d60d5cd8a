import { ANNOTATIONS } from '../../api/group.ts';
import type { Node } from '../../kube/resources.ts';

const INSTANCE_TYPE = 'node.kubernetes.io/instance-type';

/** A node that could not be emptied is left alone for this long, milliseconds; each further time twice as long, up to an hour. */
const FIRST_BACKOFF_MS = 5 * 60_000;
const LONGEST_BACKOFF_MS = 60 * 60_000;

/** What is known of one cluster from look to look. All of it may be lost: then nodes stay longer than they had to. */
export class ClusterMemory {
  /** UID of the WorkerCluster. */
  readonly uid: string;
  /** Since when nobody needs a node, milliseconds since the epoch. */
  readonly unneededSince = new Map<string, number>();
  /** UIDs of pods of which nobody answered an eviction. */
  readonly unanswered = new Set<string>();
  readonly #givenUp = new Map<string, { until: number; times: number; why: string }>();
  /** UID of a pod → node that it was first seen to be nominated for, and when. */
  readonly #nominated = new Map<string, { node: string; since: number }>();
  /** Pools of which a disruption budget holds nodes back. */
  #held: ReadonlySet<string> = new Set();
  /** Pool and machine type → a node as it was last seen there. */
  readonly #seen = new Map<string, Node>();

  /** Name of a node → pods that had to leave it when it was looked at last, and when fewer had left to. */
  readonly #left = new Map<string, { left: number; at: number }>();
  /** UIDs of nodes that have been seen Ready; undefined: nobody has looked yet. */
  #ready: Set<string> | undefined;

  constructor(uid: string) {
    this.uid = uid;
  }

  /**
   * Nodes of a pool, the ones that are there first, then those that were last seen of each machine type. Without these, a guess that was too
   * high would be made again once the node is gone that has shown it, and another one bought.
   */
  alsoGone(pool: string, there: readonly Node[]): readonly Node[] {
    for (const node of there) this.#seen.set(`${pool}/${node.metadata.labels?.[INSTANCE_TYPE]}`, node);
    const gone = [...this.#seen].flatMap(([key, node]) => (key.startsWith(`${pool}/`) ? [node] : []));
    return [...there, ...gone];
  }

  /**
   * Which of the nodes that are Ready were not before. Of those that are at the first look nobody knows.
   * @param nodes all that are Ready
   */
  readyNow(nodes: readonly Node[]): ReadonlySet<Node> {
    const before = this.#ready;
    this.#ready = new Set(nodes.map(idOf).concat([...(before ?? [])]));
    return new Set(before ? nodes.filter((node) => !before.has(idOf(node))) : []);
  }

  /** These nodes are unneeded now, and no others. */
  unneeded(nodes: readonly string[], now: number): void {
    const all = new Set(nodes);
    for (const known of this.unneededSince.keys()) if (!all.has(known)) this.unneededSince.delete(known);
    for (const node of nodes) if (!this.unneededSince.has(node)) this.unneededSince.set(node, now);
  }

  /** Nodes of these pools are held back now, and of no others. @returns those of which none was before */
  heldBack(pools: readonly string[]): string[] {
    const begun = pools.filter((pool) => !this.#held.has(pool));
    this.#held = new Set(pools);
    return begun;
  }

  /** When the number of pods that have to leave a node was first seen to be what it is, milliseconds since the epoch. */
  lastLeft(node: string, left: number, now: number): number {
    const known = this.#left.get(node);
    // An operator that has just begun does not know whether some have left.
    if (!known) this.#left.set(node, { left, at: Number.NEGATIVE_INFINITY });
    else if (left < known.left) this.#left.set(node, { left, at: now });
    return this.#left.get(node)!.at;
  }

  /** A node could not be emptied. */
  giveUp(node: string, why: string, now: number): void {
    const times = (this.#givenUp.get(node)?.times ?? 0) + 1;
    const until = now + Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (times - 1));
    this.#givenUp.set(node, { until, times, why });
  }

  /** Why a node is left alone for now; undefined: it is not. */
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

  /** Forgets nodes and pods that are no more. */
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

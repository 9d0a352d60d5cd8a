import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { isMovable } from '../../kube/pods.ts';
import type { KubeObject, Node, Pod, Resource } from '../../kube/resources.ts';
import { emptiedSince } from './empty-node.ts';

/** Cache time of PodDisruptionBudgets, which change with each Ready pod. Milliseconds. */
export const BUDGETS_FRESH_MS = 5_000;
/** Cache time of DaemonSets while pods wait, and while none does. Milliseconds. */
export const DAEMONSETS_FRESH_MS = 10_000;
export const DAEMONSETS_FRESH_AT_REST_MS = 10 * 60_000;

type Client = Pick<KubeClient, 'list'>;

/** Whether pods may soon be evicted: only then PodDisruptionBudgets matter. Pure. */
export function mayEvict(nodes: readonly Node[], pods: readonly Pod[], unneeded: ReadonlyMap<string, number>): boolean {
  const emptying = nodes.filter((node) => !Number.isNaN(emptiedSince(node))).map(({ metadata }) => metadata.name);
  const going = new Set([...emptying, ...unneeded.keys()]);
  return going.size > 0 && pods.some((pod) => going.has(pod.spec.nodeName ?? '') && isMovable(pod));
}

/** Unwatched objects of clusters, read on demand. */
export class AskedFor<T> {
  readonly #now: () => number;
  readonly #resource: Resource;
  readonly #of: (objects: readonly KubeObject[]) => T;
  readonly #known = new Map<string, { at: number; client: Client; answer: T }>();

  /**
   * @param now milliseconds
   * @param of transforms the objects
   */
  constructor(now: () => number, resource: Resource, of: (objects: readonly KubeObject[]) => T) {
    this.#now = now;
    this.#resource = resource;
    this.#of = of;
  }

  /**
   * Result of a cluster, at most `freshMs` old. undefined: the cluster refuses.
   * @throws KubeUnreachableError, AnswerTooLargeError
   */
  async in(key: string, client: Client, freshMs: number, signal: AbortSignal): Promise<T | undefined> {
    const before = this.#known.get(key);
    if (before?.client === client && this.#now() - before.at < freshMs) return before.answer;
    try {
      const { items } = await client.list<KubeObject>(this.#resource, { signal });
      const answer = this.#of(items);
      this.#known.set(key, { at: this.#now(), client, answer });
      return answer;
    } catch (error) {
      if (error instanceof KubeApiError) return undefined;
      throw error;
    }
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

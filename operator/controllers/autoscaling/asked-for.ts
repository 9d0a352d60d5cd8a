import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { isMovable } from '../../kube/pods.ts';
import type { KubeObject, Node, Pod, Resource } from '../../kube/resources.ts';
import { emptiedSince } from './empty-node.ts';

/** What budgets allow changes with each pod that becomes Ready. Milliseconds. */
export const BUDGETS_FRESH_MS = 5_000;
/** How old what is known of DaemonSets may be while pods wait, and while none does. Milliseconds. */
export const DAEMONSETS_FRESH_MS = 10_000;
export const DAEMONSETS_FRESH_AT_REST_MS = 10 * 60_000;

type Client = Pick<KubeClient, 'list'>;

/** Whether pods may have to leave their nodes soon: only then it matters what PodDisruptionBudgets allow. Pure. */
export function mayEvict(nodes: readonly Node[], pods: readonly Pod[], unneeded: ReadonlyMap<string, number>): boolean {
  const emptying = nodes.filter((node) => !Number.isNaN(emptiedSince(node))).map(({ metadata }) => metadata.name);
  const going = new Set([...emptying, ...unneeded.keys()]);
  return going.size > 0 && pods.some((pod) => going.has(pod.spec.nodeName ?? '') && isMovable(pod));
}

/** Objects of clusters of which nobody is told: they are asked for when they matter. */
export class AskedFor<T> {
  readonly #now: () => number;
  readonly #resource: Resource;
  readonly #of: (objects: readonly KubeObject[]) => T;
  readonly #known = new Map<string, { at: number; client: Client; answer: T }>();

  /**
   * @param now milliseconds
   * @param of what is made of the objects
   */
  constructor(now: () => number, resource: Resource, of: (objects: readonly KubeObject[]) => T) {
    this.#now = now;
    this.#resource = resource;
    this.#of = of;
  }

  /**
   * What a cluster answers, or answered at most so many milliseconds ago. undefined: it refuses to say.
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

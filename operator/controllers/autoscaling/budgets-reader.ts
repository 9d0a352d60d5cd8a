import { blockedBy, type WhyBlocked } from '../../burst/nodes/pod-budgets.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { isMovable } from '../../kube/pods.ts';
import { type KubeObject, type Node, PDBS, type Pod } from '../../kube/resources.ts';
import { emptiedSince } from './empty-node.ts';

/** What budgets allow changes with each pod that becomes Ready. */
const FRESH_MS = 5_000;

type Client = Pick<KubeClient, 'list'>;

/** Whether pods may have to leave their nodes soon: only then it matters what PodDisruptionBudgets allow. Pure. */
export function mayEvict(nodes: readonly Node[], pods: readonly Pod[], unneeded: ReadonlyMap<string, number>): boolean {
  const emptying = nodes.filter((node) => !Number.isNaN(emptiedSince(node))).map(({ metadata }) => metadata.name);
  const going = new Set([...emptying, ...unneeded.keys()]);
  return going.size > 0 && pods.some((pod) => going.has(pod.spec.nodeName ?? '') && isMovable(pod));
}

/** PodDisruptionBudgets of clusters, asked for only while pods may have to leave their nodes. */
export class BudgetsReader {
  readonly #now: () => number;
  readonly #known = new Map<string, { at: number; client: Client; whyBlocked: WhyBlocked }>();

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** What the budgets of a cluster allow. `unknown`: nobody needs it, or the cluster refuses to say. Throws KubeUnreachableError. */
  async of(key: string, client: Client, isNeeded: boolean, signal: AbortSignal): Promise<WhyBlocked | 'unknown'> {
    if (!isNeeded) {
      this.#known.delete(key);
      return 'unknown';
    }
    const before = this.#known.get(key);
    if (before?.client === client && this.#now() - before.at < FRESH_MS) return before.whyBlocked;
    try {
      const { items } = await client.list<KubeObject>(PDBS, { signal });
      const known = { at: this.#now(), client, whyBlocked: blockedBy(items) };
      this.#known.set(key, known);
      return known.whyBlocked;
    } catch (error) {
      if (error instanceof KubeApiError) return 'unknown';
      throw error;
    }
  }

  forget(key: string): void {
    this.#known.delete(key);
  }
}

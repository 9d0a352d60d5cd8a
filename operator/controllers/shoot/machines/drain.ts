import type { KubeClient } from '../../../kube/client.ts';
import { isMovable } from '../../../kube/pods.ts';
import { keyOf, NODES, type Node, type Pod } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION } from './scale-in.ts';

interface DrainDependencies {
  readonly client: KubeClient;
  readonly now: () => Date;
  /** Pods of the node as the cache has them. */
  readonly podsOn: (node: string) => readonly Pod[];
  /** Resolves when pods have changed since it last did (at first: since the drain began), or after that many milliseconds. */
  readonly podsChanged: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
  /** Ends pods that their node should have ended by now. Absent: nobody but the node's kubelet may say that a pod has ended. */
  readonly endPods?: (pods: readonly Pod[]) => Promise<void>;
  /** When pods are given up that are refused for another reason than a PodDisruptionBudget, if that is all that is left. Absent: never. */
  readonly refusedUntil?: Date;
  /** Told each time that what is waited for changes, for the condition. */
  readonly report: (line: string) => void;
}

/** How often an eviction that a PodDisruptionBudget refused is asked for again. */
const EVICTION_RETRY_MS = 2_000;

/** How long after the end of its grace period a pod is left to its node. */
const OVERDUE_MS = 10_000;

/** Characters of a refusal in a condition, and ms between two: a webhook may say something else each time. */
const LONGEST_REFUSAL = 200;
const REFUSAL_TOLD_MS = 60_000;

/** After the time in the annotation: a person had cordoned the node before us, so it stays so. */
const BEFORE_US = ' cordoned-before';

/** No new pods there; the annotation keeps when draining began, so that a restarted operator does not begin the deadline anew. */
export async function cordon(client: KubeClient, node: Node, now: Date): Promise<Date> {
  const mark = node.metadata.annotations?.[DRAINING_ANNOTATION];
  const since = mark?.replace(BEFORE_US, '');
  if (since && node.spec.unschedulable) return new Date(since);
  const started = since ?? now.toISOString();
  const suffix = node.spec.unschedulable || mark?.endsWith(BEFORE_US) ? BEFORE_US : '';
  await client.mergePatch(NODES, node.metadata.name, undefined, {
    metadata: { annotations: { [DRAINING_ANNOTATION]: `${started}${suffix}` } },
    spec: { unschedulable: true },
  });
  return new Date(started);
}

export async function uncordon(client: KubeClient, node: Node): Promise<void> {
  const before = node.metadata.annotations?.[DRAINING_ANNOTATION]?.endsWith(BEFORE_US);
  await client.mergePatch(NODES, node.metadata.name, undefined, {
    metadata: { annotations: { [DRAINING_ANNOTATION]: null } },
    ...(!before && { spec: { unschedulable: null } }),
  });
}

/**
 * Evicts what runs on a cordoned node and waits until it has left. PodDisruptionBudgets are respected until the deadline;
 * then the pods that are left go with the machine, and the report says which.
 */
export async function drain(deps: DrainDependencies, node: string, deadline: Date, signal: AbortSignal): Promise<void> {
  let told: { message: string; until: number } | undefined;
  while (!signal.aborted) {
    const staying = deps.podsOn(node).filter(isMovable);
    if (staying.length === 0) return;
    if (deps.now() >= deadline) {
      deps.report(
        `Node ${node}: the drain deadline ${deadline.toISOString()} has passed; these pods go with it: ${names(staying)}`,
      );
      return;
    }
    const blocked: Pod[] = [];
    const refused: { pod: Pod; message: string }[] = [];
    for (const pod of staying) {
      if (pod.metadata.deletionTimestamp) continue;
      // Each may be refused only after a webhook's patience, which would make the deadlines mean nothing.
      if (deps.now() >= deadline) break;
      if (refused.length > 0 && deps.refusedUntil && deps.now() >= deps.refusedUntil) {
        refused.push({ pod, message: refused[0]!.message });
        continue;
      }
      const eviction = await deps.client.evict(pod, { signal });
      if (eviction.outcome === 'blocked') blocked.push(pod);
      if (eviction.outcome === 'refused') refused.push({ pod, message: eviction.message });
    }
    if (refused[0] && (!told || +deps.now() >= told.until))
      told = { message: refused[0].message.slice(0, LONGEST_REFUSAL), until: +deps.now() + REFUSAL_TOLD_MS };
    const waits = [
      ...(blocked.length > 0 ? [`a PodDisruptionBudget blocks the eviction of ${names(blocked)}`] : []),
      ...(refused.length > 0 ? [`${names(refused.map(({ pod }) => pod))} cannot be evicted: ${told!.message}`] : []),
    ];
    const isHeld = waits.length > 0;
    if (deps.refusedUntil && deps.now() >= deps.refusedUntil && refused.length === staying.length) {
      deps.report(`Node ${node} goes undrained: ${waits.join('; ')}`);
      return;
    }
    deps.report(
      `Draining node ${node} until ${deadline.toISOString()}: ${isHeld ? waits.join('; ') : `waiting for ${names(staying)} to end`}`,
    );
    const ending = deps.endPods ? staying.filter(({ metadata }) => metadata.deletionTimestamp) : [];
    const overdue = ending.filter((pod) => overdueAt(pod) <= +deps.now());
    if (overdue.length > 0) await deps.endPods!(overdue);
    const next = Math.min(+deadline, ...ending.filter((pod) => !overdue.includes(pod)).map(overdueAt));
    await deps.podsChanged(isHeld ? EVICTION_RETRY_MS : Math.max(100, next - +deps.now()), signal);
  }
  signal.throwIfAborted();
}

/** Milliseconds since the epoch. A pod's deletionTimestamp is the end of its grace period. */
const overdueAt = (pod: Pod): number => Date.parse(pod.metadata.deletionTimestamp!) + OVERDUE_MS;

function names(pods: readonly Pod[]): string {
  const shown = pods.slice(0, 3).map((pod) => keyOf(pod));
  return pods.length > 3 ? `${shown.join(', ')} and ${pods.length - 3} more` : shown.join(', ');
}

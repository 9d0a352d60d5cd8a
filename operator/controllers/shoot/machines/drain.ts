import type { KubeClient } from '../../../kube/client.ts';
import { isMovable } from '../../../kube/pods.ts';
import { keyOf, NODES, type Node, type Pod } from '../../../kube/resources.ts';
import { DRAINING_ANNOTATION } from './scale-in.ts';

interface DrainDependencies {
  readonly client: KubeClient;
  readonly now: () => Date;
  /** Cached pods of the node. */
  readonly podsOn: (node: string) => readonly Pod[];
  /**
   * Resolves when pods changed since the last call (at first: since the start of the drain), or after that many
   * milliseconds.
   */
  readonly podsChanged: (timeoutMs: number, signal: AbortSignal) => Promise<void>;
  /** Deletes pods that their node should have ended. Absent: only kubelet may confirm the end of a pod. */
  readonly endPods?: (pods: readonly Pod[]) => Promise<void>;
  /**
   * Deadline for pods whose eviction is refused for other reasons than a PodDisruptionBudget, when only such are left.
   * Absent: none.
   */
  readonly refusedUntil?: Date;
  /** Called when the reason to wait changes, for the condition. */
  readonly report: (line: string) => void;
}

/** Interval between evictions of a pod that a PodDisruptionBudget blocks. */
const EVICTION_RETRY_MS = 2_000;

/** Time after its grace period before a pod counts as stuck. */
const OVERDUE_MS = 10_000;

/** Longest refusal in a condition, characters, and shortest time between two, ms: a webhook may vary its text. */
const LONGEST_REFUSAL = 200;
const REFUSAL_TOLD_MS = 60_000;

/** Suffix of the annotation: a person had cordoned the node before the drain, so it stays cordoned. */
const BEFORE_US = ' cordoned-before';

/** Cordons a node; the annotation stores the start of the drain, so that a restart does not reset the deadline. */
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
 * Evicts the pods of a cordoned node and waits until they are gone. Respects PodDisruptionBudgets until the deadline;
 * remaining pods go with the machine, and the report names them.
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
      // Each refusal may take a webhook's timeout, so check the deadline between evictions.
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

import { ANNOTATIONS } from '../../api/group.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isMovable } from '../../kube/pods.ts';
import { keyOf, NODES, type Node, type Pod } from '../../kube/resources.ts';
import { EMPTY } from '../empty-mark.ts';

type Client = Pick<KubeClient, 'mergePatch' | 'evict'>;

/** Cordons a node. The annotation survives restarts of the operator. */
export async function beginEmptying(client: Client, node: Node, now: Date, signal: AbortSignal): Promise<void> {
  await mark(client, node, { annotations: { [ANNOTATIONS.emptiedSince]: now.toISOString() } }, true, signal);
}

/** Uncordons the node. */
export async function endEmptying(client: Client, node: Node, signal: AbortSignal): Promise<void> {
  await mark(client, node, { annotations: { [ANNOTATIONS.emptiedSince]: null } }, null, signal);
}

/** Marks an empty node, so that it is removed first. */
export async function markEmpty(client: Client, node: Node, signal: AbortSignal): Promise<void> {
  const since = node.metadata.annotations?.[ANNOTATIONS.emptiedSince] ?? '';
  if (since.endsWith(EMPTY)) return;
  await mark(client, node, { annotations: { [ANNOTATIONS.emptiedSince]: `${since}${EMPTY}` } }, true, signal);
}

const mark = (
  client: Client,
  { metadata: { name, uid } }: Node,
  metadata: object,
  unschedulable: true | null,
  signal: AbortSignal,
): Promise<unknown> =>
  // The UID protects another machine of the same name from a late write.
  client.mergePatch(NODES, name, undefined, { metadata: { uid, ...metadata }, spec: { unschedulable } }, { signal });

/** Progress of a drain. */
export interface Emptied {
  /** Remaining pods. */
  readonly left: readonly Pod[];
  /** First blocked pod with the API server's reason; undefined: none. */
  readonly blocked: string | undefined;
}

/** Longest time for evictions per cycle, milliseconds: a hanging webhook must not delay other decisions. */
const EVICTIONS_MS = 10_000;

/** Evictions of a cycle. */
export interface EvictionTurn {
  readonly signal: AbortSignal;
  /** End of evictions, milliseconds since the epoch. */
  readonly until: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** UIDs of pods whose eviction got no answer. They come last, so that others do not wait for them in each cycle. */
  readonly unanswered: Set<string>;
}

/** Starts the evictions of a cycle. @param now milliseconds since the epoch */
export const evictionTurn = (unanswered: Set<string>, now: () => number, signal: AbortSignal): EvictionTurn => ({
  signal,
  until: now() + EVICTIONS_MS,
  now,
  unanswered,
});

/** Evicts each pod once, until one gets no answer or the time is over. Never deletes pods. */
export async function evictAll(client: Client, pods: readonly Pod[], turn: EvictionTurn): Promise<Emptied> {
  const { signal, until, now, unanswered } = turn;
  const left = pods.filter(isMovable);
  const isUnanswered = ({ metadata: { uid = '' } }: Pod) => (unanswered.has(uid) ? 1 : 0);
  let blocked: string | undefined;
  for (const pod of left.toSorted((a, b) => isUnanswered(a) - isUnanswered(b))) {
    if (now() >= until) break;
    if (pod.metadata.deletionTimestamp) continue;
    const eviction = await client.evict(pod, { signal });
    if ('message' in eviction) blocked ??= `${keyOf(pod)}: ${eviction.message}`;
    unanswered.delete(pod.metadata.uid ?? '');
    if (!('isUnanswered' in eviction)) continue;
    unanswered.add(pod.metadata.uid ?? '');
    break;
  }
  return { left, blocked };
}

/** Start of a node's drain. */
export const emptiedSince = ({ metadata }: Node): number =>
  Date.parse((metadata.annotations?.[ANNOTATIONS.emptiedSince] ?? '').replace(EMPTY, ''));

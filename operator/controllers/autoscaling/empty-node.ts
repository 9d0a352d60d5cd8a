import { ANNOTATIONS } from '../../api/group.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isMovable } from '../../kube/pods.ts';
import { keyOf, NODES, type Node, type Pod } from '../../kube/resources.ts';
import { EMPTY } from '../empty-mark.ts';

type Client = Pick<KubeClient, 'mergePatch' | 'evict'>;

/** Nothing new goes there. The annotation outlives the operator, which goes on where it was. */
export async function beginEmptying(client: Client, node: Node, now: Date, signal: AbortSignal): Promise<void> {
  await mark(client, node, { annotations: { [ANNOTATIONS.emptiedSince]: now.toISOString() } }, true, signal);
}

/** The node takes pods again. */
export async function endEmptying(client: Client, node: Node, signal: AbortSignal): Promise<void> {
  await mark(client, node, { annotations: { [ANNOTATIONS.emptiedSince]: null } }, null, signal);
}

/** Whoever takes machines away takes this one first. */
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
  // The UID keeps a late write from landing on another machine of the same name.
  client.mergePatch(NODES, name, undefined, { metadata: { uid, ...metadata }, spec: { unschedulable } }, { signal });

/** What became of the pods of a node. */
export interface Emptied {
  /** Pods that are there still. */
  readonly left: readonly Pod[];
  /** Which pod is not evicted and why, in the API server's words; undefined: all were. */
  readonly blocked: string | undefined;
}

/** How long one look asks for evictions, milliseconds: what it decides else must not wait for a webhook that hangs. */
const EVICTIONS_MS = 10_000;

/** Evictions of one look. */
export interface EvictionTurn {
  readonly signal: AbortSignal;
  /** No eviction is asked for after that, milliseconds since the epoch. */
  readonly until: number;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** UIDs of pods of which an eviction was not answered. They are asked last: others must not wait for them at each look. */
  readonly unanswered: Set<string>;
}

/** Begins the evictions of a look. @param now milliseconds since the epoch */
export const evictionTurn = (unanswered: Set<string>, now: () => number, signal: AbortSignal): EvictionTurn => ({
  signal,
  until: now() + EVICTIONS_MS,
  now,
  unanswered,
});

/**
 * Asks pods that must leave to do so, each once, until one is not answered or the turn is over. None is ever deleted: who may not be evicted
 * stays.
 */
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

/** Since when a node is being emptied. */
export const emptiedSince = ({ metadata }: Node): number =>
  Date.parse((metadata.annotations?.[ANNOTATIONS.emptiedSince] ?? '').replace(EMPTY, ''));

import type { CloudPool } from '../../../providers/cloud.ts';
import { ANNOTATIONS, LABELS } from '../../api/group.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Shoot } from '../../api/shoot.ts';
import { type DaemonSet, daemonPod, unpinPod } from '../../burst/fit/daemons.ts';
import { UNSCHEDULABLE } from '../../burst/fit/filters/node.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { STARTUP_PREFIXES } from '../../burst/nodes/expected.ts';
import { PROVISION_MS } from '../../burst/nodes/grow.ts';
import { whyInterrupted } from '../../burst/nodes/interruption.ts';
import type { NodeView, PoolView } from '../../burst/nodes/model.ts';
import { whyNodeStays } from '../../burst/nodes/stays.ts';
import type { DecidedSize } from '../../capacity/desired-sizes.ts';
import { hasEnded } from '../../kube/pods.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../../kube/resources.ts';
import { eachInSteps, type Steps } from '../../kube/steps.ts';
import type { ClusterMemory } from './memory.ts';

/** Nodes of pools that are recorded as leaving. */
export interface LeavingNodes {
  /** Nodes to remove, by pool. */
  readonly leaving: ReadonlyMap<string, readonly string[]>;
  /** Leaving nodes that nobody will remove. */
  readonly spared: readonly string[];
}

/** Pool of a node in the spec; empty: none. */
export const poolOf = ({ metadata: { labels } }: Node): string =>
  labels?.[LABELS.alternativeOf] ?? labels?.[LABELS.pool] ?? '';

/** Nodes by pool of the spec. */
export function byPool(nodes: Iterable<Node>): Map<string, Node[]> {
  const found = new Map<string, Node[]>();
  for (const node of nodes) {
    const pool = poolOf(node);
    const known = found.get(pool);
    if (known) known.push(node);
    else found.set(pool, [node]);
  }
  return found;
}

/** Whether a node is not being deleted. */
export const isThere = ({ metadata }: Node): boolean => metadata.deletionTimestamp === undefined;

/** Interrupted nodes with the announcing taint or condition. Pure. */
export const interruptedOf = (nodes: Iterable<Node>): Map<string, string> =>
  new Map(
    [...nodes].flatMap((node): [string, string][] => {
      const why = isThere(node) ? whyInterrupted(node) : undefined;
      return why === undefined ? [] : [[node.metadata.name, why]];
    }),
  );

/**
 * When young nodes count as they are: until then they count as expected (asReady), because devices may appear later
 * than Ready. Pure.
 */
export const startsEnd = (nodes: readonly Node[], now: Date): number[] =>
  nodes.map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? '') + PROVISION_MS).filter((at) => at > +now);

/** Running pods by node. */
export function byNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const found = new Map<string, Pod[]>();
  for (const pod of pods) {
    const { nodeName } = pod.spec;
    if (!nodeName || hasEnded(pod)) continue;
    const there = found.get(nodeName);
    if (there) there.push(pod);
    else found.set(nodeName, [pod]);
  }
  return found;
}

/**
 * Recorded leaving nodes. If the pool has grown since, or others were taken instead, nobody will remove them: they are
 * spared.
 */
export function whoLeaves(
  own: readonly DesiredPool[],
  decided: ReadonlyMap<string, DecidedSize>,
  ofPool: ReadonlyMap<string, readonly Node[]>,
  nodes: ReadonlyMap<string, Node>,
): LeavingNodes {
  const leaving = new Map<string, readonly string[]>();
  for (const { name, count } of own) {
    const there = new Set((ofPool.get(name) ?? []).filter(isThere).map(({ metadata }) => metadata.name));
    const named = (decided.get(name)?.leaving ?? []).filter((node) => there.has(node));
    leaving.set(name, named.slice(0, Math.max(0, there.size - count)));
  }
  const going = new Set([...leaving.values()].flat());
  const stored = new Set([...decided.values()].flatMap((size) => size.leaving ?? []));
  const spared = [...stored].filter(
    (name) => !going.has(name) && nodes.get(name)?.metadata.annotations?.[ANNOTATIONS.emptiedSince],
  );
  return { leaving, spared };
}

/** Taints that a starting node loses. */
const STARTUP = [
  'node.kubernetes.io/not-ready',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'node.kubernetes.io/network-unavailable',
];
/** Whether a node may still be starting. */
export const isYoung = ({ metadata }: Node, now: number): boolean =>
  now - Date.parse(metadata.creationTimestamp ?? '') < PROVISION_MS;

/** Expected properties of a starting node. */
export interface ComingNode {
  /** Labels when Ready. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Keys of taints that agents remove. */
  readonly startupTaints?: readonly string[] | undefined;
  /** Devices of its machine type: their plugin starts after Ready. */
  readonly devices?: ReadonlyMap<string, number> | undefined;
}

/** A new node counts as expected when ready; otherwise another one would be bought for its pods. */
export function asReady(node: Node, now: number, coming: ComingNode = {}): Node {
  const isNew = isYoung(node, now);
  const isReady = conditionIsTrue(node, 'Ready');
  const { taints, unschedulable } = node.spec;
  const lasting = taints?.filter(({ key }) => {
    // Uncordoned: the node controller removes the taint a moment later.
    if (key === UNSCHEDULABLE.key) return unschedulable;
    if (coming.startupTaints?.includes(key)) return !isNew;
    const isOfStart = STARTUP.includes(key) || STARTUP_PREFIXES.some((prefix) => key.startsWith(prefix));
    return !isOfStart || (!isNew && !isReady);
  });
  const changed = lasting ? { ...node, spec: { ...node.spec, taints: lasting } } : node;
  return isNew ? completed(changed, isReady ? {} : (coming.labels ?? {}), coming.devices ?? new Map()) : changed;
}

function completed(node: Node, labels: Readonly<Record<string, string>>, devices: ReadonlyMap<string, number>): Node {
  const { metadata, status } = node;
  const missing = [...devices].filter(([name]) => !Number(status?.allocatable?.[name] ?? 0));
  return {
    ...node,
    metadata: { ...metadata, labels: { ...labels, ...metadata.labels } },
    ...(missing.length > 0 && {
      status: {
        ...status,
        allocatable: {
          ...status?.allocatable,
          ...Object.fromEntries(missing.map(([name, count]) => [name, String(count)])),
        },
      },
    }),
  };
}

/** A DaemonSet with its expected pod on a future node. */
export interface Daemon {
  /** `namespace/name` */
  readonly name: string;
  readonly pod: FitPod;
}

/**
 * DaemonSets of a cluster, from one of their pods each and from the objects, because a new one has no pod yet.
 * @param sets absent: unknown
 */
export function daemonSetsOf(pods: readonly Pod[], sets: readonly DaemonSet[] = []): Daemon[] {
  const live = new Map<string, { name: string; pod: Pod }>();
  for (const pod of pods) {
    const owner = pod.metadata.ownerReferences?.find(({ kind, controller }) => kind === 'DaemonSet' && controller);
    if (owner) live.set(owner.uid, { name: `${pod.metadata.namespace}/${owner.name}`, pod });
  }
  const known = sets.map((set) => ({ name: keyOf(set), pod: daemonPod(set, live.get(set.metadata.uid ?? '')?.pod) }));
  const listed = new Set(sets.map(({ metadata }) => metadata.uid));
  const others = [...live].flatMap(([uid, { name, pod }]) => (listed.has(uid) ? [] : [{ name, pod: unpinPod(pod) }]));
  return [...known, ...others];
}

/** Like daemonSetsOf, without the objects. */
export const daemonsOf = (pods: readonly Pod[]): FitPod[] => daemonSetsOf(pods).map(({ pod }) => pod);

/** A part of a pool as last requested. */
export interface PoolAsked {
  readonly name: string;
  /** Pool of the spec. */
  readonly pool: string;
  readonly nodes: number;
}

/** Parts of pools, from a Shoot or a managed service. */
export const partsAsked = (
  shoot: Shoot | undefined,
  managed: readonly Pick<CloudPool, 'name' | 'labels' | 'desired'>[] = [],
): PoolAsked[] => {
  const poolOf = (name: string, labels?: Readonly<Record<string, string>>) => labels?.[LABELS.alternativeOf] ?? name;
  const workers = shoot?.spec.provider.workers ?? [];
  return [
    ...workers.map(({ name, labels, minimum }) => ({ name, pool: poolOf(name, labels), nodes: minimum })),
    ...managed.map(({ name, labels, desired = 0 }) => ({ name, pool: poolOf(name, labels), nodes: desired })),
  ];
};

interface NodesSeen extends Pick<LeavingNodes, 'leaving'> {
  readonly podsOn: ReadonlyMap<string, readonly Pod[]>;
  /** Last requested parts of pools, by preference. */
  readonly parts: readonly PoolAsked[];
  readonly memory: ClusterMemory;
  readonly now: number;
}

/**
 * Nodes of pools that Coppice sizes, without leaving ones, with the reason why each must stay; with pauses. Pure except
 * for `memory`.
 */
export function* nodeViews(
  own: readonly DesiredPool[],
  views: readonly PoolView[],
  ofPool: ReadonlyMap<string, readonly Node[]>,
  { leaving, podsOn, parts: asked, memory, now }: NodesSeen,
): Steps<NodeView[]> {
  const found: NodeView[] = [];
  for (const [index, { name: pool }] of own.entries()) {
    const view = views[index]!;
    // In a divided pool the least preferred part shrinks first.
    const parts = asked.filter((part) => part.nodes > 0 && part.pool === pool);
    const going = new Set(leaving.get(pool));
    yield* eachInSteps(ofPool.get(pool) ?? [], (node) => {
      const { name, labels, annotations } = node.metadata;
      if (!isThere(node) || going.has(name)) return;
      const pods = podsOn.get(name) ?? [];
      const isEmptying = annotations?.[ANNOTATIONS.emptiedSince] !== undefined;
      const whyNotBegun = (): string | undefined =>
        (parts.length > 1 && labels?.[LABELS.pool] !== parts.at(-1)!.name
          ? 'other machines of its pool go first'
          : undefined) ??
        (view.present < view.count ? 'its pool is still waiting for new nodes' : undefined) ??
        (conditionIsTrue(node, 'Ready') ? undefined : 'it is not Ready') ??
        (node.spec.unschedulable ? 'somebody has cordoned it' : undefined);
      const stays =
        whyNodeStays(node, pods) ?? memory.leftAlone(name, now)?.why ?? (isEmptying ? undefined : whyNotBegun());
      const price = view.offer?.price ?? 0;
      found.push({ name, pool, price, pods, isEmptying, ...(stays !== undefined && { stays }) });
    });
  }
  return found;
}

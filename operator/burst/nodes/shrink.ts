import { isMovable } from '../../kube/pods.ts';
import type { Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import { isSystem } from '../demand.ts';
import { isBound, reachedFrom } from '../fit/filters/volumes.ts';
import type { FitPod } from '../fit/model.ts';
import { packInSteps } from '../fit/pack.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';
import { type DisruptionLimit, type DisruptionReason, limitExceeded, limitReached } from './budgets.ts';
import { countOfGrowth } from './grow.ts';
import type { NodeView, PoolView } from './model.ts';
import type { WhyBlocked } from './pod-budgets.ts';

/**
 * Why a pod's volumes cannot follow it to another node, the end of a sentence; undefined: they can if reachable and
 * attachable, which packing checks. In doubt the pod stays: it could wait for its data for ever. Pure.
 * @param node the pod's node
 */
function whyVolumesStay(pod: Pod, node: string, state: ClusterState): string | undefined {
  const { claims, namespace } = fitPod(pod);
  const { volumes: facts } = state.facts;
  for (const { name } of claims) {
    if (!facts) return `uses PersistentVolumeClaim ${name}, and the volumes of the cluster are not known`;
    const claim = facts.claims.get(`${namespace}/${name}`);
    const volume = claim && isBound(claim) ? facts.volumes.get(claim.spec.volumeName ?? '') : undefined;
    if (!claim || !volume) return `uses PersistentVolumeClaim ${name}, whose volume is not known`;
    // A hostPath names no node: the scheduler would place the pod away from its data.
    if (volume.spec.local || volume.spec.hostPath)
      return `has data on the disk of this node (PersistentVolumeClaim ${name})`;
    const reached = reachedFrom(volume);
    if (reached && !state.nodes().some((other) => other.node.name !== node && reached(other.node)))
      return `has data that no other node reaches (PersistentVolumeClaim ${name})`;
    // The scheduler ignores ReadWriteOnce sharing: two pods would go to two nodes, and one would never start.
    if (!isForManyNodes(claim.spec.accessModes) && state.usersOf(namespace, name) > 1)
      return `shares PersistentVolumeClaim ${name} with other pods, which must be on one node`;
  }
  return undefined;
}

const isForManyNodes = (modes: readonly string[] = []): boolean =>
  modes.includes('ReadWriteMany') || (modes.length > 0 && modes.every((mode) => mode === 'ReadOnlyMany'));

/** Inputs of a decision to remove nodes. */
export interface ShrinkView {
  /** Existing nodes with running pods and waiting pods that fit there. */
  readonly state: ClusterState;
  readonly pools: readonly PoolView[];
  /** Candidates: Ready nodes of pools that Coppice sizes. */
  readonly nodes: readonly NodeView[];
  /** Whether all pools may have these smaller sizes: a person's number may be a floor. */
  readonly mayShrink: (sizes: ReadonlyMap<string, number>) => boolean;
  /** Whether other pods than system pods run, or wait and fit. */
  readonly hasWork: boolean;
  /** Since when a node is unneeded, milliseconds since the epoch, by name; unknown ones are missing. */
  readonly unneededSince: ReadonlyMap<string, number>;
  /** How long a node of the pool must be unneeded, milliseconds. */
  readonly waitMs: (pool: string) => number;
  /** Names of nodes with room for waiting pods. */
  readonly reserved: ReadonlySet<string>;
  /** Whether nodes are ordered or pods wait: then only empty nodes are removed. */
  readonly isUnsettled: boolean;
  /**
   * Why a pod cannot be evicted now. Absent: unknown and ignored. `unknown`: not known yet, so no node with pods is
   * removed.
   */
  readonly whyBlocked?: WhyBlocked | 'unknown';
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Nodes that a disruption budget keeps. */
export interface HeldNodes {
  readonly pool: string;
  readonly nodes: readonly string[];
  readonly reason: DisruptionReason;
  readonly limit: DisruptionLimit;
}

/** Decision about unneeded nodes. */
export interface Shrinkage {
  /** Unneeded nodes, due or not. */
  readonly unneeded: readonly string[];
  /** Nodes to drain from now on, with reasons. */
  readonly begin: readonly { readonly node: string; readonly why: string }[];
  /** Draining nodes that stay, with reasons. */
  readonly keep: readonly { readonly node: string; readonly why: string }[];
  /** Nodes that would be drained if the budget of their pool allowed. */
  readonly held: readonly HeldNodes[];
  /** Nodes that stay only because of a pod's volumes or a blocked eviction, with reasons. */
  readonly pinned: readonly { readonly node: string; readonly why: string }[];
  /** When the next node is due, milliseconds since the epoch. */
  readonly next?: number;
}

/**
 * Nodes to drain: empty ones first; then one whose pods fit elsewhere, one at a time, so that no room is promised
 * twice. Pure; `state` is restored, and must not be used until it has ended.
 */
export function* planShrinkageInSteps(view: ShrinkView): Steps<Shrinkage> {
  const { nodes, now } = view;
  const sizes = new Map(view.pools.map(({ name, count }) => [name, count]));
  const keep: { node: string; why: string }[] = [];
  const emptying = nodes.filter(({ isEmptying }) => isEmptying);
  const going = new Map<string, number>();
  for (const { pool } of emptying) add(going, pool, 1);
  for (const node of emptying) {
    yield;
    const why = (yield* whyNot(view, node, sizes)) ?? whyOverBudget(view, node, going);
    if (why === undefined) add(sizes, node.pool, -1);
    else {
      keep.push({ node: node.name, why });
      add(going, node.pool, -1);
    }
  }
  const isDraining = emptying.some(
    ({ name, pods }) => pods.some(isMovable) && !keep.some((kept) => kept.node === name),
  );
  const asked = yield* candidates(view, sizes);
  const pinned: { node: string; why: string }[] = [];
  const free: NodeView[] = [];
  for (const node of asked) {
    yield;
    const why = view.isUnsettled ? undefined : whyPinned(view, node);
    if (why !== undefined && (yield* isOnlyPinned(view, node))) pinned.push({ node: node.name, why });
    if ((yield* whyNot(view, node, sizes)) === undefined) free.push(node);
  }
  yield;
  const unneeded = free.sort(
    (a, b) => disturbance(view, a) - disturbance(view, b) || b.price - a.price || (a.name < b.name ? -1 : 1),
  );
  const begin: { node: string; why: string }[] = [];
  const held: (HeldNodes & { nodes: string[] })[] = [];
  let next = Number.POSITIVE_INFINITY;
  for (const node of unneeded) {
    yield;
    const due = (view.unneededSince.get(node.name) ?? now) + view.waitMs(node.pool);
    if (due > now) {
      next = Math.min(next, due);
      continue;
    }
    const isEmpty = holders(view, node).length === 0;
    if (!isEmpty && (isDraining || view.isUnsettled || begin.length > 0)) continue;
    if (!allows(view, node.pool, sizes)) continue;
    const blocked = isEmpty ? undefined : whyHeld(view, node);
    if (blocked !== undefined) {
      next = Math.min(next, now + BLOCKED_AGAIN_MS);
      if (blocked.why) pinned.push({ node: node.name, why: blocked.why });
      continue;
    }
    const reason = isEmpty ? 'Empty' : 'Underutilized';
    const limit = limitOf(view, node.pool, reason, going, limitReached);
    if (limit) {
      const known = held.find((one) => one.pool === node.pool && one.reason === reason);
      if (!known) held.push({ pool: node.pool, nodes: [node.name], limit, reason });
      // Nodes with pods are drained one at a time anyway, so the budget does not keep the others.
      else if (isEmpty) known.nodes.push(node.name);
      continue;
    }
    add(sizes, node.pool, -1);
    add(going, node.pool, 1);
    const why = isEmpty
      ? 'nothing runs on it'
      : `its ${countOfGrowth(holders(view, node).length, 'pod')} have room elsewhere`;
    begin.push({ node: node.name, why });
  }
  return {
    unneeded: unneeded.map(({ name }) => name),
    begin,
    keep,
    held,
    pinned,
    ...(Number.isFinite(next) && { next }),
  };
}

/** PodDisruptionBudgets are not watched: check again after this time. */
const BLOCKED_AGAIN_MS = 10_000;

/** Why none of a node's pods is evicted now: one of them cannot be. `why` is absent while unknown. */
function whyHeld(view: ShrinkView, node: NodeView): { why?: string } | undefined {
  const { whyBlocked } = view;
  if (whyBlocked === undefined) return undefined;
  if (whyBlocked === 'unknown') return {};
  const why = whyNotEvicted(holders(view, node), whyBlocked);
  return why === undefined ? undefined : { why };
}

/** The first pod that cannot be evicted now, with the reason; undefined: each can. */
export function whyNotEvicted(pods: readonly Pod[], whyBlocked: WhyBlocked): string | undefined {
  for (const pod of pods) {
    const why = whyBlocked(pod);
    if (why) return `pod ${pod.metadata.namespace}/${pod.metadata.name} ${why}`;
  }
  return undefined;
}

/**
 * Most nodes with pods that are simulated: the time per node grows with the cluster. Same as Cluster Autoscaler's
 * scale-down-non-empty-candidates-count.
 */
const MOST_WITH_PODS = 30;

/** Candidates for removal: empty nodes, then nodes that were unneeded before. */
function* candidates(view: ShrinkView, sizes: ReadonlyMap<string, number>): Steps<NodeView[]> {
  const shrinks = new Map(view.pools.map(({ name }) => [name, allows(view, name, sizes)]));
  const all = view.nodes.filter(
    ({ isEmptying, stays, pool }) => !isEmptying && stays === undefined && shrinks.get(pool),
  );
  const counted: { node: NodeView; pods: number }[] = [];
  for (const node of all) {
    yield;
    counted.push({ node, pods: disturbance(view, node) });
  }
  const isKnown = ({ node }: (typeof counted)[number]) => (view.unneededSince.has(node.name) ? 0 : 1);
  const withPods = counted
    .filter(({ pods }) => pods > 0)
    .sort((a, b) => isKnown(a) - isKnown(b) || a.pods - b.pods || (a.node.name < b.node.name ? -1 : 1))
    .slice(0, MOST_WITH_PODS);
  return [...counted.filter(({ pods }) => pods === 0), ...withPods].map(({ node }) => node);
}

/** Pods that keep a node unless they fit elsewhere. Terminating ones are recreated elsewhere and wait then. */
const holders = ({ hasWork }: ShrinkView, { pods }: NodeView): Pod[] =>
  pods.filter((pod) => isMovable(pod) && !pod.metadata.deletionTimestamp && (hasWork || !isSystem(pod)));

/** Disruption by a node's removal: its pods, where system pods weigh little. 0: empty. */
const disturbance = (view: ShrinkView, node: NodeView): number =>
  holders(view, node).reduce((sum, pod) => sum + (isSystem(pod) ? 0.001 : 1), 0);

const add = (sum: Map<string, number>, pool: string, by: number): void => {
  sum.set(pool, (sum.get(pool) ?? 0) + by);
};

const limitOf = (
  { pools }: ShrinkView,
  name: string,
  reason: DisruptionReason,
  going: ReadonlyMap<string, number>,
  asked: typeof limitReached,
): DisruptionLimit | undefined => {
  const disruption = pools.find((pool) => pool.name === name)?.disruption;
  return disruption && asked(disruption, reason, going.get(name) ?? 0);
};

/** A budget that became tighter during a drain keeps pods that have not left yet. */
function whyOverBudget(view: ShrinkView, node: NodeView, going: ReadonlyMap<string, number>): string | undefined {
  if (holders(view, node).length === 0) return undefined;
  const limit = limitOf(view, node.pool, 'Underutilized', going, limitExceeded);
  return (
    limit && `${limit.words} of pool ${node.pool} allows ${countOfGrowth(limit.nodes, 'node')} to be missing at once`
  );
}

function allows(view: ShrinkView, name: string, sizes: ReadonlyMap<string, number>): boolean {
  const pool = view.pools.find((one) => one.name === name);
  const after = (sizes.get(name) ?? 0) - 1;
  if (!pool || after < pool.minimum) return false;
  return view.mayShrink(new Map([...sizes, [name, after]]));
}

/** Why a node stays; undefined: unneeded. */
function* whyNot(view: ShrinkView, node: NodeView, sizes: ReadonlyMap<string, number>): Steps<string | undefined> {
  if (node.stays) return node.stays;
  if (view.reserved.has(node.name)) return 'pods that wait have room there';
  if (node.isEmptying && !allows(view, node.pool, sizes)) return `pool ${node.pool} is as small as it may be`;
  const pods = holders(view, node);
  if (pods.length === 0) return undefined;
  return whyPinned(view, node) ?? (yield* whyNoRoom(view.state, node.name, pods.map(fitPod)));
}

/** Why volumes of its pods keep a node; undefined: they do not. */
function whyPinned(view: ShrinkView, node: NodeView): string | undefined {
  for (const pod of holders(view, node)) {
    const why = whyVolumesStay(pod, node.name, view.state);
    if (why) return `pod ${pod.metadata.namespace}/${pod.metadata.name} ${why}`;
  }
  return undefined;
}

/** Whether only volumes keep a node: without them its pods fit elsewhere. */
function* isOnlyPinned(view: ShrinkView, node: NodeView): Steps<boolean> {
  if (view.reserved.has(node.name)) return false;
  const pods = holders(view, node).map((pod): FitPod => ({ ...fitPod(pod), claims: [] }));
  return (yield* whyNoRoom(view.state, node.name, pods)) === undefined;
}

const whyNoRoom = (state: ClusterState, name: string, pods: readonly FitPod[]): Steps<string | undefined> =>
  state.whatIfInSteps(function* () {
    if (state.node(name)) state.removeNode(name);
    const { placed, notJudged } = yield* packInSteps(
      pods.map((pod, index) => ({ key: String(index), pod })),
      state,
    );
    if (placed.size === pods.length) return undefined;
    const [reasons] = notJudged.values();
    return reasons
      ? `whether its pods have room elsewhere is not known (${reasons.join(', ')})`
      : 'its pods have no room elsewhere';
  });

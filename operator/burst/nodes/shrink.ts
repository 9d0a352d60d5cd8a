import { isMovable } from '../../kube/pods.ts';
import type { Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import { isSystem } from '../demand.ts';
import type { FitPod } from '../fit/model.ts';
import { packInSteps } from '../fit/pack.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';
import { type DisruptionLimit, type DisruptionReason, limitExceeded, limitReached } from './budgets.ts';
import { countOf } from './grow.ts';
import type { NodeView, PoolView } from './model.ts';
import type { WhyBlocked } from './pod-budgets.ts';
import { whyVolumesStay } from './volumes-follow.ts';

/** What a decision about fewer nodes rests on. */
export interface ShrinkView {
  /** Nodes that are there and the pods on them, with those that wait and will have room there. */
  readonly state: ClusterState;
  readonly pools: readonly PoolView[];
  /** Nodes that may be looked at: Ready, and of pools that are Coppice's to size. */
  readonly nodes: readonly NodeView[];
  /** Whether the pools may be as small as this together: a number that somebody wrote may be a floor. */
  readonly mayShrink: (sizes: ReadonlyMap<string, number>) => boolean;
  /** Whether anything but system pods runs, or waits and will have room. */
  readonly hasWork: boolean;
  /** Since when nobody needs a node, milliseconds since the epoch, by its name; those of which that is not known are left out. */
  readonly unneededSince: ReadonlyMap<string, number>;
  /** How long nobody must have needed a node of the pool, milliseconds. */
  readonly waitMs: (pool: string) => number;
  /** Names of nodes on which pods that wait have room. */
  readonly reserved: ReadonlySet<string>;
  /** Whether something is coming or waits still: then only nodes go on which nothing runs. */
  readonly isUnsettled: boolean;
  /** Why a pod cannot be evicted now. Absent: nothing is known of that. `unknown`: it is not known yet, and no node with pods goes. */
  readonly whyBlocked?: WhyBlocked | 'unknown';
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Nodes of a pool that a disruption budget holds back. */
export interface HeldNodes {
  readonly pool: string;
  readonly nodes: readonly string[];
  readonly reason: DisruptionReason;
  readonly limit: DisruptionLimit;
}

/** What is to be done about nodes that nobody needs. */
export interface Shrinkage {
  /** Nodes that nobody needs now, whether or not it is time. */
  readonly unneeded: readonly string[];
  /** Nodes that are to be emptied from now on, and why. */
  readonly begin: readonly { readonly node: string; readonly why: string }[];
  /** Nodes that are being emptied and are to stay, and why. */
  readonly keep: readonly { readonly node: string; readonly why: string }[];
  /** Nodes that would be emptied now if more of their pool might be missing. */
  readonly held: readonly HeldNodes[];
  /** Nodes that stay for no other reason than a pod's volumes, or that a pod cannot be evicted now; and why. */
  readonly pinned: readonly { readonly node: string; readonly why: string }[];
  /** When it is time for the next, milliseconds since the epoch. */
  readonly next?: number;
}

/**
 * Which nodes are to be emptied: those on which nothing runs first; then one whose pods have room elsewhere, one at a time, so that no room
 * is promised twice. Pure; `state` is left as it was. Nobody else may use it until this has ended.
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
      // Of those with pods one would go at a time: the others are not held back by the budget.
      else if (isEmpty) known.nodes.push(node.name);
      continue;
    }
    add(sizes, node.pool, -1);
    add(going, node.pool, 1);
    const why = isEmpty
      ? 'nothing runs on it'
      : `its ${countOf(holders(view, node).length, 'pod')} have room elsewhere`;
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

/** Nobody follows PodDisruptionBudgets: what they say is asked again after so long. */
const BLOCKED_AGAIN_MS = 10_000;

/** Why none of the pods of a node is to be evicted now: one of them cannot be. `why` is absent where that is not known yet. */
function whyHeld(view: ShrinkView, node: NodeView): { why?: string } | undefined {
  const { whyBlocked } = view;
  if (whyBlocked === undefined) return undefined;
  if (whyBlocked === 'unknown') return {};
  const why = whyNotEvicted(holders(view, node), whyBlocked);
  return why === undefined ? undefined : { why };
}

/** The first of these pods that cannot be evicted now, and why; undefined: each can. */
export function whyNotEvicted(pods: readonly Pod[], whyBlocked: WhyBlocked): string | undefined {
  for (const pod of pods) {
    const why = whyBlocked(pod);
    if (why) return `pod ${pod.metadata.namespace}/${pod.metadata.name} ${why}`;
  }
  return undefined;
}

/**
 * So many nodes with pods are looked at: whether these have room elsewhere takes longer the larger the cluster is. As Cluster Autoscaler
 * (scale-down-non-empty-candidates-count).
 */
const MOST_WITH_PODS = 30;

/** Nodes that may turn out to be unneeded: those on which nothing runs, and of the others first those that were unneeded before. */
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

/** Pods that keep a node where it is unless they have room elsewhere. Those that end already are made anew, and wait then. */
const holders = ({ hasWork }: ShrinkView, { pods }: NodeView): Pod[] =>
  pods.filter((pod) => isMovable(pod) && !pod.metadata.deletionTimestamp && (hasWork || !isSystem(pod)));

/** How much it disturbs people that a node goes: by its pods, and far less by those that only serve others. 0: nothing runs there. */
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

/** A budget that has become tighter than what goes on: pods that have not left yet are left in peace. */
function whyOverBudget(view: ShrinkView, node: NodeView, going: ReadonlyMap<string, number>): string | undefined {
  if (holders(view, node).length === 0) return undefined;
  const limit = limitOf(view, node.pool, 'Underutilized', going, limitExceeded);
  return limit && `${limit.words} of pool ${node.pool} allows ${countOf(limit.nodes, 'node')} to be missing at once`;
}

function allows(view: ShrinkView, name: string, sizes: ReadonlyMap<string, number>): boolean {
  const pool = view.pools.find((one) => one.name === name);
  const after = (sizes.get(name) ?? 0) - 1;
  if (!pool || after < pool.minimum) return false;
  return view.mayShrink(new Map([...sizes, [name, after]]));
}

/** Why a node stays; undefined: nobody needs it. */
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

/** Whether only volumes keep a node: its pods would have room elsewhere without them. */
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

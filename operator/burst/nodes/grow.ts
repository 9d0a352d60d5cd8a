import type { Steps } from '../../kube/steps.ts';
import type { ReplicaDemand } from '../demand.ts';
import { addNewNode, daemonsOn } from '../fit/daemons.ts';
import { nodeMisfit, UNSCHEDULABLE } from '../fit/filters/node.ts';
import { roomFor } from '../fit/filters/resources.ts';
import { asksForGPUs, hasGPUs } from '../fit/gpus.ts';
import type { Closed, FitPod, Misfit, Packed, PendingPod, PricedTemplate, Unplaced } from '../fit/model.ts';
import { nodeOf } from '../fit/node.ts';
import type { NotJudgedReason } from '../fit/not-judged.ts';
import { type PackOptions, packInSteps, withShare } from '../fit/pack.ts';
import type { ClusterState } from '../fit/state.ts';
import type { PoolView, SizeChange } from './model.ts';

/**
 * A node that has not come after this time is given up: no supply any more. Same as Cluster Autoscaler's
 * max-node-provision-time.
 */
export const PROVISION_MS = 15 * 60_000;

/** Inputs of a growth decision. */
export interface GrowView {
  /** Existing nodes as once ready, with their pods. Ordered nodes are added. */
  readonly state: ClusterState;
  readonly demands: readonly ReplicaDemand[];
  readonly pools: readonly PoolView[];
  /** Names of nodes that are being drained and could stay; unschedulable in `state`. */
  readonly emptying: readonly string[];
  /** Most nodes of all pools together. */
  readonly most: number;
  /** Why a quota refuses these pool sizes; undefined: allowed. */
  readonly refused: (sizes: ReadonlyMap<string, number>) => string | undefined;
  /** Whether pools may have these smaller sizes: a person's number may be a floor. */
  readonly mayShrink: (sizes: ReadonlyMap<string, number>) => boolean;
  /** Whether other pods than system pods run. */
  readonly hasWork: boolean;
  /** DaemonSets of the cluster: their share of a new node is not free. */
  readonly daemons: PackOptions['daemons'];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Why waiting pods buy no node. Listed in docs/concepts/sizes.md. */
export const WAITS = {
  NotJudged: 'whether they fit is not known',
  Incurable: 'no new node would take them',
  NoOffer: 'all machine types of the pools that would take them are sold out, or were tried a moment ago',
  AtMaximum: 'the pools that would take them are at their maximum',
  NoHelp: 'a node was bought for them, came, and did not take them; none is bought until the pods or the pool change',
  ForGPUs: 'the pools with room for them have GPUs, and are for pods that ask for these',
  OverQuota: 'a quota forbids it',
  SystemOnly: 'they are system pods, and the cluster runs no other pods',
} as const;

/** Key of WAITS. */
type WaitReason = keyof typeof WAITS;

/** A demand that buys nothing. */
interface Waiting {
  readonly who: string;
  readonly pods: number;
  readonly reason: WaitReason;
  /** Details in the words of the rejecting part; may be empty. */
  readonly detail: string;
}

/** Decision for waiting pods. */
export interface GrowthDecision {
  readonly sizes: readonly SizeChange[];
  /** Draining nodes that are needed after all. */
  readonly keep: readonly string[];
  readonly waiting: readonly Waiting[];
  /** Expected node by key of waiting pods; some nodes are yet to come. */
  readonly placed: ReadonlyMap<string, string>;
  /** Ordered nodes that are yet to come, by pool. */
  readonly ordered: ReadonlyMap<string, number>;
  /** Whether other pods than system pods run, or will. */
  readonly hasWork: boolean;
}

const CLUSTER = 'cluster';
const ofPool = (name: string): string => `pool ${name}`;

/** Ordered nodes of a pool that do not exist yet. */
const missingOf = ({ count, present }: PoolView): number => Math.max(0, count - present);

/** Whether a pool's missing nodes are given up: sold out, or overdue. */
export const isLate = (pool: PoolView, now: number): boolean =>
  missingOf(pool) > 0 && (!pool.offer || (pool.decidedAt !== undefined && now - pool.decidedAt > PROVISION_MS));

/**
 * Sizes of pools for waiting pods: fills existing nodes first, then ordered ones, then draining ones; buys the rest at
 * the lowest price. Pure, except that it changes `state`. Pauses: `state` must not be used until it has ended.
 */
export function* planGrowthInSteps(view: GrowView): Steps<GrowthDecision> {
  const { state, pools, now } = view;
  const late = pools.filter((pool) => isLate(pool, now));
  const ordered = new Map<string, number>();
  for (const pool of pools) {
    if (late.includes(pool) || !pool.offer) continue;
    const missing = missingOf(pool);
    if (missing > 0) ordered.set(pool.name, missing);
    for (let index = 1; index <= missing; index++)
      addNewNode(state, pool.offer.template, `ordered:${pool.name}:${index}`, view.daemons);
  }
  const work = view.demands.filter(({ isSystem }) => !isSystem);
  const hasWork =
    view.hasWork ||
    (yield* withShare(state, ASKING_SHARE, () => state.whatIfInSteps(() => hasRoomFor(view, work, late))));
  const { packed, limits, keep, refusal } = yield* attempt(view, hasWork ? view.demands : work, late);
  const sizes = bought(view, packed);
  const waits = packed.unplaced.size > 0;
  const given = sizes.length > 0 || !waits ? late.flatMap((pool) => givenUp(view, pool, sizes.length > 0)) : [];
  return {
    sizes: [...sizes, ...given],
    keep,
    waiting: [
      ...view.demands.flatMap((demand) =>
        waitingOf(
          demand,
          packed,
          pools.filter((pool) => !pool.offer || late.includes(pool)),
          limits,
          refusal,
        ),
      ),
      ...(hasWork ? [] : view.demands.filter(({ isSystem }) => isSystem).map(systemOnly)),
    ],
    placed: packed.placed,
    ordered,
    hasWork,
  };
}

/** Shares of the remaining work limit: questions must leave enough for decisions, and each packing for the next. */
const ASKING_SHARE = 1 / 4;
const PACKING_SHARE = 1 / 2;

function* hasRoomFor(view: GrowView, demands: readonly ReplicaDemand[], late: readonly PoolView[]): Steps<boolean> {
  const { packed } = yield* attempt(view, demands, late);
  return packed.placed.size + packed.opened.length > 0;
}

interface Attempt {
  packed: Packed;
  /** Pools that a quota limits below the wanted size. */
  limits: ReadonlySet<string>;
  keep: string[];
  refusal: string | undefined;
}

function* attempt(view: GrowView, demands: readonly ReplicaDemand[], late: readonly PoolView[]): Steps<Attempt> {
  const { state, emptying, daemons = [] } = view;
  const pending = demands.flatMap(({ keys, replica, isSystem }) =>
    keys.map((key): PendingPod => ({ key, pod: replica, isLast: isSystem })),
  );
  const revived = emptying.length > 0 && !(yield* withShare(state, ASKING_SHARE, () => fitsAll(state, pending)));
  if (revived) for (const name of emptying) revive(state, name);
  const offers = offersOf(view, demands, late);
  const limits = new Map<string, number>([
    [CLUSTER, view.most - view.pools.reduce((sum, { count }) => sum + count, 0)],
    ...view.pools.map(({ name, maximum, count }): [string, number] => [ofPool(name), maximum - count]),
  ]);
  const refusedPools = new Set<string>();
  let refusal: string | undefined;
  let packed: Packed;
  for (;;) {
    // In each round at least one more pool has reached its limit.
    packed = yield* withShare(state, PACKING_SHARE, () =>
      state.whatIfInSteps(() => packInSteps(pending, state, { offers, limits, daemons })),
    );
    const cut = cutByQuota(view, packed);
    if (cut.limits.size === 0) break;
    refusal = cut.refusal;
    for (const [pool, limit] of cut.limits) {
      limits.set(ofPool(pool), limit);
      refusedPools.add(pool);
    }
  }
  const used = new Set(packed.placed.values());
  return { packed, limits: refusedPools, keep: revived ? emptying.filter((name) => used.has(name)) : [], refusal };
}

const fitsAll = (state: ClusterState, pending: readonly PendingPod[]): Steps<boolean> =>
  state.whatIfInSteps(function* () {
    const { unplaced } = yield* packInSteps(pending, state);
    return unplaced.size === 0;
  });

/** Uncordons a node: Kubernetes removes its own taint with the cordon. */
function revive(state: ClusterState, name: string): void {
  const there = state.node(name);
  if (!there) return;
  const { node } = there;
  const pods = state.removeNode(name);
  const taints = node.taints.filter(({ key }) => key !== UNSCHEDULABLE.key);
  state.addNode({ ...node, taints, unschedulable: false });
  for (const [pod, count] of pods) state.place(pod, name, count);
}

const offersOf = (view: GrowView, demands: readonly ReplicaDemand[], late: readonly PoolView[]): PricedTemplate[] =>
  view.pools.flatMap((pool): PricedTemplate[] => {
    const { offer, name } = pool;
    if (!offer || late.includes(pool)) return [];
    const closedTo = closedPods(view, pool, demands);
    const sold = { template: offer.template, price: rankOf(offer), countsAgainst: [ofPool(name), CLUSTER] };
    return [{ ...sold, ...(closedTo.size > 0 && { closedTo }) }];
  });

const closedPods = (view: GrowView, pool: PoolView, demands: readonly ReplicaDemand[]): ReadonlyMap<FitPod, Closed> =>
  new Map(
    demands.flatMap(({ replica, likeness = '' }): [FitPod, Closed][] => {
      const noHelp = pool.noHelp?.get(likeness);
      if (noHelp !== undefined) return [[replica, closed('NoHelp', `${ofPool(pool.name)}: ${noHelp}`)]];
      const other = poolWithoutGPUs(view, pool, replica, likeness);
      return other ? [[replica, closed('ForGPUs', `${ofPool(pool.name)}, not ${ofPool(other.name)}`)]] : [];
    }),
  );

const closed = (reason: WaitReason, why: string): Closed => ({ reason, why });

/**
 * For a pod without GPUs and a GPU pool: another pool, full or not, whose nodes would take the pod. undefined: it may
 * use this pool.
 */
function poolWithoutGPUs(
  { pools, daemons }: GrowView,
  { offer }: PoolView,
  pod: FitPod,
  likeness: string,
): PoolView | undefined {
  if (!offer || !hasGPUs(offer.template) || asksForGPUs(pod)) return undefined;
  return pools.find((other) => {
    if (other.noHelp?.has(likeness)) return false;
    // A sold-out pool's properties are unknown: wait for it.
    if (!other.offer) return !other.hasGPUs;
    const node = nodeOf(other.offer.template, other.name);
    return (
      !hasGPUs(other.offer.template) &&
      nodeMisfit(pod, node) === undefined &&
      roomFor(pod, node, daemonsOn(node, daemons ?? [])) > 0
    );
  });
}

/** Surcharge for offers of last resort: above any price per pod, while the cheapest of them still comes first. */
const LAST = 1e15;

const rankOf = ({ price, isLast }: NonNullable<PoolView['offer']>): number => (isLast ? (price + 1) * LAST : price);

const poolOfOffer = ({ countsAgainst }: PricedTemplate): string => countsAgainst[0]!.slice(ofPool('').length);

/** Nodes that a quota allows of the planned ones; and the limits of the pools that it cuts. */
function cutByQuota(view: GrowView, { opened }: Packed): { limits: Map<string, number>; refusal: string | undefined } {
  const sizes = new Map(view.pools.map(({ name, count }) => [name, count]));
  const wanted = new Map(sizes);
  for (const { offer } of opened) add(wanted, poolOfOffer(offer), 1);
  const limits = new Map<string, number>();
  let refusal = opened.length > 0 ? view.refused(wanted) : undefined;
  if (refusal === undefined) return { limits, refusal };
  const granted = new Map<string, number>();
  for (const { offer } of opened) {
    const pool = poolOfOffer(offer);
    if (limits.has(pool)) continue;
    add(sizes, pool, 1);
    const no = view.refused(sizes);
    if (no === undefined) add(granted, pool, 1);
    else {
      add(sizes, pool, -1);
      refusal = no;
      limits.set(pool, granted.get(pool) ?? 0);
    }
  }
  return { limits, refusal };
}

const add = (sum: Map<string, number>, key: string, more: number): void => {
  sum.set(key, (sum.get(key) ?? 0) + more);
};

function bought({ pools, demands }: GrowView, { opened }: Packed): SizeChange[] {
  const whose = new Map(demands.flatMap((demand) => demand.keys.map((key) => [key, demand] as const)));
  return pools.flatMap(({ name, count }): SizeChange[] => {
    const nodes = opened.filter(({ offer }) => poolOfOffer(offer) === name);
    if (nodes.length === 0) return [];
    const pods = nodes.flatMap((node) => node.pods);
    const oldest = pods.map((key) => whose.get(key)!).sort((a, b) => (a.since < b.since ? -1 : 1))[0]!;
    const asks = pods.some((key) => asksForGPUs(whose.get(key)!.replica));
    const dear =
      hasGPUs(nodes[0]!.offer.template) && !asks
        ? ', which have GPUs that nobody asks for, as no other pool takes the pods'
        : '';
    const why = `${countOfGrowth(pods.length, 'pod')} waited for ${countOfGrowth(nodes.length, 'node')}${dear}, first of ${oldest.who} since ${oldest.since}`;
    const likes = pods.flatMap((key) => whose.get(key)!.likeness ?? []);
    return [{ pool: name, count: count + nodes.length, why, ...(likes.length > 0 && { pods: [...new Set(likes)] }) }];
  });
}

export const countOfGrowth = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

/**
 * Stops requesting nodes that did not come once something else is bought, or nobody waits: they would come in addition.
 */
function givenUp({ mayShrink }: GrowView, pool: PoolView, isReplaced: boolean): SizeChange[] {
  const count = Math.max(pool.minimum, pool.present);
  if (count >= pool.count || !mayShrink(new Map([[pool.name, count]]))) return [];
  const then = isReplaced ? 'so Coppice bought nodes of another pool' : 'and nobody waits for them any more';
  return [{ pool: pool.name, count, why: `${whyClosed(pool)}, ${then}` }];
}

const whyClosed = ({ soldOut }: PoolView): string => soldOut ?? 'its nodes did not come within 15 minutes';

function waitingOf(
  { who, keys }: ReplicaDemand,
  packed: Packed,
  closed: readonly PoolView[],
  cut: ReadonlySet<string>,
  refusal: string | undefined,
): Waiting[] {
  const unjudged = keys.filter((key) => packed.notJudged.has(key));
  const unplaced = keys.filter((key) => packed.unplaced.has(key));
  const found: Waiting[] = [];
  if (unjudged.length > 0)
    found.push({
      who,
      pods: unjudged.length,
      reason: 'NotJudged',
      detail: (packed.notJudged.get(unjudged[0]!) as readonly NotJudgedReason[]).join(', '),
    });
  if (unplaced.length > 0)
    found.push({
      who,
      pods: unplaced.length,
      ...whyUnplaced(packed.unplaced.get(unplaced[0]!)!, closed, cut, refusal),
    });
  return found;
}

function whyUnplaced(
  { misfits, atLimit, closed: shut = [] }: Unplaced,
  closed: readonly PoolView[],
  cut: ReadonlySet<string>,
  refusal: string | undefined,
): Pick<Waiting, 'reason' | 'detail'> {
  if (atLimit.some((key) => [...cut].some((pool) => ofPool(pool) === key)))
    return { reason: 'OverQuota', detail: refusal ?? '' };
  const whys = (of: WaitReason) => shut.filter(({ reason }) => reason === of).map(({ why }) => why);
  const [noHelp, forGPUs] = [whys('NoHelp'), whys('ForGPUs')];
  const gpus = forGPUs.length > 0 ? [`${WAITS.ForGPUs}: ${forGPUs.join('; ')}`] : [];
  if (noHelp.length > 0) return { reason: 'NoHelp', detail: noHelp.join('; ') };
  const full = atLimit.filter((key) => key !== CLUSTER);
  if (atLimit.length > 0) return { reason: 'AtMaximum', detail: [...full, ...gpus].join('; ') };
  if (closed.length > 0 && !misfits.some(({ everywhere }: Misfit) => everywhere)) {
    const pools = closed.map((pool) => `${ofPool(pool.name)}: ${whyClosed(pool)}`);
    return { reason: 'NoOffer', detail: [...pools, ...gpus].join('; ') };
  }
  if (gpus.length > 0) return { reason: 'ForGPUs', detail: forGPUs.join('; ') };
  return { reason: 'Incurable', detail: misfits.map(({ message }: Misfit) => message).join('; ') };
}

const systemOnly = ({ who, keys }: ReplicaDemand): Waiting => ({
  who,
  pods: keys.length,
  reason: 'SystemOnly',
  detail: '',
});

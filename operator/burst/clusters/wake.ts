import { costOver } from '../../cost/billing.ts';
import { formatMoney, type Micros } from '../../cost/money.ts';
import { type Chosen, choose, costOf, moneyLeft } from './choose.ts';
import type { CandidateView, ClustersView, Limits, OwnCluster, Waking, WarmCluster } from './model.ts';
import type { Alternative } from './plan-model.ts';
import { type Replicas, totalOf } from './room.ts';
import { type ChosenWarm, inOrder, takenByWarm } from './warm.ts';

/** A sleeping cluster. */
type Sleeping = WarmCluster & { readonly waking: Waking };

const isSleeping = (one: WarmCluster): one is Sleeping => one.waking !== undefined;

/** Clusters to wake and to buy for work without room. */
interface Woken {
  readonly woken: readonly ChosenWarm[];
  readonly clusters: readonly Chosen[];
  /** Alternatives to the woken clusters. */
  readonly instead: readonly Alternative[];
}

/**
 * Clusters to wake or buy for this work: those in time first, then the lowest cost over the minimum life, ties by
 * sleeping ones. undefined: maximums, budgets or candidates do not allow it.
 */
export function wakeOrChoose(view: ClustersView, wanted: readonly Replicas[], now: number): Woken | undefined {
  const fresh = choose(view, wanted, now);
  const { chosen: woken, left } = wakeFor(view, wanted, now);
  const alone = fresh && { woken: [], clusters: fresh, instead: [] };
  if (woken.length === 0) return alone;
  const more = woken.reduce((sum, { warm }) => sum + moreHourly(warm.waking!), 0n);
  const rest = left.length === 0 ? [] : choose({ ...view, grownHourly: (view.grownHourly ?? 0n) + more }, left, now);
  if (!rest) return alone;
  const instead = (fresh ?? []).map(({ candidate, price }) => ({
    candidate,
    hourly: price.hourly,
    whyNot: `${woken[0]!.warm.name} sleeps, and to wake it is better than another one`,
  }));
  const both = { woken, clusters: rest, instead };
  if (!fresh) return both;
  const late = [
    lateOnes(rest) + woken.filter(({ warm }) => isLate(warm.waking!, view.limits)).length,
    lateOnes(fresh),
  ] as const;
  if (late[0] !== late[1]) return late[0] < late[1] ? both : alone;
  const { limits } = view;
  return costToWake(woken, limits) + costOf(rest, limits) <= costOf(fresh, limits) ? both : alone;
}

/** Cost of the woken clusters over their minimum life. */
export const costToWake = (openings: readonly ChosenWarm[], limits: Limits): Micros =>
  openings.reduce((sum, { warm: { waking } }) => sum + (waking ? forMinimumLife(waking, limits, 'hourly') : 0n), 0n);

/** Whether the cluster takes work at once, or may be woken now. */
export const mayWake = (view: ClustersView, one: WarmCluster, now: number): boolean =>
  !isSleeping(one) || whyNotNow(one, view.limits, moneyLeft(view, now)) === undefined;

/** Why sleeping clusters do not serve this work. */
export function whyNotWoken(view: ClustersView, wanted: readonly Replicas[], now: number): Alternative[] {
  const total = totalOf(wanted);
  const left = moneyLeft(view, now);
  return inOrder(view).flatMap((one): Alternative[] => {
    if (!isSleeping(one)) return [];
    const { candidate, name, waking } = one;
    const kept = wanted.map(({ work }) => one.keepsFrom?.(work)).find((why) => why !== undefined);
    const whyNot =
      whyNotNow(one, view.limits, left) ?? kept ?? `it takes ${takenByWarm(one, wanted).count} of ${total} replicas`;
    return [{ candidate, hourly: waking.hourly, whyNot: `${name} sleeps: ${whyNot}` }];
  });
}

/** Sleeping clusters to wake for some of the work, within budgets. */
function wakeFor(view: ClustersView, wanted: readonly Replicas[], now: number) {
  const money = moneyLeft(view, now);
  const chosen: ChosenWarm[] = [];
  let left = [...wanted];
  for (const one of inOrder(view)) {
    if (left.length === 0) break;
    if (!isSleeping(one) || whyNotNow(one, view.limits, money) !== undefined) continue;
    const taken = takenByWarm(one, left);
    if (taken.count === 0) continue;
    chosen.push({ warm: one, count: taken.count });
    money.hourly -= moreHourly(one.waking);
    if (money.monthly !== undefined) money.monthly -= forMinimumLife(one.waking, view.limits, 'most');
    left = taken.left;
  }
  return { chosen, left };
}

const moreHourly = ({ most, counted }: Waking): Micros => (most > counted ? most - counted : 0n);

const forMinimumLife = ({ billing, ...price }: Waking, { minimumLifeMs }: Limits, what: 'hourly' | 'most'): Micros =>
  costOver(price[what], minimumLifeMs, billing);

const isLate = ({ startupMs }: Waking, { startWithinMs }: Limits): boolean =>
  startWithinMs !== undefined && startupMs !== undefined && startupMs > startWithinMs;

const lateOnes = (chosen: readonly Chosen[]): number => chosen.filter((one) => one.isLate).length;

function whyNotNow({ waking, problem }: Sleeping, limits: Limits, left: ReturnType<typeof moneyLeft>) {
  if (problem !== undefined) return problem;
  const more = moreHourly(waking);
  const show = (amount: Micros) => `${formatMoney(amount > 0n ? amount : 0n)} ${limits.currency}`;
  if (more > 0n && more > left.hourly)
    return `awake it costs ${show(more)} an hour more, and ${show(left.hourly)} of the budget of ${show(limits.hourly)} are left`;
  const forLife = forMinimumLife(waking, limits, 'most');
  if (left.monthly !== undefined && forLife > left.monthly)
    return `awake it costs ${show(forLife)} for its minimum life, more than is left of the budget of the month of ${show(limits.monthly ?? 0n)}`;
  return undefined;
}

/** Returns a check whether an idle cluster may sleep within its candidate's limit; each accepted one counts. */
export function mayFallAsleep({ candidates, clusters }: ClustersView): (one: OwnCluster) => boolean {
  const room = new Map(
    candidates.map((candidate) => [
      candidate.name,
      candidate.cannotSleep === undefined ? (candidate.asleep ?? 0) - sleepingOf(candidate, clusters).length : 0,
    ]),
  );
  return ({ candidate, revision }) => {
    const left = room.get(candidate) ?? 0;
    // A cluster of an older template is of no use for the next time.
    if (left <= 0 || candidates.find(({ name }) => name === candidate)?.revision !== revision) return false;
    room.set(candidate, left - 1);
    return true;
  };
}

/** Clusters of a candidate that sleep, or will. */
const sleepingOf = ({ name }: CandidateView, clusters: readonly OwnCluster[]): OwnCluster[] =>
  clusters.filter(({ warm, sleeps, candidate, phase }) => warm && sleeps && candidate === name && phase !== 'Leaving');

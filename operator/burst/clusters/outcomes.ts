import type { BurstDecision, BurstOutcome } from '../../api/burstpolicy-status.ts';
import { formatMoney, type Micros, parseMoney } from '../../cost/money.ts';
import {
  type ClusterPurchase,
  clusterNameOf,
  clusterWaitOf,
  emptyingSinceOf,
  haveCome,
  isLeaving,
  joinedAtOf,
  purchaseHasEnded,
  rejoinedAt,
  type WakePurchase,
} from './purchases.ts';
import { type BurstReceipt, clusterNamed, nodesIn, wakesIn } from './receipt.ts';
import { lifeCost, spentByEnd } from './spend.ts';
import { nodesText, plainText } from './words.ts';

/** Inputs of an outcome's text. */
interface OutcomeInputs {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Currency of the policy's budget. */
  readonly currency: string;
  /** Since when a cluster of the policy sleeps, milliseconds since the epoch; undefined: it does not. */
  readonly asleepSince: (name: string) => number | undefined;
}

type Action = BurstDecision['action'];
type Result = BurstOutcome['result'];

/** Actions that bring a cluster to work, and actions that remove it. Only the newest one describes the present. */
const COMES: readonly Action[] = ['Buy', 'Open', 'Wake'];
const GOES: readonly Action[] = ['Remove', 'Fail', 'Sleep'];

/**
 * The receipt with outcomes of decisions, derived from what changed since the last write: each outcome is written once,
 * together with its change, even if the operator is killed. Pure.
 * @param before as last written
 */
export function withOutcomes(before: BurstReceipt, after: BurstReceipt, inputs: OutcomeInputs): BurstReceipt {
  const decisions = after.decisions.map((decision): BurstDecision => {
    if (decision.dryRun || decision.outcome?.endedAt !== undefined) return decision;
    const outcome = outcomeOf(decision, before, after, inputs);
    return outcome ? { ...decision, outcome } : decision;
  });
  return decisions.every((one, index) => one === after.decisions[index]) ? after : { ...after, decisions };
}

function outcomeOf(
  decision: BurstDecision,
  before: BurstReceipt,
  after: BurstReceipt,
  inputs: OutcomeInputs,
): BurstOutcome | undefined {
  const { action, cluster, pool, at } = decision;
  if (cluster === undefined) return undefined;
  const took = (until = inputs.now) => spanText(until - Date.parse(at));
  if (pool !== undefined) return action === 'Grow' ? ofGrowth(decision, before, after, took, inputs) : undefined;
  const [was, is] = [standing(before, cluster, inputs.now), standing(after, cluster, inputs.now)];
  // A decision that is written only now has no outcome yet.
  if (!was || newest(after, cluster, action)?.at !== at) return undefined;
  const change: Change = { was, is, after, cluster, took, inputs };
  if (COMES.includes(action)) return ofComing(change);
  if (action === 'Sleep') return ofSleep(change, Date.parse(at));
  if (action === 'Remove' || action === 'Fail') return ofRemoval(change);
  return action === 'Empty' ? ofEmptying(change) : undefined;
}

/** State of a purchase in the receipt. */
interface Standing {
  readonly isOthers: boolean;
  readonly waits: 'warm' | 'asleep' | undefined;
  readonly warmAt?: string | undefined;
  readonly joinedAt?: string | undefined;
  readonly hasWorked: boolean;
  readonly isLeaving: boolean;
  readonly isEmptying: boolean;
  /** Total cost if it ends now, and if it goes on; undefined: unknown. */
  readonly cost: { readonly gone: Micros | undefined; readonly soFar: Micros | undefined };
}

function standing(receipt: BurstReceipt, cluster: string, now: number): Standing | undefined {
  const purchase =
    clusterNamed(receipt, cluster) ?? wakesIn(receipt).find((one) => clusterNameOf(one.cluster) === cluster);
  return purchase && standingOf(purchase, now);
}

function standingOf(purchase: ClusterPurchase | WakePurchase, now: number): Standing {
  switch (purchase.kind) {
    case 'cluster':
      return {
        isOthers: false,
        waits: clusterWaitOf(purchase),
        warmAt: purchase.readyAt,
        joinedAt: joinedAtOf(purchase),
        hasWorked: purchase.work !== undefined,
        isLeaving: isLeaving(purchase),
        isEmptying: emptyingSinceOf(purchase) !== undefined,
        cost: { gone: lifeCost(purchase, 0n, now), soFar: lifeCost(purchase, parseMoney(purchase.rate), now) },
      };
    case 'wake': {
      const amounts = Object.values(spentByEnd({}, purchase, now));
      const cost = amounts.reduce((sum, amount) => sum + parseMoney(amount), 0n);
      return {
        isOthers: true,
        waits: undefined,
        joinedAt: rejoinedAt(purchase),
        hasWorked: purchase.work !== undefined,
        isLeaving: purchaseHasEnded(purchase),
        isEmptying: false,
        cost: { gone: cost, soFar: cost },
      };
    }
  }
}

interface Change {
  readonly was: Standing;
  /** undefined: the purchase is gone. */
  readonly is: Standing | undefined;
  readonly after: BurstReceipt;
  readonly cluster: string;
  readonly inputs: OutcomeInputs;
  /** Time since the decision, as text; absent: until now. */
  readonly took: (until?: number) => string;
}

/** Outcome for a cluster that was to take work, or to wait. */
function ofComing({ was, is, after, cluster, took, inputs }: Change): BurstOutcome | undefined {
  if (was.isLeaving) return undefined;
  const end = madeNow(after, cluster, 'Remove', inputs);
  const joinedAt = is?.joinedAt ?? was.joinedAt;
  const inHub = joinedAt && `it was in the hub ${took(Date.parse(joinedAt))} after the decision`;
  const failed = () => ended('Failed', `it was given up ${took()} after the decision: ${end?.why ?? ''}`, inputs);
  if (!is) return end?.action === 'Fail' ? failed() : lost(took, inputs);
  if (is.isLeaving || (is.waits && !was.waits)) {
    if (end?.action === 'Fail') return failed();
    if (was.hasWorked) return ended('Succeeded', `${inHub ?? 'it was in the hub'}, and had work`, inputs);
    const how = is.isLeaving && !is.isOthers ? 'given back' : 'put to sleep';
    if (!inHub || !joinedAt)
      return ended('GivenBack', `it was ${how} ${took()} after the decision, before it was in the hub`, inputs);
    const idle = spanText(inputs.now - Date.parse(joinedAt));
    return ended('Unused', `${inHub}, and had no work in the ${idle} until it was ${how}`, inputs);
  }
  if (is.waits && is.warmAt && !was.warmAt)
    return ended('Succeeded', `it was ready in the hub ${took()} after the decision, and waits ${is.waits}`, inputs);
  if (is.hasWorked && !was.hasWorked && inHub && joinedAt) {
    const later = inputs.now - Date.parse(joinedAt);
    const work = later < 1000 ? 'had work by then' : `had work ${spanText(later)} later`;
    return ended('Succeeded', `${inHub}, and ${work}`, inputs);
  }
  if (is.joinedAt && !was.joinedAt && !is.hasWorked)
    return { result: 'InProgress', message: `${inHub}; it has had no work yet` };
  return undefined;
}

/** Outcome for a cluster that was to be given back. */
function ofRemoval({ was, is, took, inputs }: Change): BurstOutcome | undefined {
  if (is || !was.isLeaving) return undefined;
  if (was.isOthers) return ofOthers(was, inputs);
  const cost = costText(was.cost.gone, inputs);
  return ended(
    'Succeeded',
    `it was gone ${took()} after the decision${cost && `, and has cost ${cost} in all`}`,
    inputs,
  );
}

/** Outcome for a cluster that was to sleep. */
function ofSleep({ was, is, cluster, took, inputs }: Change, at: number): BurstOutcome | undefined {
  if (was.isOthers) return is || !was.isLeaving ? undefined : ofOthers(was, inputs);
  if (!is) return lost(took, inputs);
  if (is.isLeaving)
    return ended('GivenBack', `it was given back ${took()} after the decision, before it slept`, inputs);
  if (is.waits !== 'asleep')
    return ended('Kept', `it was woken again ${took()} after the decision, before it slept`, inputs);
  const since = inputs.asleepSince(cluster);
  if (since === undefined || since < at) return undefined;
  const cost = costText(is.cost.soFar, inputs);
  return ended(
    'Succeeded',
    `it was asleep ${took(since)} after the decision${cost && `, and has cost ${cost} in all until now`}`,
    inputs,
  );
}

/** Outcome for a woken cluster of somebody else that the policy releases: its own spec decides when it sleeps. */
const ofOthers = ({ cost: { gone } }: Standing, inputs: OutcomeInputs): BurstOutcome =>
  ended(
    'Succeeded',
    `since then its own spec decides again; keeping it awake has cost ${costText(gone, inputs)}`,
    inputs,
  );

/** Outcome for a cluster that was to be emptied. */
function ofEmptying({ was, is, after, cluster, took, inputs }: Change): BurstOutcome | undefined {
  if (!is) return lost(took, inputs);
  const isGoing = (is.isLeaving && !was.isLeaving) || (is.waits !== undefined && was.waits === undefined);
  if (isGoing) {
    const how = is.isLeaving ? 'given back' : 'put to sleep';
    const why = madeNow(after, cluster, 'Remove', inputs)?.why ?? '';
    return ended('Succeeded', `it was ${how} ${took()} after the decision: ${why}`, inputs);
  }
  if (!was.isEmptying || is.isEmptying) return undefined;
  const why = madeNow(after, cluster, 'Keep', inputs)?.why ?? '';
  return ended('Kept', `it took work again ${took()} after the decision: ${why}`, inputs);
}

/** Outcome for nodes that were added to a pool. */
function ofGrowth(
  { cluster, pool, at }: BurstDecision,
  before: BurstReceipt,
  after: BurstReceipt,
  took: Change['took'],
  inputs: OutcomeInputs,
): BurstOutcome | undefined {
  const its = (receipt: BurstReceipt) =>
    nodesIn(receipt).find((one) => clusterNameOf(one.cluster) === cluster && one.pool === pool && one.at === at);
  const [was, is] = [its(before), its(after)];
  if (!was) return ofGrant({ cluster, pool, at }, before, after, took, inputs);
  if (was.phase !== 'Coming') return undefined;
  const wanted = was.to - was.from;
  if (is && haveCome(is))
    return ended('Succeeded', `its ${nodesText(wanted)} came within ${took()} of the decision`, inputs);
  const hasFailed = after.decisions.some(
    (one) => one.action === 'Fail' && one.cluster === cluster && one.pool === pool && one.at === plainText(inputs.now),
  );
  if (is?.phase === 'Failed' || (!is && hasFailed))
    return ended(
      'Failed',
      `${is?.nodes ?? 0} of its ${nodesText(wanted)} came within ${took()} of the decision`,
      inputs,
    );
  if (is) return undefined;
  const why = 'its cluster or its pool is gone, or Coppice does not size that pool any more';
  return ended('Lost', `${took()} after the decision ${why}`, inputs);
}

/** Outcome for nodes that were granted to a pool. */
function ofGrant(
  { cluster, pool = '', at }: Pick<BurstDecision, 'cluster' | 'pool' | 'at'>,
  before: BurstReceipt,
  after: BurstReceipt,
  took: Change['took'],
  inputs: OutcomeInputs,
): BurstOutcome | undefined {
  const its = (receipt: BurstReceipt) => clusterNamed(receipt, cluster ?? '')?.granted?.[pool];
  const [was, is] = [its(before), its(after)];
  if (was?.raisedAt !== at || is?.raisedAt === at) return undefined;
  if (!is) return lost(took, inputs);
  if (is.raisedAt !== undefined) return ended('Succeeded', `more of its pool was granted ${took()} later`, inputs);
  if (is.nodes >= was.nodes)
    return ended('Succeeded', `its autoscaler asked for them within ${took()} of the decision`, inputs);
  return ended('Unused', `its autoscaler did not ask for them within ${took()}, and they are free again`, inputs);
}

const ended = (result: Result, message: string, { now }: OutcomeInputs): BurstOutcome => ({
  result,
  message: message.slice(0, 1000),
  endedAt: plainText(now),
});

const lost = (took: Change['took'], inputs: OutcomeInputs): BurstOutcome =>
  ended('Lost', `somebody deleted it, or took it from the policy, ${took()} after the decision`, inputs);

/** The newest decision of this kind; actions that bring a cluster are one kind, those that remove it another. */
function newest({ decisions }: BurstReceipt, name: string, action: Action): BurstDecision | undefined {
  const alike = [COMES, GOES].find((kind) => kind.includes(action)) ?? [action];
  return decisions.find((one) => one.cluster === name && one.pool === undefined && alike.includes(one.action));
}

/** The newest decision, if it was made in this cycle. */
function madeNow(after: BurstReceipt, name: string, action: Action, { now }: OutcomeInputs): BurstDecision | undefined {
  const found = newest(after, name, action);
  return found?.at === plainText(now) ? found : undefined;
}

const costText = (cost: Micros | undefined, { currency }: OutcomeInputs): string =>
  cost === undefined ? '' : `${formatMoney(cost)} ${currency}`;

/** A duration for people: seconds, minutes from ten minutes on, hours from ten hours on. */
function spanText(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 600) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 600 ? `${minutes} minutes` : `${Math.round(minutes / 60)} hours`;
}

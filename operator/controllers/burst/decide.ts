import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { GrowthView, WarmCluster } from '../../burst/clusters/model.ts';
import { planClusters } from '../../burst/clusters/plan.ts';
import { type ClustersPlan, type Order, ordersOf } from '../../burst/clusters/plan-model.ts';
import { clusterNameOf } from '../../burst/clusters/purchases.ts';
import {
  type BurstReceipt,
  clusterNamed,
  clustersIn,
  noteDecision,
  toldAlternatives,
  wakesIn,
} from '../../burst/clusters/receipt.ts';
import {
  addNodes,
  buyCluster,
  emptyCluster,
  grantMore,
  keepCluster,
  letSleep,
  openCluster,
  putToSleep,
  raiseGrant,
  returnCluster,
  wakeCluster,
  wakeOthers,
} from '../../burst/clusters/receipt-decisions.ts';
import { grownHourly, grownNodes, wokenHourly } from '../../burst/clusters/receipt-facts.ts';
import { spentUntil } from '../../burst/clusters/spend.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { formatMoney } from '../../cost/money.ts';
import { keyOf } from '../../kube/resources.ts';
import { type Considered, candidateRefusalOf, shareOf, trialKey, trialOf } from './candidates.ts';
import { type EmptyingInputs, emptyingOf } from './emptying.ts';
import { type GrowthInputs, growthOf, type JudgedGrowth, judgeGrowth } from './growth.ts';
import type { HubWork } from './hub-work.ts';
import { policyLimitsOf } from './limits.ts';
import type { BurstMemory } from './memory.ts';
import { comingKey, idleKey } from './own-clusters.ts';
import { peaksOf } from './peaks.ts';
import type { PurchaseSeen } from './seen.ts';
import { awakeSupply, supplyIn, supplyOf } from './supply.ts';
import { boughtBy, seenIn } from './turn.ts';
import { waitingClusters } from './waiting-clusters.ts';
import { sleepersOf, wakeKey, wakingKey, wokenBy } from './wake-others.ts';
import type { BurstSight } from './world.ts';

/** Inputs of a policy's decision. */
interface DecisionInputs extends GrowthInputs, EmptyingInputs {
  readonly memory: BurstMemory;
  /** More of the hub's work waits than this policy gets. */
  readonly isPartial: boolean;
}

/** Decision of a policy. Purchases are validated by dry runs; refused ones are skipped. */
export async function planFor(
  world: BurstSight,
  inputs: DecisionInputs,
  waiting: readonly HubWork[],
  candidates: Considered[],
  signal: AbortSignal,
): Promise<ClustersPlan> {
  const { hub, policy, receipt, memory, turn, turns, growths, now } = inputs;
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
  const seen = seenIn(world, memory, turn, now);
  const bought = boughtBy(world, memory, turns, now, (one) => (one === turn ? seen : seenIn(world, memory, one, now)));
  const lacking = lackingIn(world, seen);
  let growth = waiting.length > 0 || lacking.size > 0 ? growthOf(world, inputs) : [];
  const own = {
    limits: policyLimitsOf(policy.spec),
    clusters: seen.map((one) => one.own),
    lastOut: time(receipt.lastOut),
    lastIn: time(receipt.lastIn),
  };
  const emptying = await emptyingOf(world, inputs, seen, own, signal);
  const view = {
    ...own,
    ...emptying,
    waiting,
    isPartial: inputs.isPartial,
    supply:
      waiting.length > 0 || lacking.size > 0 || emptying.movable ? supplyOf(world, hub, bought, growths, now) : [],
    lacking,
    grownHourly: grownHourly(receipt) + wokenHourly(receipt),
    grownNodes: grownNodes(receipt),
    warm: [...warmOf(world, inputs, seen), ...(waiting.length > 0 ? sleepersOf(world, inputs) : [])],
    woken: wokenBy(world, memory, policy, receipt, now),
    peaks: peaksOf(policy.spec, now),
    spent: spentUntil(receipt, now),
  };
  for (;;) {
    const plan = planClusters({ ...view, candidates, growth }, now);
    const judged = judgeGrowth(world, ordersOf(plan.orders, 'nodes'));
    const narrower = withinQuota(growth, judged);
    if (narrower) {
      growth = narrower;
      continue;
    }
    const unmade = bought.filter(({ key, cluster }) => isBeside(cluster, policy) && !world.clusters.get(key));
    const beside = [...judged.shares, ...unmade.map(({ cluster }) => shareOf(world, cluster))];
    const passed: string[] = [];
    let problem: string | undefined;
    let at = -1;
    for (const purchase of ordersOf(plan.orders, 'cluster')) {
      const { candidate } = purchase;
      at = candidates.findIndex(({ name }) => name === candidate);
      const tried = candidates[at]!.candidate;
      problem = await candidateRefusalOf(world, policy, tried, purchase, signal, beside);
      if (problem) break;
      passed.push(candidate);
      beside.push(shareOf(world, trialOf(policy, tried, purchase)));
    }
    if (!problem) {
      noteNeeded(inputs, plan);
      return plan;
    }
    const refused = candidates[at]!;
    // A quota may allow some of several purchases.
    const left = passed.filter((name) => name === refused.name).length;
    candidates[at] = left > 0 ? { ...refused, left, noMore: problem } : { ...refused, problem };
    // The next cycle may be allowed.
    memory.forgetTried(trialKey(policy, refused.name));
  }
}

/**
 * Restarts the idle time of clusters for which work waits, in all policies, and notes what the orders of this one need.
 * An order that another policy's work would go to is not cut: each policy looks at its own work only.
 */
function noteNeeded({ memory, turns, turn: own, now }: DecisionInputs, { needed, needs }: ClustersPlan): void {
  for (const turn of turns) {
    const { policy, receipt } = turn;
    for (const { name, number } of clustersIn(receipt)) {
      const cluster = `${policy.metadata.namespace}/${name}`;
      if (turn === own) memory.noteNeed(comingKey(policy, number), needs.get(cluster), now);
      else if (needed.has(cluster)) memory.noteNeed(comingKey(policy, number), undefined, now);
      if (needed.has(cluster))
        for (const key of [idleKey(policy, number), comingKey(policy, number)]) memory.needed(key, now);
    }
    for (const wake of wakesIn(receipt))
      if (needed.has(wake.cluster))
        for (const key of [wakeKey(policy, wake), wakingKey(policy, wake)]) memory.needed(key, now);
  }
}

const isBeside = (cluster: WorkerCluster, policy: BurstPolicy): boolean =>
  cluster.metadata.namespace === policy.metadata.namespace;

/** Pending pods in the policy's clusters with grants, by cluster key. */
function lackingIn(world: BurstSight, seen: readonly PurchaseSeen[]): Map<string, readonly FitPod[]> {
  const found = new Map<string, readonly FitPod[]>();
  for (const { purchase, cluster, own, hasJoined } of seen) {
    if (!cluster || !hasJoined || !purchase.granted) continue;
    const pods = world.lacking(cluster);
    if (pods.length > 0) found.set(own.key, pods);
  }
  return found;
}

/** Ready waiting clusters of the policy, with their room. */
function warmOf(world: BurstSight, { hub, turn, now }: DecisionInputs, seen: readonly PurchaseSeen[]): WarmCluster[] {
  const room = {
    open: (cluster: WorkerCluster) => supplyIn(world, hub, cluster),
    woken: (cluster: WorkerCluster) => awakeSupply(world, hub, cluster, now),
  };
  return waitingClusters(turn.receipt, seen, room, now);
}

/** Growable pools reduced by what quotas refuse; undefined: nothing is refused. */
function withinQuota(growth: readonly GrowthView[], judged: JudgedGrowth): GrowthView[] | undefined {
  if (judged.refused.size === 0) return undefined;
  const refused = [...judged.refused];
  return growth.map((entry) => ({
    ...entry,
    pools: entry.pools.map((pool) => {
      const [planned, problem] = refused.find(([one]) => one.cluster === pool.cluster && one.pool === pool.pool) ?? [];
      if (!planned) return pool;
      const fewer = planned.nodes >> 1;
      return { ...pool, more: fewer, ...(fewer === 0 && { problem }) };
    }),
  }));
}

/** The receipt after the plan's decisions, before they are carried out. */
export function withPlan(world: BurstSight, inputs: DecisionInputs, plan: ClustersPlan): BurstReceipt {
  const { policy, now } = inputs;
  const { dryRun } = policy.spec;
  const withOrder = dryRun ? withDryOrder : withRealOrder;
  let receipt = plan.orders.reduce((next, order) => withOrder(world, inputs, next, order), inputs.receipt);
  // In a dry run too: earlier actions must not stay half done.
  for (const one of plan.kept) receipt = keepCluster(receipt, one, now);
  for (const removal of plan.removals) {
    const { name: cluster, why, toSleep, isOthers } = removal;
    receipt = dryRun
      ? noteDry(receipt, { action: toSleep ? 'Sleep' : 'Remove', cluster, why }, now)
      : (isOthers ? letSleep : toSleep ? putToSleep : returnCluster)(receipt, removal, now);
  }
  for (const { source, state, message, alternatives } of plan.verdicts)
    if (state === 'Refused')
      receipt = noteDecision(receipt, {
        at: rfc3339(new Date(now)),
        action: 'Refuse',
        source,
        why: message,
        alternatives: toldAlternatives(alternatives ?? []),
        ...(dryRun && { dryRun }),
      });
  return receipt;
}

/** The receipt with an order to carry out. */
function withRealOrder(
  world: BurstSight,
  { hub, policy, growths, now }: DecisionInputs,
  receipt: BurstReceipt,
  order: Order,
): BurstReceipt {
  switch (order.kind) {
    case 'nodes': {
      const { cluster: key, pool, each, granted = 0 } = order;
      const cluster = world.clusters.get(key);
      const seen = cluster && poolOf(world, hub, cluster, growths, pool);
      if (!cluster || !seen) return receipt;
      const { uid = '' } = cluster.metadata;
      return grantMore(addNodes(receipt, order, uid, seen.count, now), uid, pool, granted, each, now);
    }
    case 'grant': {
      const uid = world.clusters.get(order.cluster)?.metadata.uid;
      return uid === undefined ? receipt : raiseGrant(receipt, order, uid, now);
    }
    case 'cluster':
      return buyCluster(receipt, order, now);
    case 'open':
      return openCluster(receipt, order, now);
    case 'wake': {
      if (order.entry === undefined) return wakeCluster(receipt, order, now);
      const others = world.clusters.get(`${policy.metadata.namespace}/${order.name}`);
      if (!others) return receipt;
      return wakeOthers(receipt, order, { cluster: keyOf(others), uid: others.metadata.uid ?? '' }, now);
    }
    case 'empty':
      return emptyCluster(receipt, order, now);
    // The receipt follows the cluster's spec.
    case 'cut':
      return receipt;
  }
}

/** The receipt with an order of a dry run. */
function withDryOrder(
  world: BurstSight,
  { hub, growths, now }: DecisionInputs,
  receipt: BurstReceipt,
  order: Order,
): BurstReceipt {
  const { why } = order;
  switch (order.kind) {
    case 'nodes': {
      const { cluster: key, pool, entry, each, nodes, granted = 0 } = order;
      const cluster = world.clusters.get(key);
      if (!cluster || !poolOf(world, hub, cluster, growths, pool)) return receipt;
      const hourly = formatMoney(each * BigInt(entry === undefined ? granted : nodes));
      const by = entry ? { candidate: entry } : {};
      return noteDry(receipt, { action: 'Grow', cluster: clusterNameOf(key), ...by, why, hourly }, now);
    }
    case 'grant': {
      const { cluster, pool, each, nodes } = order;
      const hourly = formatMoney(each * BigInt(nodes));
      return noteDry(receipt, { action: 'Grow', cluster: clusterNameOf(cluster), pool, why, hourly }, now);
    }
    case 'cluster': {
      const { candidate, price } = order;
      const alternatives = toldAlternatives(order.alternatives);
      return noteDry(receipt, { action: 'Buy', candidate, why, hourly: formatMoney(price.hourly), alternatives }, now);
    }
    case 'open':
      return noteDry(receipt, { action: 'Open', cluster: order.name, candidate: order.candidate, why }, now);
    case 'wake': {
      const { name: cluster, candidate, waking } = order;
      const wake = { hourly: formatMoney(waking.hourly), alternatives: toldAlternatives(order.alternatives ?? []) };
      return noteDry(receipt, { action: 'Wake', cluster, candidate, why, ...wake }, now);
    }
    case 'cut':
      return noteDry(receipt, { action: 'Cut', cluster: order.name, why }, now);
    case 'empty': {
      const hourly = clusterNamed(receipt, order.name)?.rate;
      const saved = hourly !== undefined && { hourly };
      return noteDry(receipt, { action: 'Empty', cluster: order.name, why, ...saved }, now);
    }
  }
}

const noteDry = (receipt: BurstReceipt, decision: Omit<BurstDecision, 'at'>, now: number): BurstReceipt =>
  noteDecision(receipt, { at: rfc3339(new Date(now)), ...decision, dryRun: true });

const poolOf = (
  world: BurstSight,
  hub: Hub,
  cluster: WorkerCluster,
  growths: DecisionInputs['growths'],
  pool: string,
) => world.pools(hub, cluster, growths)?.find((one) => one.pool.name === pool);

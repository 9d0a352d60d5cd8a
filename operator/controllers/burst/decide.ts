import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { emptying, kept } from '../../burst/clusters/emptying-receipt.ts';
import { grew, grownHourly, grownNodes, nameOf } from '../../burst/clusters/growth-receipt.ts';
import type { BurstReceipt } from '../../burst/clusters/kept.ts';
import type { GrowthView, WarmCluster } from '../../burst/clusters/model.ts';
import { planClusters } from '../../burst/clusters/plan.ts';
import type { ClustersPlan } from '../../burst/clusters/plan-model.ts';
import { decided, givenBack, opened, ordered, told } from '../../burst/clusters/receipt.ts';
import { putToSleep, woken } from '../../burst/clusters/sleep-receipt.ts';
import { spentUntil } from '../../burst/clusters/spend.ts';
import { letSleep, wakes, wokenHourly } from '../../burst/clusters/wake-receipt.ts';
import { formatMoney } from '../../cost/money.ts';
import { keyOf } from '../../kube/resources.ts';
import { type Considered, refusalOf, shareOf, trialKey, trialOf } from './candidates.ts';
import type { BurstDependencies } from './dependencies.ts';
import { type EmptyingInputs, emptyingOf } from './emptying.ts';
import { type GrowthInputs, growthOf, type JudgedGrowth, judgeGrowth } from './growth.ts';
import { limitsOf } from './limits.ts';
import type { BurstMemory } from './memory.ts';
import { idleKey, type Seen } from './own-clusters.ts';
import { peaksOf } from './peaks.ts';
import { poolsSeen } from './pools.ts';
import { siblingDaemons } from './sibling-daemons.ts';
import { awake, type HubWork, supplyIn, supplyOf } from './supply.ts';
import { boughtBy, seenIn, type Turn } from './turn.ts';
import { waitingClusters } from './waiting-clusters.ts';
import { sleepersOf, wakeKey, wokenBy } from './wake-others.ts';

/** What a policy decides with. */
export interface DecisionInputs extends GrowthInputs, EmptyingInputs {}

/** What a policy does now. What is bought was tried as it will be made: what is refused then is passed by. */
export async function planFor(
  deps: BurstDependencies,
  inputs: DecisionInputs,
  waiting: readonly HubWork[],
  candidates: Considered[],
  signal: AbortSignal,
): Promise<ClustersPlan> {
  const { hub, policy, receipt, memory, turn, turns, growths, now } = inputs;
  const bought = boughtBy(deps, memory, turns, now);
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
  let growth = waiting.length > 0 ? growthOf(deps, inputs) : [];
  const seen = seenIn(deps, memory, turn, now);
  const own = {
    limits: limitsOf(policy.spec),
    clusters: seen.map((one) => one.own),
    lastOut: time(receipt.lastOut),
    lastIn: time(receipt.lastIn),
  };
  const emptying = await emptyingOf(deps, inputs, seen, own, signal);
  const view = {
    ...own,
    ...emptying,
    waiting,
    supply: waiting.length > 0 || emptying.movable ? supplyOf(deps, hub, bought, growths, now) : [],
    grownHourly: grownHourly(receipt) + wokenHourly(receipt),
    grownNodes: grownNodes(receipt),
    warm: [...warmOf(deps, inputs, seen), ...(waiting.length > 0 ? sleepersOf(deps, inputs) : [])],
    woken: wokenBy(deps, memory, policy, receipt, now),
    peaks: peaksOf(policy.spec, now),
    spent: spentUntil(receipt, now),
  };
  for (;;) {
    const plan = planClusters({ ...view, candidates, growth }, now);
    const judged = judgeGrowth(deps, plan.growths);
    const narrower = withinQuota(growth, judged);
    if (narrower) {
      growth = narrower;
      continue;
    }
    const unmade = bought.filter(({ key, cluster }) => isBeside(cluster, policy) && !deps.clusters.get(key));
    const beside = [...judged.shares, ...unmade.map(({ cluster }) => shareOf(deps, cluster))];
    const passed: string[] = [];
    let problem: string | undefined;
    let at = -1;
    for (const { candidate, nodes } of plan.purchases) {
      at = candidates.findIndex(({ name }) => name === candidate);
      const tried = candidates[at]!.candidate;
      problem = await refusalOf(deps, policy, tried, nodes, signal, beside);
      if (problem) break;
      passed.push(candidate);
      beside.push(shareOf(deps, trialOf(policy, tried, nodes)));
    }
    if (!problem) {
      noteNeeded(memory, turns, plan.needed, now);
      return plan;
    }
    const refused = candidates[at]!;
    // A quota may allow one of several that are bought together.
    const left = passed.filter((name) => name === refused.name).length;
    candidates[at] = left > 0 ? { ...refused, left, noMore: problem } : { ...refused, problem };
    // It may be allowed by the next look.
    memory.forgetTried(trialKey(policy, refused.name));
  }
}

/** Clusters for which work waits are idle from now on at the earliest, whichever policy has them. */
function noteNeeded(memory: BurstMemory, turns: readonly Turn[], needed: ReadonlySet<string>, now: number): void {
  for (const { policy, receipt } of turns) {
    for (const { name, number } of receipt.purchases)
      if (needed.has(`${policy.metadata.namespace}/${name}`)) memory.needed(idleKey(policy, number), now);
    for (const wake of receipt.wakes ?? []) if (needed.has(wake.cluster)) memory.needed(wakeKey(policy, wake), now);
  }
}

const isBeside = (cluster: WorkerCluster, policy: BurstPolicy): boolean =>
  cluster.metadata.namespace === policy.metadata.namespace;

/** Clusters of the policy that wait and are ready, with what they would take. */
function warmOf(deps: BurstDependencies, { hub, turn, now }: DecisionInputs, seen: readonly Seen[]): WarmCluster[] {
  const daemons = siblingDaemons(deps, hub);
  const room = {
    open: (cluster: WorkerCluster) => supplyIn(deps, hub, cluster),
    woken: (cluster: WorkerCluster) => awake(deps, hub, cluster, daemons, now),
  };
  return waitingClusters(turn.receipt, seen, room, now);
}

/** Pools that may grow less, all of those for which quotas refuse what is planned; undefined: they refuse nothing. */
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

/** The receipt with what the plan decides, before anything of it is done. */
export function withPlan(deps: BurstDependencies, inputs: DecisionInputs, plan: ClustersPlan): BurstReceipt {
  const { policy, growths, now } = inputs;
  const { dryRun } = policy.spec;
  const at = rfc3339(new Date(now));
  const only = (receipt: BurstReceipt, decision: Omit<BurstDecision, 'at'>) =>
    decided(receipt, { at, ...decision, dryRun: true });
  let { receipt } = inputs;
  for (const growth of plan.growths) {
    const { cluster: key, pool, entry, why, each, nodes } = growth;
    const cluster = deps.clusters.get(key);
    const seen = cluster && poolsSeen(deps, cluster, growths, now)?.find((one) => one.pool.name === pool);
    if (!cluster || !seen) continue;
    const hourly = formatMoney(each * BigInt(nodes));
    receipt = dryRun
      ? only(receipt, { action: 'Grow', cluster: nameOf(key), ...(entry && { candidate: entry }), why, hourly })
      : grew(receipt, growth, cluster.metadata.uid ?? '', seen.count, now);
  }
  for (const purchase of plan.purchases) {
    const { candidate, why, alternatives, price } = purchase;
    const hourly = formatMoney(price.hourly);
    receipt = dryRun
      ? only(receipt, { action: 'Buy', candidate, why, hourly, alternatives: told(alternatives) })
      : ordered(receipt, purchase, now);
  }
  for (const opening of plan.openings) {
    const { name: cluster, candidate, why, waking, alternatives = [] } = opening;
    const wake = { hourly: formatMoney(waking?.hourly ?? 0n), alternatives: told(alternatives) };
    const others =
      opening.entry === undefined ? undefined : deps.clusters.get(`${policy.metadata.namespace}/${cluster}`);
    if (dryRun)
      receipt = only(receipt, { action: waking ? 'Wake' : 'Open', cluster, candidate, why, ...(waking && wake) });
    else if (others && waking)
      receipt = wakes(receipt, opening, waking, { cluster: keyOf(others), uid: others.metadata.uid ?? '' }, now);
    else if (opening.entry === undefined) receipt = (waking ? woken : opened)(receipt, opening, now);
  }
  for (const one of plan.emptyings) {
    const { name: cluster, why } = one;
    const hourly = receipt.purchases.find(({ name }) => name === cluster)?.rate;
    const saved = hourly !== undefined && { hourly };
    receipt = dryRun ? only(receipt, { action: 'Empty', cluster, why, ...saved }) : emptying(receipt, one, now);
  }
  // Also in a dry run: what was begun before it is not left half done.
  for (const one of plan.kept) receipt = kept(receipt, one, now);
  for (const removal of plan.removals) {
    const { name: cluster, why, toSleep, isOthers } = removal;
    receipt = dryRun
      ? only(receipt, { action: toSleep ? 'Sleep' : 'Remove', cluster, why })
      : (isOthers ? letSleep : toSleep ? putToSleep : givenBack)(receipt, removal, now);
  }
  for (const { source, state, message, alternatives } of plan.verdicts)
    if (state === 'Refused')
      receipt = decided(receipt, {
        at,
        action: 'Refuse',
        source,
        why: message,
        alternatives: told(alternatives ?? []),
        ...(dryRun && { dryRun }),
      });
  return receipt;
}

/** Has Events and metrics tell of decisions. */
export function tellDecisions(deps: BurstDependencies, policy: BurstPolicy, fresh: readonly BurstDecision[]): void {
  for (const { action, source, cluster, why, dryRun } of fresh) {
    const text = [dryRun && 'dry run', cluster && `WorkerCluster ${cluster}`, source, why].filter(Boolean).join(': ');
    deps.recordEvent(policy, TYPES[action], REASONS[action], text);
    deps.metrics
      .counter('coppice_burst_decisions_total', 'Decisions of BurstPolicies by action.', ['action'])
      .inc({ action });
  }
}

const REASONS = {
  Buy: 'ClusterBought',
  Open: 'ClusterOpened',
  Wake: 'ClusterWoken',
  Grow: 'NodesAdded',
  Refuse: 'NothingBought',
  Empty: 'ClusterEmptied',
  Keep: 'ClusterKept',
  Sleep: 'ClusterPutToSleep',
  Remove: 'ClusterGivenBack',
  Fail: 'ClusterFailed',
} as const;
const TYPES = {
  Buy: 'Normal',
  Open: 'Normal',
  Wake: 'Normal',
  Grow: 'Normal',
  Refuse: 'Warning',
  Empty: 'Normal',
  Keep: 'Normal',
  Sleep: 'Normal',
  Remove: 'Normal',
  Fail: 'Warning',
} as const;

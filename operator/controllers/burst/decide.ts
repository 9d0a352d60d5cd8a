import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstDecision } from '../../api/burstpolicy-status.ts';
import { rfc3339 } from '../../api/conditions.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { emptying, kept } from '../../burst/clusters/emptying-receipt.ts';
import { grantedMore, raised } from '../../burst/clusters/grant-receipt.ts';
import { grew, grownHourly, grownNodes, nameOf } from '../../burst/clusters/growth-receipt.ts';
import type { BurstReceipt } from '../../burst/clusters/kept.ts';
import type { GrowthView, WarmCluster } from '../../burst/clusters/model.ts';
import { planClusters } from '../../burst/clusters/plan.ts';
import type { ClustersPlan } from '../../burst/clusters/plan-model.ts';
import { decided, givenBack, opened, ordered, told } from '../../burst/clusters/receipt.ts';
import { putToSleep, woken } from '../../burst/clusters/sleep-receipt.ts';
import { spentUntil } from '../../burst/clusters/spend.ts';
import { letSleep, wakes, wokenHourly } from '../../burst/clusters/wake-receipt.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { formatMoney } from '../../cost/money.ts';
import { keyOf } from '../../kube/resources.ts';
import { type Considered, refusalOf, shareOf, trialKey, trialOf } from './candidates.ts';
import { type EmptyingInputs, emptyingOf } from './emptying.ts';
import { type GrowthInputs, growthOf, type JudgedGrowth, judgeGrowth } from './growth.ts';
import type { HubWork } from './hub-work.ts';
import { limitsOf } from './limits.ts';
import type { BurstMemory } from './memory.ts';
import { comingKey, idleKey } from './own-clusters.ts';
import { peaksOf } from './peaks.ts';
import type { Seen } from './seen.ts';
import { awake, supplyIn, supplyOf } from './supply.ts';
import { boughtBy, seenIn, type Turn } from './turn.ts';
import { waitingClusters } from './waiting-clusters.ts';
import { sleepersOf, wakeKey, wakingKey, wokenBy } from './wake-others.ts';
import type { BurstSight } from './world.ts';

/** What a policy decides with. */
export interface DecisionInputs extends GrowthInputs, EmptyingInputs {
  readonly memory: BurstMemory;
  /** More of the hub's work waits than this policy is given to decide about. */
  readonly isPartial: boolean;
}

/** What a policy does now. What is bought was tried as it will be made: what is refused then is passed by. */
export async function planFor(
  world: BurstSight,
  inputs: DecisionInputs,
  waiting: readonly HubWork[],
  candidates: Considered[],
  signal: AbortSignal,
): Promise<ClustersPlan> {
  const { hub, policy, receipt, memory, turn, turns, growths, now } = inputs;
  const bought = boughtBy(world, memory, turns, now);
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
  const seen = seenIn(world, memory, turn, now);
  const lacking = lackingIn(world, inputs, seen);
  let growth = waiting.length > 0 || lacking.size > 0 ? growthOf(world, inputs) : [];
  const own = {
    limits: limitsOf(policy.spec),
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
    const judged = judgeGrowth(world, plan.growths);
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
    for (const purchase of plan.purchases) {
      const { candidate } = purchase;
      at = candidates.findIndex(({ name }) => name === candidate);
      const tried = candidates[at]!.candidate;
      problem = await refusalOf(world, policy, tried, purchase, signal, beside);
      if (problem) break;
      passed.push(candidate);
      beside.push(shareOf(world, trialOf(policy, tried, purchase)));
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
      if (needed.has(`${policy.metadata.namespace}/${name}`))
        for (const key of [idleKey(policy, number), comingKey(policy, number)]) memory.needed(key, now);
    for (const wake of receipt.wakes ?? [])
      if (needed.has(wake.cluster))
        for (const key of [wakeKey(policy, wake), wakingKey(policy, wake)]) memory.needed(key, now);
  }
}

const isBeside = (cluster: WorkerCluster, policy: BurstPolicy): boolean =>
  cluster.metadata.namespace === policy.metadata.namespace;

/** Pods that wait for nodes in clusters of the policy to which it grants these, by the key of the cluster. */
function lackingIn(
  world: BurstSight,
  { receipt }: DecisionInputs,
  seen: readonly Seen[],
): Map<string, readonly FitPod[]> {
  const found = new Map<string, readonly FitPod[]>();
  for (const { cluster, own, hasJoined } of seen) {
    const isGranted = receipt.purchases.find(({ name }) => name === own.name)?.granted !== undefined;
    if (!cluster || !hasJoined || !isGranted) continue;
    const pods = world.lacking(cluster);
    if (pods.length > 0) found.set(own.key, pods);
  }
  return found;
}

/** Clusters of the policy that wait and are ready, with what they would take. */
function warmOf(world: BurstSight, { hub, turn, now }: DecisionInputs, seen: readonly Seen[]): WarmCluster[] {
  const room = {
    open: (cluster: WorkerCluster) => supplyIn(world, hub, cluster),
    woken: (cluster: WorkerCluster) => awake(world, hub, cluster, now),
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
export function withPlan(world: BurstSight, inputs: DecisionInputs, plan: ClustersPlan): BurstReceipt {
  const { hub, policy, growths, now } = inputs;
  const { dryRun } = policy.spec;
  const at = rfc3339(new Date(now));
  const only = (receipt: BurstReceipt, decision: Omit<BurstDecision, 'at'>) =>
    decided(receipt, { at, ...decision, dryRun: true });
  let { receipt } = inputs;
  for (const growth of plan.growths) {
    const { cluster: key, pool, entry, why, each, nodes, granted = 0 } = growth;
    const cluster = world.clusters.get(key);
    const seen = cluster && world.pools(hub, cluster, growths)?.find((one) => one.pool.name === pool);
    if (!cluster || !seen) continue;
    const hourly = formatMoney(each * BigInt(entry === undefined ? granted : nodes));
    receipt = dryRun
      ? only(receipt, { action: 'Grow', cluster: nameOf(key), ...(entry && { candidate: entry }), why, hourly })
      : grantedMore(
          grew(receipt, growth, cluster.metadata.uid ?? '', seen.count, now),
          cluster.metadata.uid ?? '',
          pool,
          granted,
          each,
          now,
        );
  }
  for (const raise of plan.raises) {
    const { cluster: key, pool, why, each, nodes } = raise;
    const uid = world.clusters.get(key)?.metadata.uid;
    const hourly = formatMoney(each * BigInt(nodes));
    if (dryRun) receipt = only(receipt, { action: 'Grow', cluster: nameOf(key), pool, why, hourly });
    else if (uid !== undefined) receipt = raised(receipt, raise, uid, now);
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
      opening.entry === undefined ? undefined : world.clusters.get(`${policy.metadata.namespace}/${cluster}`);
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

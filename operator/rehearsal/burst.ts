import type { BurstPolicy } from '../api/burstpolicy.ts';
import { profileNameOf } from '../api/workercluster.ts';
import { grownHourly, grownNodes } from '../burst/clusters/growth-receipt.ts';
import { boughtNodes, emptyReceipt, type KeptPurchase } from '../burst/clusters/kept.ts';
import type { CandidateView } from '../burst/clusters/model.ts';
import { offerOf } from '../burst/clusters/offer.ts';
import { planClusters } from '../burst/clusters/plan.ts';
import type { ClustersPlan } from '../burst/clusters/plan-model.ts';
import { givenBack, measuredStartupMs, ordered as purchased } from '../burst/clusters/receipt.ts';
import { isWaking } from '../burst/clusters/sleep-receipt.ts';
import { comesTo, offeredNow } from '../burst/clusters/sold-out.ts';
import { spentUntil } from '../burst/clusters/spend.ts';
import { wokenHourly } from '../burst/clusters/wake-receipt.ts';
import { startupMs } from '../capacity/startup-times.ts';
import { placedBy } from '../controllers/burst/arrival.ts';
import { whyNotSleeping } from '../controllers/burst/candidates.ts';
import { withFacts } from '../controllers/burst/facts.ts';
import { limitsOf } from '../controllers/burst/limits.ts';
import { BurstMemory } from '../controllers/burst/memory.ts';
import { idleKey, manifestOf, type Seen, seenAs } from '../controllers/burst/own-clusters.ts';
import { peaksOf } from '../controllers/burst/peaks.ts';
import { emptyingOf, isUnderused, moveWork } from './emptying.ts';
import { growPool, growthOf, noteGrowths } from './growth.ts';
import { workOf } from './hub-work.ts';
import { alikeTo } from './kinds.ts';
import { createCluster, deleteCluster } from './lifecycle.ts';
import { modeOf, offerInputs } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { releaseMinimums } from './release.ts';
import { newCluster, type Simulation, tell } from './state.ts';
import { supplyIn, supplyOf } from './supply.ts';
import { openWaiting, orderSleep, sleepAgain, waitingOf } from './waiting-clusters.ts';
import { letOtherSleep, noteWoken, sleepersOf, wakeOther, wokenBy } from './wake-others.ts';

/** As often the operator asks a hub what it has no place for. */
const LOOK_MS = 10_000;
/** A rest of a candidate, or a quota, ends without a word: while work waits the policy is looked at this often at least. */
const WAITING_MS = 60_000;

/** What the operator knows of a policy before its first look. */
export function newRehearsedPolicy(policy: BurstPolicy): RehearsedPolicy {
  const { name, namespace = '', uid = `${namespace}/${name}` } = policy.metadata;
  const known = { ...policy, metadata: { ...policy.metadata, uid } };
  const receipt = emptyReceipt({ namespace, name, uid });
  return { policy: known, memory: new BurstMemory(), receipt, seen: -1, lookedAt: -LOOK_MS, refusals: new Map() };
}

/** Has the operator look at its policy as soon as it would: when something has changed, at the next of its looks at the hub. */
export function planLook(simulation: Simulation): void {
  const { rehearsed, work } = simulation;
  if (!rehearsed || !work || rehearsed.seen === work.version) return;
  const next = Math.ceil(simulation.now / LOOK_MS) * LOOK_MS;
  lookBy(simulation, rehearsed, Math.max(next, rehearsed.lookedAt + LOOK_MS));
}

function lookBy(simulation: Simulation, rehearsed: RehearsedPolicy, wanted: number): void {
  const at = Math.max(wanted, simulation.now);
  if (rehearsed.lookAt !== undefined && rehearsed.lookAt >= simulation.now && rehearsed.lookAt <= at) return;
  rehearsed.lookAt = at;
  simulation.events.add({ at, isLive: () => rehearsed.lookAt === at, run: () => look(simulation, rehearsed) });
}

/** One look at the policy: the operator's own planner, on what there is. */
function look(simulation: Simulation, rehearsed: RehearsedPolicy): void {
  const { policy, memory } = rehearsed;
  rehearsed.lookAt = undefined;
  rehearsed.lookedAt = simulation.now;
  const now = simulation.epoch + simulation.now;
  const waiting = workOf(simulation, memory, policy.spec.hub, now);
  rehearsed.receipt = withFacts(rehearsed.receipt, seenAll(simulation, rehearsed, now), waiting, now);
  noteWoken(simulation, rehearsed, waiting, now);
  noteGrowths(simulation, rehearsed);
  const { receipt } = rehearsed;
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
  const seen = seenAll(simulation, rehearsed, now);
  const own = {
    limits: limitsOf(policy.spec),
    clusters: seen.map((one) => one.own),
    lastOut: time(receipt.lastOut),
    lastIn: time(receipt.lastIn),
  };
  const emptying = emptyingOf(simulation, rehearsed, own, (cluster) => supplyIn(simulation, rehearsed, cluster), now);
  const plan = planClusters(
    {
      ...own,
      ...emptying,
      waiting,
      supply: waiting.length > 0 || emptying.movable ? supplyOf(simulation, rehearsed) : [],
      candidates: candidatesOf(simulation, rehearsed, now),
      growth: waiting.length > 0 ? growthOf(simulation, rehearsed) : [],
      grownHourly: grownHourly(receipt) + wokenHourly(receipt),
      grownNodes: grownNodes(receipt),
      warm: [...waitingOf(simulation, rehearsed, seen, now), ...sleepersOf(simulation, rehearsed, now)],
      woken: wokenBy(simulation, rehearsed, now),
      peaks: peaksOf(policy.spec, now),
      spent: spentUntil(receipt, now),
    },
    now,
  );
  for (const { purchase, own } of seen)
    if (plan.needed.has(own.key)) memory.needed(idleKey(policy, purchase.number), now);
  for (const growth of plan.growths) growPool(simulation, rehearsed, growth);
  for (const purchase of plan.purchases) {
    rehearsed.receipt = purchased(rehearsed.receipt, purchase, now);
    buy(simulation, rehearsed, rehearsed.receipt.purchases.at(-1)!, purchase.why);
  }
  for (const opening of plan.openings)
    (opening.entry === undefined ? openWaiting : wakeOther)(simulation, rehearsed, opening, now);
  moveWork(simulation, rehearsed, plan, (name) => keyOf(policy, name), now);
  for (const removal of plan.removals) {
    const { name, why, isFailure, toSleep, isOthers } = removal;
    if (toSleep || isOthers) {
      (isOthers ? letOtherSleep : sleepAgain)(simulation, rehearsed, removal, now);
      continue;
    }
    rehearsed.receipt = givenBack(rehearsed.receipt, { name, why, isFailure }, now);
    giveBack(simulation, keyOf(policy, name), isFailure ? why : 'it has no work any more');
  }
  orderSleep(simulation, rehearsed);
  releaseMinimums(simulation, rehearsed);
  noteRefusals(simulation, rehearsed, plan);
  rehearsed.seen = simulation.work!.version;
  if (plan.next !== undefined) lookBy(simulation, rehearsed, plan.next - simulation.epoch);
  // Those that wait are made one in each look.
  if (plan.purchases.some(({ warm }) => warm)) lookBy(simulation, rehearsed, simulation.now + LOOK_MS);
  // Of a peak, or of the least number of clusters, that nothing may be bought for, a verdict says so.
  if (waiting.length + plan.verdicts.length > 0) lookBy(simulation, rehearsed, simulation.now + WAITING_MS);
}

/** More reasons than this nobody reads; amounts of money make many of one. */
const MOST_REASONS = 20;

function noteRefusals({ now }: Simulation, { refusals }: RehearsedPolicy, { verdicts }: ClustersPlan): void {
  const reasons = new Map<string, string>();
  for (const { state, source, alternatives = [] } of verdicts) {
    const why = alternatives.map(({ candidate, whyNot }) => `${candidate}: ${whyNot}`).join('; ');
    if (state === 'Refused' && !reasons.has(why)) reasons.set(why, source);
  }
  for (const [why, source] of reasons) {
    const known = refusals.get(why);
    if (known) Object.assign(known, { looks: known.looks + 1, last: now });
    else if (refusals.size < MOST_REASONS) refusals.set(why, { why, source, looks: 1, first: now, last: now });
  }
}

const keyOf = (policy: BurstPolicy, name: string): string => `${policy.metadata.namespace}/${name}`;

function buy(simulation: Simulation, { policy }: RehearsedPolicy, purchase: KeptPurchase, why: string): void {
  const candidate = policy.spec.candidates.find(({ name }) => name === purchase.candidate)!;
  const manifest = manifestOf(policy, candidate, purchase);
  const key = keyOf(policy, purchase.name);
  const cluster = newCluster(key, manifest, simulation.scenario, candidate.name);
  simulation.clusters.set(key, cluster);
  if (purchase.warm) simulation.work!.close(key);
  createCluster(simulation, cluster, manifest.spec);
  tell(simulation, cluster, 'bought', why);
}

function giveBack(simulation: Simulation, key: string, why: string): void {
  const cluster = simulation.clusters.get(key);
  if (!cluster?.object || cluster.object.metadata.deletionTimestamp) return;
  tell(simulation, cluster, 'given-back', why);
  deleteCluster(simulation, cluster);
}

const seenAll = (simulation: Simulation, rehearsed: RehearsedPolicy, now: number): Seen[] =>
  rehearsed.receipt.purchases.map((purchase) => seenOf(simulation, rehearsed, purchase, now));

/** What the operator sees of a purchase. A cluster is in the hub as soon as its control plane serves; one that was woken, as soon as it has a node. */
function seenOf(
  simulation: Simulation,
  { policy, memory }: RehearsedPolicy,
  purchase: KeptPurchase,
  now: number,
): Seen {
  const key = keyOf(policy, purchase.name);
  const state = simulation.clusters.get(key);
  const cluster = state?.object;
  const serves = cluster !== undefined && state?.serves === true;
  const hasNodes = (state?.nodes.size ?? 0) > 0;
  const isJoined = serves && !purchase.warm && (!isWaking(purchase) || hasNodes);
  const sight = {
    cluster,
    isJoined,
    isReady: serves && hasNodes,
    isWorkless: cluster && !simulation.work!.isBusy(key),
    isUnderused: isJoined ? isUnderused(simulation, { policy }, key) : undefined,
    failure: state?.specRefusal ?? state?.machineRefusal,
  };
  const nodes = [...(state?.nodes.values() ?? [])];
  const placed = cluster && placedBy(purchase.joinedAt, boughtNodes(purchase), cluster, nodes);
  return { ...seenAs(memory, policy, purchase, sight, now), placedBy: placed };
}

function candidatesOf(simulation: Simulation, { policy, receipt }: RehearsedPolicy, now: number): CandidateView[] {
  const { scenario, capacity } = simulation;
  const { candidates, maximumClusters, budget } = policy.spec;
  return candidates.map((candidate) => {
    const { name, priority = 0, assumedHourly, warmClusters, sleepingClusters } = candidate;
    const written = manifestOf(policy, candidate, { name: 'new', number: 0, nodes: {} });
    const profileOf = (of: string) => scenario.profiles.get(of);
    const [known, date] = [capacity.known(policy.metadata), new Date(now)];
    const cluster = comesTo(written, profileOf, known, date);
    const profile = profileOf(profileNameOf(cluster));
    const rest = receipt.rests[name];
    const rests =
      rest && Date.parse(rest.until) > now
        ? `it is in back-off until ${rest.until}, because of ${rest.why}`
        : undefined;
    const has = receipt.purchases.filter((one) => one.candidate === name).length;
    const inputs = profile && offerInputs(cluster, profile, { currency: budget.currency, assumedHourly });
    const offer = inputs && offerOf({ ...inputs, member: { ...inputs.member, alike: alikeTo(simulation, name) } });
    const sold = offer && offeredNow(offer, written, profileOf, known, date);
    return {
      name,
      priority,
      left: (candidate.maximumClusters ?? maximumClusters) - has,
      offer: sold?.offer,
      ...(sold?.steady && { steady: sold.steady }),
      ...(warmClusters && { warm: warmClusters }),
      ...(sleepingClusters && { asleep: sleepingClusters }),
      cannotSleep: whyNotSleeping(modeOf(cluster, profile)),
      problem: profile ? (rests ?? sold?.problem) : `there is no CloudProfile ${profileNameOf(cluster)}`,
      startupMs: measuredStartupMs(receipt, name) ?? (profile && startupMs(profile, cluster.spec.mode, 'cluster')),
    };
  });
}

import type { BurstPolicy } from '../api/burstpolicy.ts';
import { profileNameOf } from '../api/workercluster.ts';
import { grownHourly, grownNodes } from '../burst/clusters/growth-receipt.ts';
import { billingOfPurchase, emptyReceipt, type KeptPurchase, nodesOfPurchase } from '../burst/clusters/kept.ts';
import type { CandidateView, OwnCluster, Supply } from '../burst/clusters/model.ts';
import { offerOf } from '../burst/clusters/offer.ts';
import { planClusters } from '../burst/clusters/plan.ts';
import type { ClustersPlan } from '../burst/clusters/plan-model.ts';
import { givenBack, measuredStartupMs, ordered as purchased } from '../burst/clusters/receipt.ts';
import { soldOutOf, withoutSoldOut } from '../burst/clusters/sold-out.ts';
import { spentUntil } from '../burst/clusters/spend.ts';
import { startupMs } from '../capacity/startup-times.ts';
import { SETTLE_MS } from '../controllers/burst/alike.ts';
import { withFacts } from '../controllers/burst/facts.ts';
import { limitsOf } from '../controllers/burst/limits.ts';
import { BurstMemory } from '../controllers/burst/memory.ts';
import { idleKey, manifestOf, type Seen, underusedKey } from '../controllers/burst/own-clusters.ts';
import { peaksOf } from '../controllers/burst/peaks.ts';
import { parseMoney } from '../cost/money.ts';
import { emptyingOf, isUnderused, moveWork } from './emptying.ts';
import { growingPools, growPool, growthOf, noteGrowths } from './growth.ts';
import { workOf } from './hub-work.ts';
import { createCluster, deleteCluster } from './lifecycle.ts';
import { memberOf, offerInputs } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type ClusterState, newCluster, type Simulation, tell } from './state.ts';

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
  const waiting = workOf(simulation.work!, memory, policy.spec.hub, now);
  rehearsed.receipt = withFacts(rehearsed.receipt, seenAll(simulation, rehearsed, now), waiting, now);
  noteGrowths(simulation, rehearsed);
  const { receipt } = rehearsed;
  const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
  const own = {
    limits: limitsOf(policy.spec),
    clusters: seenAll(simulation, rehearsed, now).map((one) => one.own),
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
      grownHourly: grownHourly(receipt),
      grownNodes: grownNodes(receipt),
      peaks: peaksOf(policy.spec, now),
      spent: spentUntil(receipt, now),
    },
    now,
  );
  for (const growth of plan.growths) growPool(simulation, rehearsed, growth);
  for (const purchase of plan.purchases) {
    rehearsed.receipt = purchased(rehearsed.receipt, purchase, now);
    buy(simulation, rehearsed, rehearsed.receipt.purchases.at(-1)!, purchase.why);
  }
  moveWork(simulation, rehearsed, plan, (name) => keyOf(policy, name), now);
  for (const { name, why, isFailure } of plan.removals) {
    rehearsed.receipt = givenBack(rehearsed.receipt, { name, why, isFailure }, now);
    giveBack(simulation, keyOf(policy, name), isFailure ? why : 'it has no work any more');
  }
  noteRefusals(simulation, rehearsed, plan);
  rehearsed.seen = simulation.work!.version;
  if (plan.next !== undefined) lookBy(simulation, rehearsed, plan.next - simulation.epoch);
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

/** What the operator sees of a purchase. A cluster is in the hub as soon as its control plane serves. */
function seenOf(
  simulation: Simulation,
  { policy, memory }: RehearsedPolicy,
  purchase: KeptPurchase,
  now: number,
): Seen {
  const { name, candidate, at, most, uid } = purchase;
  const key = keyOf(policy, name);
  const state = simulation.clusters.get(key);
  const cluster = state?.object;
  const isJoined = cluster !== undefined && state?.serves === true;
  const isIdle = isJoined ? !simulation.work!.isBusy(key) : undefined;
  const idleSince = memory.idle(idleKey(policy, purchase.number), isIdle, now);
  const isUnder = isJoined ? isUnderused(simulation, { policy }, key) : undefined;
  const underusedSince = memory.idle(underusedKey(policy, purchase.number), isUnder, now);
  const isLeaving = purchase.leaving || cluster?.metadata.deletionTimestamp !== undefined;
  const hasJoined = isJoined || purchase.joinedAt !== undefined;
  const phase: OwnCluster['phase'] = isLeaving
    ? 'Leaving'
    : hasJoined
      ? 'Joined'
      : cluster || uid
        ? 'Making'
        : 'Ordered';
  const failure = hasJoined ? undefined : (state?.specRefusal ?? state?.machineRefusal);
  const hourly = [most, purchase.rate].map((amount) => parseMoney(amount)).reduce((a, b) => (a > b ? a : b));
  const billing = billingOfPurchase(purchase);
  const hasWork = isIdle === false;
  const emptyingSince = purchase.emptyingSince === undefined ? undefined : Date.parse(purchase.emptyingSince);
  const leftAloneUntil = purchase.leftAlone && Date.parse(purchase.leftAlone.until);
  const little = { underusedSince, emptyingSince, leftAloneUntil };
  const own = {
    key,
    name,
    candidate,
    at: Date.parse(at),
    phase,
    idleSince,
    hourly,
    nodes: nodesOfPurchase(purchase, cluster?.status?.nodes?.desired),
    billing,
    failure,
    hasWork,
    ...little,
  };
  return { purchase, cluster, own, hasJoined: isJoined, isIdle };
}

function candidatesOf(
  { scenario, capacity }: Simulation,
  { policy, receipt }: RehearsedPolicy,
  now: number,
): CandidateView[] {
  const { candidates, maximumClusters, budget } = policy.spec;
  return candidates.map((candidate) => {
    const { name, priority = 0, assumedHourly } = candidate;
    const cluster = manifestOf(policy, candidate, { name: 'new', number: 0, nodes: {} });
    const profile = scenario.profiles.get(profileNameOf(cluster));
    const rest = receipt.rests[name];
    const rests =
      rest && Date.parse(rest.until) > now
        ? `it is in back-off until ${rest.until}, because of ${rest.why}`
        : undefined;
    const has = receipt.purchases.filter((one) => one.candidate === name).length;
    const soldOut = soldOutOf(cluster, (of) => scenario.profiles.get(of), capacity.known(''), new Date(now));
    const offer = profile && offerOf(offerInputs(cluster, profile, { currency: budget.currency, assumedHourly }));
    return {
      name,
      priority,
      left: (candidate.maximumClusters ?? maximumClusters) - has,
      offer: offer && withoutSoldOut(offer, soldOut),
      problem: profile ? (rests ?? soldOut.problem) : `there is no CloudProfile ${profileNameOf(cluster)}`,
      startupMs: measuredStartupMs(receipt, name) ?? (profile && startupMs(profile, cluster.spec.mode, 'cluster')),
    };
  });
}

/** Clusters that take work of the hub: all that serve; and bought ones that are on their way. */
function supplyOf(simulation: Simulation, rehearsed: RehearsedPolicy): Supply[] {
  return [...simulation.clusters.values()]
    .filter(({ key, object }) => object && !object.metadata.deletionTimestamp && !simulation.work!.isClosed(key))
    .map((cluster) => supplyIn(simulation, rehearsed, cluster));
}

function supplyIn(simulation: Simulation, { receipt }: RehearsedPolicy, cluster: ClusterState): Supply {
  const now = simulation.epoch + simulation.now;
  const { key, object, profile } = cluster;
  const purchase = receipt.purchases.find(({ name }) => cluster.candidate !== undefined && key.endsWith(`/${name}`));
  const joinedAt = purchase?.joinedAt === undefined ? undefined : Date.parse(purchase.joinedAt);
  const isComing = purchase !== undefined && !(joinedAt !== undefined && joinedAt + SETTLE_MS <= now);
  return {
    cluster: key,
    member: memberOf(object!, profile),
    nodes: nodesOf(simulation, cluster),
    planned: together([...(isComing ? missing(cluster, purchase) : []), ...ordered(cluster)]),
  };
}

function nodesOf({ work }: Simulation, cluster: ClusterState): Supply['nodes'] {
  return [...cluster.nodes.keys()].flatMap((name) => {
    const there = work!.room.node(work!.nameOf(cluster.key, name));
    if (!there) return [];
    const pods = [...there.pods].flatMap(([pod, count]) => Array.from({ length: count }, () => pod));
    return [{ node: { ...there.node, name }, pods }];
  });
}

/** Of each pool once. */
function together(planned: Supply['planned']): Supply['planned'] {
  const byPool = new Map<string, Supply['planned'][number]>();
  for (const one of planned) {
    const { id } = one.template;
    byPool.set(id, { ...one, count: one.count + (byPool.get(id)?.count ?? 0) });
  }
  return [...byPool.values()];
}

/** Nodes of pools that are Coppice's to size, and that are still to come; what comes with a cluster that was bought counts with that. */
function ordered(cluster: ClusterState): Supply['planned'] {
  const { object, profile, pools, serves } = cluster;
  const growing = growingPools(cluster);
  if (!object || !profile || !serves || growing.length === 0) return [];
  const offered = offerOf(offerInputs(object, profile, { currency: '' })).pools;
  return growing.flatMap(({ name, count, minimum }) => {
    const template = offered.find((one) => one.name === name)?.template;
    const ready = pools.get(name)?.ready ?? 0;
    const coming = count - Math.max(ready, cluster.candidate === undefined ? 0 : minimum);
    return template && coming > 0 ? [{ template, count: coming }] : [];
  });
}

/** Nodes that were bought with it and are not Ready yet. */
function missing(cluster: ClusterState, { nodes }: KeptPurchase): Supply['planned'] {
  const { object, profile, pools } = cluster;
  if (!object || !profile) return [];
  const offered = offerOf(offerInputs(object, profile, { currency: '' })).pools;
  return offered.flatMap(({ name, template, minimum }) => {
    const count = Math.max(minimum, nodes[name] ?? 0) - (pools.get(name)?.ready ?? 0);
    return count > 0 ? [{ template, count }] : [];
  });
}

import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { EVERY_NAMESPACE, type Hub } from '../../api/hub.ts';
import type { Reason } from '../../api/reasons.ts';
import { withOutcomes } from '../../burst/clusters/outcomes.ts';
import { ordersOf } from '../../burst/clusters/plan-model.ts';
import { isToOrder, wasNeverMade } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, nodesIn } from '../../burst/clusters/receipt.ts';
import { returnCluster } from '../../burst/clusters/receipt-decisions.ts';
import { grantsEnd, withGrantFacts, withNodesFacts } from '../../burst/clusters/receipt-facts.ts';
import { forgetCluster, monthOf } from '../../burst/clusters/spend.ts';
import { waitingAnew } from '../../burst/clusters/waiting-anew.ts';
import { countOfGrowth } from '../../burst/nodes/grow.ts';
import type { Asking, PlacedSource } from '../../hubs/contract.ts';
import { keyOf } from '../../kube/resources.ts';
import { endClusters, makeClusters, openClusters } from './act.ts';
import { candidatesOf } from './candidates.ts';
import { cutOrdered } from './cut-orders.ts';
import { planFor, withPlan } from './decide.ts';
import { markEmptying } from './emptying.ts';
import { withFacts } from './facts.ts';
import { applyGrants, grantedPool } from './grants.ts';
import type { HubWork } from './hub-work.ts';
import type { BurstMemory } from './memory.ts';
import { orderSleep } from './order-sleep.ts';
import { clusterByUid } from './own-clusters.ts';
import { releaseMinimums } from './release-minimums.ts';
import type { Outcome, PurchaseSeen } from './seen.ts';
import { asleepSince } from './tell-outcomes.ts';
import { growthsOf, idleKeys, seenIn, type Turn } from './turn.ts';
import { letAllSleep, orderAwake, withWoken, wokenBy } from './wake-others.ts';
import type { BurstWorld, Unread } from './world.ts';

/**
 * Raises pools to their recorded sizes, as their autoscaler would, preserving its records about leaving nodes.
 * Idempotent.
 */
async function growPools(
  world: BurstWorld,
  hub: Hub,
  policy: BurstPolicy,
  receipt: BurstReceipt,
  now: number,
  signal: AbortSignal,
): Promise<void> {
  const { name, namespace } = policy.metadata;
  for (const growth of nodesIn(receipt)) {
    const cluster = clusterByUid(world, growth);
    const decided = cluster && world.decided(cluster);
    if (!cluster || !decided || decided === 'unknown' || !isToOrder(growth, now)) continue;
    const seen = world.pools(hub, cluster, [])?.find(({ pool }) => pool.name === growth.pool);
    // Its autoscaler no longer requests sold-out offers.
    if (!seen?.template || seen.count >= growth.to) continue;
    const { pool } = seen;
    const known = decided === 'none' ? undefined : decided.get(growth.pool);
    const size = {
      count: growth.to,
      by: `BurstPolicy ${namespace}/${name}`,
      why: `work of ${growth.sources[0]} has no place`,
      at: growth.at,
      ...(known?.leaving && { leaving: known.leaving }),
    };
    await world.decide({ key: growth.cluster, uid: growth.uid, pool, size }, signal);
    const more = growth.to - pool.count;
    const message = `pool ${growth.pool} is to have ${countOfGrowth(growth.to, 'node')}, ${more} more: BurstPolicy ${name} has work without a place`;
    world.recordEvent(cluster, 'Normal', 'PoolGrows', message);
  }
}

/** Most listed sources. */
const MOST_UNREAD = 10;

interface Problem {
  readonly problem: string;
  readonly reason: Reason<'BurstPolicy', 'Ready'>;
}

/** A hub's report. */
interface Answer {
  readonly hub: Hub;
  readonly work: readonly HubWork[];
  /** More work than `work` has no place. Absent: this is all. */
  readonly isPartial?: boolean;
  /** Unplaced work of unknown size. Absent: none. */
  readonly unread?: readonly Unread[];
  /** Placements. Absent: not reported. */
  readonly placed?: readonly PlacedSource[] | undefined;
  /** Questions about held work. Absent: none. */
  readonly asking?: Asking | undefined;
  /** The hub does not report unplaced work: a policy only follows its schedule and minimum. */
  readonly silent?: Problem;
}

/** A hub's report; or why there is none. */
export type Look = Answer | Problem;

/** One cycle of one policy. */
export class PolicyLook {
  readonly #world: BurstWorld;
  readonly #memory: BurstMemory;
  readonly #turn: Turn;
  readonly #turns: readonly Turn[];
  readonly #signal: AbortSignal;
  readonly #policy: BurstPolicy;
  readonly #before: BurstReceipt;
  readonly #now: number;

  constructor(world: BurstWorld, memory: BurstMemory, turn: Turn, turns: readonly Turn[], signal: AbortSignal) {
    this.#world = world;
    this.#memory = memory;
    this.#turn = turn;
    this.#turns = turns;
    this.#signal = signal;
    this.#policy = turn.policy;
    this.#before = turn.receipt;
    this.#now = world.now().getTime();
  }

  /**
   * @param work left to this policy
   * @param isPartial some of the hub's work is unassigned in this cycle: too much waits, or an older policy could not
   * decide
   * @returns work left to later policies
   */
  async run(look: Look, work: readonly HubWork[], isPartial: boolean): Promise<readonly HubWork[]> {
    const left = await this.#look(look, work, isPartial);
    // A cluster of a dropped purchase was observed before in this cycle.
    this.#memory.keepOnly(this.#policy.metadata.uid ?? '', idleKeys(this.#turn));
    return left;
  }

  async #look(look: Look, work: readonly HubWork[], isPartial: boolean): Promise<readonly HubWork[]> {
    if (this.#policy.metadata.deletionTimestamp) {
      this.#turn.verdicts = [];
      await this.#end();
      return work;
    }
    await this.#world.hold(this.#policy, true, this.#signal);
    const waiting = 'work' in look ? look.work : [];
    const seen = this.#seen();
    const facts = withFacts(this.#turn.receipt, seen, waiting, this.#now);
    const known = withWoken(this.#world, this.#memory, this.#policy, facts, waiting, this.#now);
    this.#turn.receipt = withGrantFacts(
      withNodesFacts(
        known,
        (growth) => this.#world.poolNow({ ...growth, isSettled: growth.phase !== 'Coming' }),
        this.#now,
      ),
      (purchase, pool) => grantedPool(this.#world, this.#policy, purchase, pool),
      this.#now,
    );
    const refused = 'problem' in look ? look : (this.#notAllowed(look.hub) ?? this.#hasNothingToDo(look));
    if (refused || 'problem' in look) {
      this.#turn.verdicts = [];
      await this.#save();
      await this.#giveBack();
      await this.#tell({ ready: { status: false, reason: refused!.reason, message: refused!.problem } });
      return work;
    }
    const receipts = this.#turns.map(({ receipt }) => receipt);
    this.#world.noteInterruptions(seen.flatMap(({ cluster }) => cluster ?? []));
    return this.#decide({ ...look, work: waitingAnew(work, receipts), isPartial }, look.work);
  }

  #seen(): PurchaseSeen[] {
    return seenIn(this.#world, this.#memory, this.#turn, this.#now);
  }

  #hasNothingToDo({ silent }: Answer): typeof silent {
    const { schedule = [], minimumClusters = 0 } = this.#policy.spec;
    return schedule.length + minimumClusters > 0 ? undefined : silent;
  }

  #notAllowed(hub: Hub): { reason: Reason<'BurstPolicy', 'Ready'>; problem: string } | undefined {
    const { namespace = '' } = this.#policy.metadata;
    const allowed = hub.spec.allowedNamespaces ?? [];
    if (allowed.includes(namespace) || allowed.includes(EVERY_NAMESPACE)) return undefined;
    const problem = `Hub ${hub.metadata.name} does not allow namespace ${namespace}: have an administrator add it to allowedNamespaces`;
    return { reason: 'NotAllowed', problem };
  }

  async #decide(
    { hub, work, isPartial = false, unread = [], silent }: Answer,
    hubWaiting: readonly HubWork[],
  ): Promise<readonly HubWork[]> {
    const { dryRun, suspend } = this.#policy.spec;
    const isMine = (one: Pick<Unread, 'namespace'>) => isClusterOf(this.#policy, one);
    const mine = work.filter(isMine);
    const others = work.filter((one) => !mine.includes(one));
    const candidates = await candidatesOf(
      this.#world,
      this.#memory,
      hub,
      this.#policy,
      this.#turn.receipt,
      this.#now,
      this.#signal,
    );
    const inputs = {
      hub,
      policy: this.#policy,
      receipt: this.#turn.receipt,
      growths: growthsOf(this.#turns),
      now: this.#now,
      memory: this.#memory,
      turn: this.#turn,
      turns: this.#turns,
      hubWaiting,
      isPartial,
    };
    const planned = await planFor(this.#world, inputs, mine, candidates, this.#signal);
    const refused = unread
      .filter(isMine)
      .slice(0, MOST_UNREAD)
      .map(({ source, problem }) => ({
        source,
        state: 'Refused' as const,
        message: `nothing is bought for it: ${problem}`,
      }));
    const plan = { ...planned, verdicts: [...planned.verdicts, ...refused] };
    this.#turn.receipt = withPlan(this.#world, inputs, plan);
    const times = [plan.next ?? Number.POSITIVE_INFINITY, ...grantsEnd(this.#turn.receipt)];
    const next = Math.min(...times.filter((time) => time > this.#now));
    this.#turn.next = Number.isFinite(next) ? next : undefined;
    this.#turn.verdicts = plan.verdicts;
    await this.#save();
    const notMarked = await markEmptying(this.#world, this.#policy, this.#turn.receipt, this.#signal);
    let notOpened: string | undefined;
    let notReleased: string | undefined;
    let notCut: string | undefined;
    let notGranted: string | undefined;
    if (!dryRun) {
      notGranted = await applyGrants(this.#world, this.#policy, this.#turn.receipt, this.#now, this.#signal);
      await growPools(this.#world, hub, this.#policy, this.#turn.receipt, this.#now, this.#signal);
      notOpened = await openClusters(this.#world, this.#policy, this.#turn.receipt, this.#signal);
      const cuts = ordersOf(plan.orders, 'cut');
      notCut = await cutOrdered(this.#world, this.#turn, cuts, this.#signal);
      if (!suspend)
        notReleased = await releaseMinimums(this.#world, this.#policy, this.#turn.receipt, this.#now, this.#signal);
      await orderSleep(this.#world, this.#policy, this.#turn.receipt, this.#signal);
      const { receipt } = this.#turn;
      this.#turn.receipt = await orderAwake(this.#world, this.#policy, receipt, this.#now, this.#signal);
      this.#turn.receipt = await makeClusters(this.#world, this.#policy, this.#turn.receipt, this.#now, this.#signal);
      await this.#save();
    }
    const notGivenBack = (await this.#giveBack()) ?? notMarked ?? notReleased ?? notCut ?? notGranted;
    const ready: Outcome['ready'] = notGivenBack
      ? { status: false, reason: 'CannotGiveBack', message: notGivenBack }
      : notOpened
        ? { status: false, reason: 'CannotOpen', message: notOpened }
        : watching(this.#policy, silent);
    await this.#tell({ ready, candidates, waiting: mine, verdicts: plan.verdicts, stays: plan.stays, plan });
    const isLeft = new Set<unknown>(plan.left);
    if (dryRun && !this.#world.claims(this.#policy)) return work;
    if (dryRun) {
      const policy = { ...this.#policy, spec: { ...this.#policy.spec, dryRun: false } };
      this.#turn.receipt = withPlan(this.#world, { ...inputs, policy }, plan);
    }
    return [...others, ...mine.filter((one) => isLeft.has(one))];
  }

  /** Deletes returned clusters, and forgets those never made. @returns why one cannot be deleted */
  async #giveBack(): Promise<string | undefined> {
    const { unmade, problem } = await endClusters(this.#world, this.#policy, this.#turn.receipt, this.#signal);
    const { receipt } = this.#turn;
    this.#turn.receipt = clustersIn(receipt)
      .filter((one) => unmade.includes(one.name) && wasNeverMade(one, this.#now))
      .reduce((next, { name }) => forgetCluster(next, name, this.#now), receipt);
    await this.#save();
    return problem;
  }

  /** Saves the receipt if changed, and records Events of decisions and outcomes. */
  async #save(): Promise<void> {
    const receipt = withOutcomes(this.#saved, this.#turn.receipt, {
      now: this.#now,
      currency: this.#policy.spec.budget.currency,
      asleepSince: asleepSince(this.#world, this.#policy),
    });
    this.#turn.receipt = receipt;
    if (receipt === this.#saved) return;
    await this.#world.receipts.save(keyOf(this.#policy), receipt, this.#saved, this.#signal);
    const { decisions: before } = this.#saved;
    this.#savedReceipt = receipt;
    this.#world.told(this.#policy, before, receipt.decisions);
  }

  #savedReceipt: BurstReceipt | undefined;
  get #saved(): BurstReceipt {
    return this.#savedReceipt ?? this.#before;
  }

  async #tell(outcome: Pick<Outcome, 'ready'> & Partial<Outcome>): Promise<void> {
    const { receipt } = this.#turn;
    const isNews = receipt !== this.#before || this.#policy.status?.spend?.month !== monthOf(this.#now);
    const whole = {
      candidates: [],
      waiting: [],
      verdicts: [],
      ...outcome,
      receipt,
      isNews,
      seen: this.#seen(),
      woken: wokenBy(this.#world, this.#memory, this.#policy, receipt, this.#now),
    };
    await this.#world.tell(this.#policy, whole, this.#signal);
  }

  /** Gives all clusters back, then removes the policy's finalizer. Clusters that somebody took over stay. */
  async #end(): Promise<void> {
    const { finalizers = [] } = this.#policy.metadata;
    // Deletion with orphaning: Kubernetes removes the owner references now.
    if (finalizers.includes('orphan')) return;
    let { receipt } = this.#turn;
    receipt = withFacts(receipt, this.#seen(), [], this.#now);
    for (const { name } of clustersIn(receipt))
      receipt = returnCluster(receipt, { name, why: 'the policy is deleted', isFailure: false }, this.#now);
    this.#turn.receipt = letAllSleep(receipt, this.#now);
    await this.#save();
    receipt = await orderAwake(this.#world, this.#policy, this.#turn.receipt, this.#now, this.#signal);
    const { left, problem } = await endClusters(this.#world, this.#policy, receipt, this.#signal);
    if (left.length > 0) {
      const message = problem ?? `its clusters leave first: ${left.slice(0, 5).join(', ')}`;
      await this.#tell({ ready: { status: false, reason: 'Deleting', message }, deleting: message });
      return;
    }
    await this.#world.receipts.remove(keyOf(this.#policy), this.#signal);
    this.#turn.receipt = { ...receipt, purchases: receipt.purchases.filter(({ kind }) => kind === 'nodes') };
    await this.#world.hold(this.#policy, false, this.#signal);
  }
}

/** Whether a policy serves work of this namespace. */
export const isClusterOf = ({ spec: { namespaces } }: BurstPolicy, { namespace }: Pick<Unread, 'namespace'>): boolean =>
  !namespaces || namespaces.includes(namespace ?? '');

/** Condition Ready of a working policy. */
function watching({ spec: { hub, suspend, dryRun } }: BurstPolicy, silent: Problem | undefined): Outcome['ready'] {
  if (suspend) return { status: true, reason: 'Suspended', message: `it watches Hub ${hub}, and decides nothing` };
  if (dryRun)
    return { status: true, reason: 'DryRun', message: `it says what it would do for Hub ${hub}, and does nothing` };
  if (!silent) return { status: true, reason: 'Watching', message: `it watches Hub ${hub}` };
  const message = `${silent.problem}: it only keeps to its schedule and minimum`;
  return { status: true, reason: 'ScheduleOnly', message };
}

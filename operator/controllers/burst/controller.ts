import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { isTrue } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import { EVERY_NAMESPACE, type Hub } from '../../api/hub.ts';
import type { ClustersPlan } from '../../burst/clusters/model.ts';
import { planClusters } from '../../burst/clusters/plan.ts';
import {
  type BurstRecord,
  decided,
  emptyRecord,
  givenBack,
  monthOf,
  ordered,
  spentUntil,
  told,
} from '../../burst/clusters/record.ts';
import { formatMoney } from '../../cost/money.ts';
import { isTransient, KubeApiError } from '../../kube/errors.ts';
import { BURSTPOLICIES, keyOf } from '../../kube/resources.ts';
import { tellFailure } from '../failure.ts';
import { hold } from '../finalizer.ts';
import { BY_HUB } from '../membership/world.ts';
import { writeStatus } from '../status-writer.ts';
import { endClusters, makeClusters } from './act.ts';
import { type Considered, candidatesOf, refusalOf, trialKey } from './candidates.ts';
import { withFacts } from './facts.ts';
import { limitsOf } from './limits.ts';
import type { BurstMemory } from './memory.ts';
import { manifestOf, type Seen, seenOf } from './own-clusters.ts';
import { type Outcome, statusOf } from './status.ts';
import { type Bought, type HubWork, supplyOf, workOf } from './supply.ts';
import type { BurstWorld } from './world.ts';

/** As often a hub is asked what it has no place for, while a policy names it. */
const LOOK_MS = 10_000;
const SOONEST_MS = 100;
/** A hub that has not answered by then is taken for one that does not. */
const ANSWER_MS = 30_000;

/** What a hub says; or why nobody can tell. */
type Look =
  | { readonly hub: Hub; readonly work: readonly HubWork[] }
  | { readonly problem: string; readonly reason: string };

/** A policy in a look at its hub. */
interface Turn {
  readonly policy: BurstPolicy;
  /** As it is by now. */
  record: BurstRecord;
  /** When something changes by the clock alone, milliseconds since the epoch. */
  next?: number | undefined;
}

/**
 * Decides for all policies of a hub, the older first, so that two of them never buy for the same work: what one buys is room for the next, and
 * what it leaves the next may serve.
 */
export async function reconcileBurst(
  world: BurstWorld,
  memory: BurstMemory,
  hubName: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number }> {
  const policies = [...world.policies.byIndex(BY_HUB, hubName)].sort(byAge);
  if (policies.length === 0) {
    memory.forgetHub(hubName);
    return {};
  }
  const look = await lookAt(world, memory, hubName, signal);
  const turns: Turn[] = [];
  for (const policy of policies) {
    try {
      turns.push({ policy, record: await recordOf(world, policy, signal) });
    } catch (error) {
      if (signal.aborted || isTransient(error)) throw error;
      await tellFailure(world, world.policies, policy, error);
    }
  }
  let left = 'work' in look ? look.work : [];
  for (const turn of turns) {
    try {
      left = await new PolicyLook(world, memory, turn, turns, signal).run(look, left);
    } catch (error) {
      if (signal.aborted) throw error;
      // What it has bought is on its record, and room for the others. What it would have bought for is left to its next look.
      const isConflict = error instanceof KubeApiError && error.isConflict;
      if (!isConflict && !isTransient(error)) await tellFailure(world, world.policies, turn.policy, error);
      left = [];
    }
  }
  const next = Math.min(...turns.map((turn) => turn.next ?? Number.POSITIVE_INFINITY)) - world.now().getTime();
  return { requeueAfterMs: Math.max(SOONEST_MS, Math.min(LOOK_MS, next)) };
}

const byAge = (a: BurstPolicy, b: BurstPolicy): number => {
  const [x, y] = [a, b].map(({ metadata }) => `${metadata.creationTimestamp} ${metadata.uid}`);
  return x! < y! ? -1 : 1;
};

async function lookAt(world: BurstWorld, memory: BurstMemory, name: string, signal: AbortSignal): Promise<Look> {
  const hub = world.hubs.get(name);
  if (!hub) return { reason: 'HubNotFound', problem: `there is no Hub ${name}` };
  if (!isTrue(hub.status?.conditions, 'Ready'))
    return { reason: 'HubNotReady', problem: `Hub ${name} is not ready: nothing is bought or given back` };
  try {
    const demands = await world.demandOf(hub, AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
    if (!demands)
      return { reason: 'NoDemand', problem: `hubs of type ${hub.spec.type} do not tell which work has no place` };
    const now = world.now().getTime();
    return { hub, work: workOf(demands, memory.waiting(name, demands, now), now) };
  } catch (error) {
    if (signal.aborted) throw error;
    const problem = `Hub ${name} does not answer: nothing is bought or given back (${errorText(error)})`;
    return { reason: 'HubDoesNotAnswer', problem };
  }
}

async function recordOf({ records }: BurstWorld, policy: BurstPolicy, signal: AbortSignal): Promise<BurstRecord> {
  const { name, namespace = '', uid = '' } = policy.metadata;
  const kept = await records.read(keyOf(policy), signal);
  // Of a policy of the same name that is gone: its clusters went with it.
  return kept?.policy.uid === uid ? kept : emptyRecord({ namespace, name, uid });
}

/** One look at one policy. */
class PolicyLook {
  readonly #world: BurstWorld;
  readonly #memory: BurstMemory;
  readonly #turn: Turn;
  readonly #turns: readonly Turn[];
  readonly #signal: AbortSignal;
  readonly #policy: BurstPolicy;
  readonly #before: BurstRecord;
  readonly #now: number;

  constructor(world: BurstWorld, memory: BurstMemory, turn: Turn, turns: readonly Turn[], signal: AbortSignal) {
    this.#world = world;
    this.#memory = memory;
    this.#turn = turn;
    this.#turns = turns;
    this.#signal = signal;
    this.#policy = turn.policy;
    this.#before = turn.record;
    this.#now = world.now().getTime();
  }

  /** @returns the work that is left to the policies after it */
  async run(look: Look, work: readonly HubWork[]): Promise<readonly HubWork[]> {
    if (this.#policy.metadata.deletionTimestamp) {
      await this.#end();
      return work;
    }
    await hold(this.#world, BURSTPOLICIES, this.#world.policies, this.#policy, true, { signal: this.#signal });
    this.#turn.record = withFacts(this.#turn.record, this.#seen(), 'work' in look ? look.work : [], this.#now);
    const refused = 'problem' in look ? look : this.#notAllowed(look.hub);
    if (refused || 'problem' in look) {
      await this.#save();
      await endClusters(this.#world, this.#policy, this.#turn.record, this.#signal);
      await this.#tell({ ready: { status: false, reason: refused!.reason, message: refused!.problem } });
      return work;
    }
    return this.#decide(look.hub, work);
  }

  #seen(): Seen[] {
    return this.#turn.record.purchases.map((purchase) =>
      seenOf(this.#world, this.#memory, this.#policy, purchase, this.#now),
    );
  }

  #notAllowed(hub: Hub): { reason: string; problem: string } | undefined {
    const { namespace = '' } = this.#policy.metadata;
    const allowed = hub.spec.allowedNamespaces ?? [];
    if (allowed.includes(namespace) || allowed.includes(EVERY_NAMESPACE)) return undefined;
    const problem = `Hub ${hub.metadata.name} does not allow namespace ${namespace}: have an administrator add it to allowedNamespaces`;
    return { reason: 'NotAllowed', problem };
  }

  async #decide(hub: Hub, work: readonly HubWork[]): Promise<readonly HubWork[]> {
    const { namespaces, dryRun, suspend } = this.#policy.spec;
    const mine = work.filter(({ namespace }) => !namespaces || namespaces.includes(namespace ?? ''));
    const others = work.filter((one) => !mine.includes(one));
    const candidates = await candidatesOf(
      this.#world,
      this.#memory,
      hub,
      this.#policy,
      this.#turn.record,
      this.#now,
      this.#signal,
    );
    const plan = await this.#plan(hub, mine, candidates);
    this.#turn.record = this.#decided(plan);
    this.#turn.next = plan.next;
    await this.#save();
    if (!dryRun) {
      this.#turn.record = await makeClusters(this.#world, this.#policy, this.#turn.record, this.#now, this.#signal);
      await this.#save();
    }
    const { problem } = await endClusters(this.#world, this.#policy, this.#turn.record, this.#signal);
    const ready = problem
      ? { status: false, reason: 'CannotGiveBack', message: problem }
      : suspend
        ? { status: true, reason: 'Suspended', message: `it watches Hub ${hub.metadata.name}, and decides nothing` }
        : dryRun
          ? {
              status: true,
              reason: 'DryRun',
              message: `it says what it would do for Hub ${hub.metadata.name}, and does nothing`,
            }
          : { status: true, reason: 'Watching', message: `it watches Hub ${hub.metadata.name}` };
    await this.#tell({ ready, candidates, waiting: mine, verdicts: plan.verdicts });
    const isLeft = new Set<unknown>(plan.left);
    return dryRun ? work : [...others, ...mine.filter((one) => isLeft.has(one))];
  }

  /** What is bought was tried as it will be made: what is refused then is passed by. */
  async #plan(hub: Hub, waiting: readonly HubWork[], candidates: Considered[]): Promise<ClustersPlan> {
    const { record } = this.#turn;
    const supply = waiting.length > 0 ? supplyOf(this.#world, hub, this.#bought(), this.#now) : [];
    const time = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text));
    for (;;) {
      const plan = planClusters(
        {
          limits: limitsOf(this.#policy.spec),
          waiting,
          supply,
          candidates,
          clusters: this.#seen().map(({ own }) => own),
          spent: spentUntil(record, this.#now),
          lastOut: time(record.lastOut),
          lastIn: time(record.lastIn),
        },
        this.#now,
      );
      let at = -1;
      let problem: string | undefined;
      for (const { candidate, nodes } of plan.purchases) {
        at = candidates.findIndex(({ name }) => name === candidate);
        problem = await refusalOf(this.#world, this.#policy, candidates[at]!.candidate, nodes, this.#signal);
        if (problem) break;
      }
      if (!problem) return plan;
      candidates[at] = { ...candidates[at]!, problem };
      // It may be allowed by the next look.
      this.#memory.forgetTried(trialKey(this.#policy, candidates[at]!.name));
    }
  }

  /** What all policies of the hub have bought and not given back. */
  #bought(): Bought[] {
    return this.#turns.flatMap(({ policy, record }) =>
      record.purchases.flatMap((purchase): Bought[] => {
        const { candidate, joinedAt } = purchase;
        const { cluster, own } = seenOf(this.#world, this.#memory, policy, purchase, this.#now);
        const made = policy.spec.candidates.find(({ name }) => name === candidate);
        if (own.phase === 'Leaving') return [];
        if (cluster) return [{ key: own.key, cluster, joinedAt }];
        return made ? [{ key: own.key, cluster: manifestOf(policy, made, purchase), joinedAt }] : [];
      }),
    );
  }

  /** The record with what the plan decides, before anything of it is done. */
  #decided({ purchases, removals, verdicts }: ClustersPlan): BurstRecord {
    const { dryRun } = this.#policy.spec;
    const at = `${new Date(this.#now).toISOString().slice(0, 19)}Z`;
    let { record } = this.#turn;
    for (const purchase of purchases)
      record = dryRun
        ? decided(record, {
            at,
            action: 'Buy',
            candidate: purchase.candidate,
            why: purchase.why,
            hourly: formatMoney(purchase.price.hourly),
            alternatives: told(purchase.alternatives),
            dryRun,
          })
        : ordered(record, purchase, this.#now);
    for (const removal of removals)
      record = dryRun
        ? decided(record, { at, action: 'Remove', cluster: removal.name, why: removal.why, dryRun })
        : givenBack(record, removal, this.#now);
    for (const { source, state, message, alternatives } of verdicts)
      if (state === 'Refused')
        record = decided(record, {
          at,
          action: 'Refuse',
          source,
          why: message,
          alternatives: told(alternatives ?? []),
          ...(dryRun && { dryRun }),
        });
    return record;
  }

  /** Writes the record down if it says something new, and has Events tell of decisions. */
  async #save(): Promise<void> {
    const { record } = this.#turn;
    if (record === this.#saved) return;
    await this.#world.records.save(keyOf(this.#policy), record, this.#signal);
    const known = new Set(this.#saved.decisions.map((one) => JSON.stringify(one)));
    const fresh = record.decisions.filter((one) => !known.has(JSON.stringify(one)));
    this.#savedRecord = record;
    for (const { action, source, cluster, why, dryRun } of fresh.reverse()) {
      const text = [dryRun && 'dry run', cluster && `WorkerCluster ${cluster}`, source, why].filter(Boolean).join(': ');
      this.#world.record(this.#policy, TYPES[action], REASONS[action], text);
      this.#world.metrics
        .counter('coppice_burst_decisions_total', 'Decisions of BurstPolicies by action.')
        .inc({ action });
    }
  }

  #savedRecord: BurstRecord | undefined;
  get #saved(): BurstRecord {
    return this.#savedRecord ?? this.#before;
  }

  async #tell(outcome: Pick<Outcome, 'ready'> & Partial<Outcome>): Promise<void> {
    const { record } = this.#turn;
    const isNews = record !== this.#before || this.#policy.status?.spend?.month !== monthOf(this.#now);
    const whole = { candidates: [], waiting: [], verdicts: [], ...outcome, record, isNews, seen: this.#seen() };
    const status = statusOf(this.#policy, whole, this.#world.now());
    const { policies, garden } = this.#world;
    await writeStatus(garden, policies, this.#policy, status, this.#signal);
  }

  /** Gives all clusters back; the policy is let go of when they are gone. Those that somebody took from it stay. */
  async #end(): Promise<void> {
    const { finalizers = [] } = this.#policy.metadata;
    // Kubernetes takes the policy from its clusters now, as whoever deletes it has asked.
    if (finalizers.includes('orphan')) return;
    let { record } = this.#turn;
    record = withFacts(record, this.#seen(), [], this.#now);
    for (const { name, leaving } of record.purchases)
      if (!leaving) record = givenBack(record, { name, why: 'the policy is deleted', isFailure: false }, this.#now);
    this.#turn.record = record;
    await this.#save();
    const { left, problem } = await endClusters(this.#world, this.#policy, record, this.#signal);
    if (left.length > 0) {
      const message = problem ?? `its clusters leave first: ${left.slice(0, 5).join(', ')}`;
      await this.#tell({ ready: { status: false, reason: 'Deleting', message }, deleting: message });
      return;
    }
    await this.#world.records.remove(keyOf(this.#policy), this.#signal);
    await hold(this.#world, BURSTPOLICIES, this.#world.policies, this.#policy, false, { signal: this.#signal });
  }
}

const REASONS = {
  Buy: 'ClusterBought',
  Refuse: 'NothingBought',
  Remove: 'ClusterGivenBack',
  Fail: 'ClusterFailed',
} as const;
const TYPES = { Buy: 'Normal', Refuse: 'Warning', Remove: 'Normal', Fail: 'Warning' } as const;

import { CoppiceError, errorText } from '../../../api/errors.ts';
import { sleep } from '../../../kube/clock.ts';
import type { Operation } from '../operation.ts';
import { eachPool } from './each-pool.ts';
import { machinesGone, podsByNode, takeAway } from './machine-removal.ts';
import { type PoolRoll, paceOf, planRoll } from './roll.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** Shortest interval between requests to a cloud about machines. */
const LOOK_MS = 10 * SECOND;
/** Groups simultaneous changes of nodes. */
const SETTLE_MS = SECOND;
/** Interval of reconciling pools without changes: renews tokens and reads the cloud's errors. */
const RECONCILE_MS = MINUTE;
/**
 * Time for a machine to join before the roll reports it, measured by the machine's age, so that a restart does not
 * reset it. Well below the timeout of an operation (wiring.ts), after which the roll would restart without ever
 * reporting.
 */
const PATIENCE_MS = 20 * MINUTE;

/**
 * Replaces outdated machines: requests new ones, then drains and removes as many old ones as allowed, until none is
 * left. Each step observes first, so it does not depend on how the previous one ended.
 * @param acts called when there are outdated machines
 */
export async function rollMachines(op: Operation, signal: AbortSignal, acts?: () => void): Promise<void> {
  let [seen, movedAt, reconciledAt] = ['', 0, 0];
  for (;;) {
    signal.throwIfAborted();
    const plans = await nextSteps(op);
    if (plans.length === 0) {
      // The last removals may have left a pool too small.
      if (seen !== '') await reconcile(op, []);
      return;
    }
    acts?.();
    const now = +op.deps.now();
    const sight = JSON.stringify(plans.map(({ pool, outdated, renewed, there }) => [pool, outdated, renewed, there]));
    if (sight !== seen) {
      [seen, movedAt, reconciledAt] = [sight, now, 0];
      op.notice();
    }
    let refusal: unknown;
    if (now - reconciledAt > RECONCILE_MS) {
      reconciledAt = now;
      refusal = await refusalOf(reconcile(op, plans));
      signal.throwIfAborted();
    }
    const going = plans
      .filter(({ victims }) => victims.length > 0)
      .map(({ pool, victims, there }) => ({ pool, victims, remaining: there - victims.length }));
    if (going.length > 0) {
      await takeAway(op, going, 'Rolled', signal);
      await machinesGone(op, going, signal);
    } else if (refusal !== undefined) {
      throw held(plans, refusal);
    } else if (lateSince(plans, now) !== undefined) {
      throw held(plans, new Error(lateSince(plans, now)));
    } else if (now - movedAt > PATIENCE_MS) {
      throw held(plans, new Error(`nothing has changed for ${PATIENCE_MS / MINUTE} min`));
    } else {
      await somethingChanged(op, signal);
    }
  }
}

async function nextSteps(op: Operation): Promise<PoolRoll[]> {
  const workers = op.shoot.spec.provider.workers ?? [];
  const pools = op.pools.flatMap(({ name, count }) => {
    const worker = workers.find((candidate) => candidate.name === name);
    return worker ? [{ name, count, pace: paceOf(worker) }] : [];
  });
  const machines = await op.provider.listMachines(op.context());
  const nodes = op.state.connection!.nodes.list();
  const byName = new Map(nodes.map((node) => [node.metadata.name, node]));
  return planRoll(pools, machines, byName, podsByNode(op.state.connection!, nodes));
}

/** Requests the temporary surplus machines first, because only this call reports why they do not come. */
async function reconcile(op: Operation, plans: readonly PoolRoll[]): Promise<void> {
  const asked = new Map(plans.map((plan) => [plan.pool, plan.asked]));
  const pools = op.pools.map((pool) => ({ ...pool, count: asked.get(pool.name) ?? pool.count, maxSurge: 0 }));
  const { provider } = op;
  if (provider.reconcilePools) return provider.reconcilePools(op.context(), pools);
  await eachPool(pools, (pool) => provider.reconcilePool(op.context(), pool));
}

/** Report about new machines that are overdue; undefined: none. */
function lateSince(plans: readonly PoolRoll[], now: number): string | undefined {
  const late = plans.flatMap(({ awaited }) =>
    awaited && now - Date.parse(awaited.createdAt) > PATIENCE_MS ? [awaited] : [],
  )[0];
  return late && `machine ${late.name} was made at ${late.createdAt}, and its node is not Ready`;
}

const refusalOf = (done: Promise<void>): Promise<unknown> =>
  done.then(
    () => undefined,
    (error: unknown) => error ?? new Error('refused'),
  );

/** Error of a blocked roll: existing machines stay, and the roll continues when possible. */
function held(plans: readonly PoolRoll[], cause: unknown): CoppiceError {
  const pools = plans.map(({ pool, renewed, count }) => `pool ${pool}: ${Math.min(renewed, count)} of ${count}`);
  const code = cause instanceof CoppiceError ? cause.code : 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(
    // The pool has all requested machines, so no alternative place is needed.
    code === 'ERR_INFRA_RESOURCES_DEPLETED' ? 'ERR_RETRYABLE_INFRA_DEPENDENCIES' : code,
    `machines are new in ${pools.join(', ')}; the others stay until new ones come: ${errorText(cause)}`,
  );
}

async function somethingChanged({ state }: Operation, signal: AbortSignal): Promise<void> {
  const changed = new AbortController();
  const off = state.connection!.nodes.onAnyChange(() => changed.abort());
  await sleep(LOOK_MS, AbortSignal.any([signal, changed.signal]));
  off();
  await sleep(SETTLE_MS, signal);
}

import { CoppiceError, errorText } from '../../../api/errors.ts';
import { sleep } from '../../../kube/clock.ts';
import type { Operation } from '../operation.ts';
import { eachPool } from './each-pool.ts';
import { machinesGone, podsByNode, takeAway } from './machine-removal.ts';
import { type PoolRoll, paceOf, planRoll } from './roll.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
/** A cloud is not asked more often than this what became of its machines. */
const LOOK_MS = 10 * SECOND;
/** Several nodes that change together are one change. */
const SETTLE_MS = SECOND;
/** How often pools are gone over although nothing was seen to happen: their tokens are renewed, and a cloud says why it gives nothing. */
const RECONCILE_MS = MINUTE;
/**
 * Longer than a machine needs that joins. Well within the time that an operation may take (wiring.ts), or a roll that does not go on would
 * begin anew each time without ever saying so; by the age of the machine, which an operator that starts anew sees as well.
 */
const PATIENCE_MS = 20 * MINUTE;

/**
 * Replaces outdated machines: has new ones made, drains and removes as many old ones as may go, until there are none. Each step begins
 * by looking, so it does not matter how the one before ended.
 * @param acts is called when there are outdated machines
 */
export async function rollMachines(op: Operation, signal: AbortSignal, acts?: () => void): Promise<void> {
  let [seen, movedAt, reconciledAt] = ['', 0, 0];
  for (;;) {
    signal.throwIfAborted();
    const plans = await nextSteps(op);
    if (plans.length === 0) {
      // The last ones to go may have left a pool smaller than it is to be.
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

/** Asks for the machines that are to come first, by number: of those that are too many for the moment nobody else says why they do not come. */
async function reconcile(op: Operation, plans: readonly PoolRoll[]): Promise<void> {
  const asked = new Map(plans.map((plan) => [plan.pool, plan.asked]));
  const pools = op.pools.map((pool) => ({ ...pool, count: asked.get(pool.name) ?? pool.count, maxSurge: 0 }));
  const { provider } = op;
  if (provider.reconcilePools) return provider.reconcilePools(op.context(), pools);
  await eachPool(pools, (pool) => provider.reconcilePool(op.context(), pool));
}

/** What is said of a new machine that should be a node by now; undefined: there is none. */
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

/** The machines that there are stay, and the roll goes on when it can. */
function held(plans: readonly PoolRoll[], cause: unknown): CoppiceError {
  const pools = plans.map(({ pool, renewed, count }) => `pool ${pool}: ${Math.min(renewed, count)} of ${count}`);
  const code = cause instanceof CoppiceError ? cause.code : 'ERR_RETRYABLE_INFRA_DEPENDENCIES';
  return new CoppiceError(
    // Nothing that was asked for is missing: the pool is not to be looked for elsewhere.
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

import type { BurstPolicy } from '../api/burstpolicy.ts';
import { ordersOf } from '../burst/clusters/plan-model.ts';
import { clustersIn, emptyReceipt } from '../burst/clusters/receipt.ts';
import { reconcileBurst } from '../controllers/burst/controller.ts';
import { BurstMemory } from '../controllers/burst/memory.ts';
import { settlesAt } from '../controllers/burst/release-minimums.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import type { Simulation } from './state.ts';
import { simulatedWorld } from './world.ts';

/** Interval of the operator's queries to a hub, milliseconds. */
const LOOK_MS = 10_000;
/** Cooldowns and quotas end without an event: while workloads wait, the policy is evaluated at least this often. */
const WAITING_MS = 60_000;

/** The operator's memory of a policy before its first evaluation. */
export function newRehearsedPolicy(policy: BurstPolicy): RehearsedPolicy {
  const { name, namespace = '', uid = `${namespace}/${name}` } = policy.metadata;
  const known = { ...policy, metadata: { ...policy.metadata, uid } };
  const receipt = emptyReceipt({ namespace, name, uid });
  return { policy: known, memory: new BurstMemory(), receipt, seen: -1, lookedAt: -LOOK_MS, refusals: new Map() };
}

/** Schedules the operator's next evaluation of its policy: after a change, at the next query to the hub. */
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

const NEVER = new AbortController().signal;

/** Evaluates the policy with the operator's own code. */
async function look(simulation: Simulation, rehearsed: RehearsedPolicy): Promise<void> {
  const { policy, memory } = rehearsed;
  rehearsed.lookAt = undefined;
  rehearsed.lookedAt = simulation.now;
  const simulated = simulatedWorld(simulation, rehearsed);
  const world = simulation.worldOf?.(simulated, simulation) ?? simulated;
  const { next } = await reconcileBurst(world, memory, policy.spec.hub, NEVER);
  rehearsed.seen = simulation.work!.version;
  if (next !== undefined) lookBy(simulation, rehearsed, next - simulation.epoch);
  const { plan, waiting = [], verdicts = [] } = rehearsed.told ?? {};
  // Waiting clusters are created one per evaluation.
  if (plan && ordersOf(plan.orders, 'cluster').some(({ waits }) => waits))
    lookBy(simulation, rehearsed, simulation.now + LOOK_MS);
  // The operator evaluates continuously; here an evaluation is scheduled for the release of minimums.
  for (const purchase of clustersIn(rehearsed.receipt)) {
    const at = purchase.work ? undefined : settlesAt(purchase);
    if (at !== undefined && at > simulation.epoch + simulation.now)
      lookBy(simulation, rehearsed, at - simulation.epoch);
  }
  // Verdicts also report peaks or minimum clusters for which nothing may be bought.
  if (waiting.length + verdicts.length > 0) lookBy(simulation, rehearsed, simulation.now + WAITING_MS);
}

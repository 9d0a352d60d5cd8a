import type { BurstPolicy } from '../api/burstpolicy.ts';
import { ordersOf } from '../burst/clusters/plan-model.ts';
import { clustersIn, emptyReceipt } from '../burst/clusters/receipt.ts';
import { reconcileBurst } from '../controllers/burst/controller.ts';
import { BurstMemory } from '../controllers/burst/memory.ts';
import { settlesAt } from '../controllers/burst/release-minimums.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import type { Simulation } from './state.ts';
import { simulatedWorld } from './world.ts';

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

const NEVER = new AbortController().signal;

/** One look at the policy: the operator's own. */
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
  // Those that wait are made one in each look.
  if (plan && ordersOf(plan.orders, 'cluster').some(({ waits }) => waits))
    lookBy(simulation, rehearsed, simulation.now + LOOK_MS);
  // An operator looks all the time. Here its minimums are released when the time has come for it.
  for (const purchase of clustersIn(rehearsed.receipt)) {
    const at = purchase.work ? undefined : settlesAt(purchase);
    if (at !== undefined && at > simulation.epoch + simulation.now)
      lookBy(simulation, rehearsed, at - simulation.epoch);
  }
  // Of a peak, or of the least number of clusters, that nothing may be bought for, a verdict says so.
  if (waiting.length + verdicts.length > 0) lookBy(simulation, rehearsed, simulation.now + WAITING_MS);
}

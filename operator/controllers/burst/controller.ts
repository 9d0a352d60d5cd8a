import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { isTrue } from '../../api/conditions.ts';
import { errorText } from '../../api/errors.ts';
import type { Hub } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type BurstReceipt, clustersIn, emptyReceipt, wakesIn } from '../../burst/clusters/receipt.ts';
import type { PlacedSource } from '../../hubs/contract.ts';
import { isTransient, KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { answerHub } from './answer-hub.ts';
import { MOST_DEMANDS } from './hub-work.ts';
import type { BurstMemory } from './memory.ts';
import { isClusterOf, type Look, PolicyLook } from './policy-look.ts';
import type { Turn } from './turn.ts';
import type { BurstSight, BurstWorld } from './world.ts';

/** Interval of asking a hub for unplaced work while a policy names it. */
const LOOK_MS = 10_000;
const SOONEST_MS = 100;

/**
 * Decides for all policies of a hub, oldest first, so that no two buy for the same work: each purchase is room for the
 * next policy, and unserved work is passed on.
 * @returns when to run again, and the next change by time alone, milliseconds since the epoch. Absent: none
 */
export async function reconcileBurst(
  world: BurstWorld,
  memory: BurstMemory,
  hubName: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs?: number; next?: number }> {
  const policies = [...world.policies.byIndex(BY_HUB, hubName)].sort(byAge);
  if (policies.length === 0) {
    memory.forgetHub(hubName);
    const hub = world.hubs.get(hubName);
    if (!hub || !isTrue(hub.status?.conditions, 'Ready')) return {};
    await answerHub(world, memory, hub, await world.asksOf(hub, signal), undefined, signal);
    return {};
  }
  const look = await lookAt(world, memory, hubName, signal);
  const turns: Turn[] = [];
  let left = 'work' in look ? look.work : [];
  let isPartial = 'isPartial' in look && look.isPartial === true;
  const withhold = (policy: BurstPolicy) => {
    const others = left.filter((one) => !isClusterOf(policy, one));
    isPartial ||= others.length < left.length;
    left = others;
  };
  for (const policy of policies) {
    try {
      turns.push({ policy, receipt: await receiptOf(world, policy, signal) });
    } catch (error) {
      if (signal.aborted || isTransient(error)) throw error;
      await world.fail(policy, error);
      // It may have bought already: another policy would buy for the same work.
      withhold(policy);
    }
  }
  if ('work' in look) notePlacements(world, memory, look.hub, look.placed ?? [], turns);
  for (const turn of turns) {
    try {
      left = await new PolicyLook(world, memory, turn, turns, signal).run(look, left, isPartial);
    } catch (error) {
      if (signal.aborted) throw error;
      // Its purchases are in its receipt and count as room. Only the work that it would have bought for waits for its
      // next cycle.
      const isConflict = error instanceof KubeApiError && error.isConflict;
      if (!isConflict && !isTransient(error)) await world.fail(turn.policy, error);
      withhold(turn.policy);
    }
  }
  if ('hub' in look) {
    const decided = { work: look.work, turns, isPartial: turns.length < policies.length };
    await answerHub(world, memory, look.hub, look.asking, decided, signal);
  }
  const next = Math.min(...turns.map((turn) => turn.next ?? Number.POSITIVE_INFINITY));
  const requeueAfterMs = Math.max(SOONEST_MS, Math.min(LOOK_MS, next - world.now().getTime()));
  return { requeueAfterMs, ...(Number.isFinite(next) && { next }) };
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
    const { demands, work, unread, placed, asking } = await world.hear(hub, signal);
    if (!demands) {
      const problem = `hubs of type ${hub.spec.type} do not tell which work has no place`;
      return { hub, work: [], silent: { reason: 'NoDemand', problem } };
    }
    const now = world.now().getTime();
    const isPartial = demands.length > MOST_DEMANDS;
    return { hub, work: work(memory.waiting(name, demands, now), now), isPartial, unread, placed, asking };
  } catch (error) {
    if (signal.aborted) throw error;
    const problem = `Hub ${name} does not answer: nothing is bought or given back (${errorText(error)})`;
    return { reason: 'HubDoesNotAnswer', problem };
  }
}

/** Remembers placements on clusters that policies may give back. */
function notePlacements(
  world: BurstSight,
  memory: BurstMemory,
  hub: Hub,
  placed: readonly PlacedSource[],
  turns: readonly Turn[],
): void {
  const { name } = hub.metadata;
  const named = (clusters: readonly WorkerCluster[]) => clusters.map((cluster) => world.nameIn(name, cluster));
  const kept = turns.flatMap(({ receipt, policy }) => keysKept(policy, receipt));
  const watched = named(kept.flatMap((key) => world.clusters.get(key) ?? []));
  memory.placements.note(name, placed, named(world.members(hub)), watched, world.now().getTime());
}

/** `namespace/name` of clusters that a policy bought or woke. */
const keysKept = ({ metadata: { namespace } }: BurstPolicy, receipt: BurstReceipt): string[] => [
  ...clustersIn(receipt).map(({ name }) => `${namespace}/${name}`),
  ...wakesIn(receipt).map(({ cluster }) => cluster),
];

async function receiptOf({ receipts }: BurstWorld, policy: BurstPolicy, signal: AbortSignal): Promise<BurstReceipt> {
  const { name, namespace = '', uid = '' } = policy.metadata;
  const kept = await receipts.read(keyOf(policy), signal);
  // Receipt of a deleted policy of the same name: its clusters went with it.
  return kept?.policy.uid === uid ? kept : receipts.madeFrom(emptyReceipt({ namespace, name, uid }), kept);
}

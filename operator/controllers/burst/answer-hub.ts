import type { Hub } from '../../api/hub.ts';
import { answersTo, type PolicySaid } from '../../burst/clusters/answers.ts';
import { clustersIn, measuredStartupMs } from '../../burst/clusters/receipt.ts';
import type { Asking } from '../../hubs/contract.ts';
import { isNotFound, KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { type HubWork, workOf } from './hub-work.ts';
import type { BurstMemory } from './memory.ts';
import { supplyOf } from './supply.ts';
import { boughtBy, growthsOf, type Turn } from './turn.ts';
import type { BurstWorld } from './world.ts';

/** So many are written in one look; the next one comes soon. */
const MOST_WRITES = 200;

/** What one look at a hub has come to. */
interface Decided {
  /** All that it has no place for. */
  readonly work: readonly HubWork[];
  readonly turns: readonly Turn[];
  /** Some of its policies could not decide: what they would do nobody knows. */
  readonly isPartial: boolean;
}

/**
 * Answers a hub that holds work until there is room for it. What somebody has changed since it was read is answered by the next look. Throws as
 * KubeClient does.
 * @param asking undefined: it asks nothing
 * @param decided undefined: no policy names this hub
 */
export async function answerHub(
  world: BurstWorld,
  memory: BurstMemory,
  hub: Hub,
  asking: Asking | undefined,
  decided: Decided | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (!asking) return;
  const taking = workOf(asking.taking(world.now()), new Map(), Number.NEGATIVE_INFINITY);
  const answers = decided && asking.sources.length > 0 ? toldOf(world, memory, hub, decided, taking) : undefined;
  const parts = asking.answers(decided && ((source) => answers?.get(source)), world.now());
  for (const part of parts.slice(0, MOST_WRITES)) {
    try {
      await world.answer(hub, part, signal);
    } catch (error) {
      if (!isNotFound(error) && !(error instanceof KubeApiError && error.isConflict)) throw error;
    }
  }
}

function toldOf(
  world: BurstWorld,
  memory: BurstMemory,
  hub: Hub,
  { work, turns, isPartial }: Decided,
  taking: readonly HubWork[],
): ReturnType<typeof answersTo> {
  const now = world.now().getTime();
  const supply = supplyOf(world, hub, boughtBy(world, memory, turns, now), growthsOf(turns), now);
  const hasAllSaid = !isPartial && turns.every(({ verdicts }) => verdicts !== undefined);
  return answersTo([...taking, ...work], supply, hasAllSaid ? turns.map(saidBy) : undefined, now);
}

const saidBy = ({ policy, receipt, verdicts = [] }: Turn): PolicySaid => ({
  policy: keyOf(policy),
  isDryRun: policy.spec.dryRun === true,
  verdicts,
  ordered: clustersIn(receipt)
    .filter(({ phase }) => phase.name === 'Coming')
    .map(({ name, sources, at, candidate }) => ({
      name,
      sources,
      at,
      startupMs: measuredStartupMs(receipt, candidate),
    })),
});

import type { Hub } from '../../api/hub.ts';
import { answersTo, type PolicySaid } from '../../burst/clusters/answers.ts';
import { clustersIn, measuredStartupMs } from '../../burst/clusters/receipt.ts';
import type { Asking } from '../../hubs/contract.ts';
import { isNotFound, KubeApiError } from '../../kube/errors.ts';
import { keyOf } from '../../kube/resources.ts';
import { type HubWork, hubWorkOf } from './hub-work.ts';
import type { BurstMemory } from './memory.ts';
import { supplyOf } from './supply.ts';
import { boughtBy, growthsOf, type Turn } from './turn.ts';
import type { BurstWorld } from './world.ts';

/** Most writes per cycle; the next follows soon. */
const MOST_WRITES = 200;

/** Result of a cycle for a hub. */
interface Decided {
  /** All work without a place. */
  readonly work: readonly HubWork[];
  readonly turns: readonly Turn[];
  /** Some policies could not decide, so their choice is unknown. */
  readonly isPartial: boolean;
}

/**
 * Answers a hub that holds work until there is room. Objects changed meanwhile are answered in the next cycle. Throws
 * as KubeClient does.
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
  const taking = hubWorkOf(asking.taking(world.now()), new Map(), Number.NEGATIVE_INFINITY);
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

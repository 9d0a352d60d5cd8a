import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { Outcome } from './seen.ts';
import type { BurstActs, BurstSight, BurstWorld } from './world.ts';

/** Performs and records nothing. */
const nothing = async (): Promise<void> => {};

/**
 * A world that only reports decisions: policies are those of the observed world, each with a dry run.
 * @param policies with the settings to decide by
 * @param receipts read-only receipts of policies
 * @param tell receives each policy's result
 * @param fail receives each policy's error
 */
export function dryRunWorld(
  sight: BurstSight,
  policies: readonly BurstPolicy[],
  receipts: Pick<BurstActs['receipts'], 'read'>,
  tell: (policy: BurstPolicy, outcome: Outcome) => void,
  fail: (policy: BurstPolicy, error: unknown) => void,
): BurstWorld {
  return {
    ...sight,
    policies: { byIndex: (_, hub) => policies.filter(({ spec }) => spec.hub === hub) },
    receipts: {
      // Without old decisions, so that all reported ones are of this cycle.
      async read(key, signal): Promise<BurstReceipt | undefined> {
        const kept = await receipts.read(key, signal);
        return kept && { ...kept, decisions: [] };
      },
      madeFrom: (next) => next,
      save: nothing,
      remove: nothing,
    },
    hold: nothing,
    create: nothing,
    patch: nothing,
    delete: nothing,
    decide: nothing,
    orderSleep: nothing,
    noteInterruptions() {},
    told() {},
    tell: async (policy, outcome) => tell(policy, outcome),
    fail: async (policy, error) => fail(policy, error),
    answer: nothing,
    recordEvent() {},
  };
}

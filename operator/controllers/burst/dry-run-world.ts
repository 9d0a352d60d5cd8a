import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import type { Outcome } from './seen.ts';
import type { BurstActs, BurstSight, BurstWorld } from './world.ts';

/** Nothing of it is done, and nothing is written down. */
const nothing = async (): Promise<void> => {};

/**
 * A world in which whatever is decided is only told: policies are as in the one that is seen, and say what they would do.
 * @param policies those that decide, each as it is to decide
 * @param receipts where what policies have written down is read
 * @param tell is told what a look at a policy has come to
 * @param fail is told what a look at a policy has thrown
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
      // What was decided before is not told again: all decisions are those of this look.
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

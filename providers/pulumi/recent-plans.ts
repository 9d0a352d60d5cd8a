import { createHash } from 'node:crypto';
import { stackNameOf } from './project.ts';
import type { StackRequest } from './request.ts';
import type { RunReport } from './run-events.ts';
import { pendingOf, type StackState, stackResourcesOf } from './stack-state.ts';

/** How long a plan stays valid, ms: values that the program looks up in the cloud may change. */
const FRESH_MS = 2 * 60_000;

interface Plan {
  /** Digest of all inputs of the plan, except the program's look-ups. */
  digest: string;
  record: RunReport;
  madeAt: number;
}

const digestOf = ({ program, inputs, account, region, settings }: StackRequest, state: StackState): string =>
  createHash('sha256')
    .update(JSON.stringify([program, inputs, account, region, settings, stackResourcesOf(state), pendingOf(state)]))
    .digest('base64');

/**
 * Cache of recent plans for a following apply, which saves an engine run per stack. A plan with other inputs, another
 * state, or too old is not returned.
 */
export class RecentPlans {
  readonly #plans = new Map<string, Plan>();
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  keep(request: StackRequest, state: StackState, record: RunReport): void {
    // Most plans are never applied: drop expired ones.
    for (const [stack, { madeAt }] of this.#plans) if (this.#now() - madeAt > FRESH_MS) this.#plans.delete(stack);
    const digest = digestOf(request, state);
    this.#plans.set(stackNameOf(request.stack), { digest, record, madeAt: this.#now() });
  }

  /** Takes the plan of exactly this request and state; undefined: none. */
  take(request: StackRequest, state: StackState): RunReport | undefined {
    const stack = stackNameOf(request.stack);
    const plan = this.#plans.get(stack);
    this.#plans.delete(stack);
    if (!plan || this.#now() - plan.madeAt > FRESH_MS || plan.digest !== digestOf(request, state)) return undefined;
    return plan.record;
  }
}

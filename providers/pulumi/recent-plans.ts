import { createHash } from 'node:crypto';
import { stackNameOf } from './project.ts';
import type { StackRequest } from './request.ts';
import type { RunReport } from './run-events.ts';
import { pendingOf, resourcesOf, type StackState } from './stack-state.ts';

/** How long a plan is as good as one made now, ms: what a program looks up in the cloud may change meanwhile. */
const FRESH_MS = 2 * 60_000;

interface Plan {
  /** Of all that the plan rests on, but for what the program looks up. */
  digest: string;
  record: RunReport;
  madeAt: number;
}

const digestOf = ({ program, inputs, account, region, settings }: StackRequest, state: StackState): string =>
  createHash('sha256')
    .update(JSON.stringify([program, inputs, account, region, settings, resourcesOf(state), pendingOf(state)]))
    .digest('base64');

/**
 * Plans that were shown a moment ago, for whoever then applies the very same: an engine run less for each stack. A plan made with
 * other inputs, on another state, or a while ago is not given out.
 */
export class RecentPlans {
  readonly #plans = new Map<string, Plan>();
  readonly #now: () => number;

  /** @param now milliseconds */
  constructor(now: () => number) {
    this.#now = now;
  }

  keep(request: StackRequest, state: StackState, record: RunReport): void {
    // Most plans are shown and then not applied: they must not pile up over a fleet.
    for (const [stack, { madeAt }] of this.#plans) if (this.#now() - madeAt > FRESH_MS) this.#plans.delete(stack);
    const digest = digestOf(request, state);
    this.#plans.set(stackNameOf(request.stack), { digest, record, madeAt: this.#now() });
  }

  /** The plan of exactly this, once; undefined when there is none. */
  take(request: StackRequest, state: StackState): RunReport | undefined {
    const stack = stackNameOf(request.stack);
    const plan = this.#plans.get(stack);
    this.#plans.delete(stack);
    if (!plan || this.#now() - plan.madeAt > FRESH_MS || plan.digest !== digestOf(request, state)) return undefined;
    return plan.record;
  }
}

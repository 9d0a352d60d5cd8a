/** That a cluster is to sleep, or to be awake, as the operator itself has decided it: the spec stays its owner's. */
export interface SleepOrder {
  readonly asleep: boolean;
  /** Who decided it, in a word for people. */
  readonly by: string;
  readonly why: string;
  /** When, as RFC 3339. */
  readonly at: string;
}

/** What is stored of a cluster. `unknown`: it cannot be read now, and what was so goes on. */
export type KnownSleepOrder = SleepOrder | 'none' | 'unknown';

/** Whether it says something about sleep. */
export const isSleepOrder = (order: Partial<SleepOrder> | undefined): order is SleepOrder =>
  typeof order?.asleep === 'boolean' &&
  typeof order.by === 'string' &&
  typeof order.why === 'string' &&
  typeof order.at === 'string' &&
  !Number.isNaN(Date.parse(order.at));

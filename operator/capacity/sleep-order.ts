/** The operator's own decision that a cluster sleeps or is awake; the spec remains its owner's. */
export interface SleepOrder {
  readonly asleep: boolean;
  /** The decider in a word, for messages. */
  readonly by: string;
  readonly why: string;
  /** Time of the decision, RFC 3339. */
  readonly at: string;
}

/** The stored order of a cluster. `unknown`: it cannot be read now, and the previous state continues. */
export type KnownSleepOrder = SleepOrder | 'none' | 'unknown';

/** Whether a stored receipt holds a valid order. */
export const isSleepOrder = (order: Partial<SleepOrder> | undefined): order is SleepOrder =>
  typeof order?.asleep === 'boolean' &&
  typeof order.by === 'string' &&
  typeof order.why === 'string' &&
  typeof order.at === 'string' &&
  !Number.isNaN(Date.parse(order.at));

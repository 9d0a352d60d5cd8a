/** When to check a membership again without a change. */
export interface Next {
  requeueAfterMs?: number;
}

/** Interval while waiting for unwatched progress (a finalizer in the hub, a PlacementDecision). */
export const LOOK_AGAIN_MS = 2_000;
/** Margin after a deadline. */
export const SLACK_MS = 50;

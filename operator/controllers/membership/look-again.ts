/** When a membership is looked at again, if nothing happens before. */
export interface Next {
  requeueAfterMs?: number;
}

/** While something is under way that nobody is told of (a finalizer in the hub, a PlacementDecision). */
export const LOOK_AGAIN_MS = 2_000;
/** So that a time that was waited for is over. */
export const SLACK_MS = 50;

/** What a person needs who meets a reason, an error code or an exit code. Each is one or two sentences of 25 words at most. */
export interface Explanation {
  /** What stands there: the status of the condition and how its message begins, or what the command prints. */
  readonly see: string;
  readonly means: string;
  readonly why: string;
  /** A command in backquotes, a field, or "Nothing: the operator ...". NAME and NAMESPACE are those of the object. */
  readonly action: string;
}

/** An Explanation in one call. */
export const explained = (see: string, means: string, why: string, action: string): Explanation => ({
  see,
  means,
  why,
  action,
});

/** Of every kind: an error that the operator cannot tell in any other condition. */
export const RECONCILE_FAILED = {
  ReconcileFailed: explained(
    'False: the operator failed to reconcile this object',
    'The operator could not finish its work on the object.',
    'The message has the error; the code of the condition says whether a retry can help.',
    'Look up the code of the condition in the page on error codes, and repair what the message names.',
  ),
} as const;

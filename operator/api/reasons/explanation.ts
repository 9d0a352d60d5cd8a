/** Explanation of a reason, an error code or an exit code. Each text has one or two sentences of 25 words at most. */
export interface Explanation {
  /** What a person sees: the condition's status and the start of its message, or the output of the command. */
  readonly see: string;
  readonly means: string;
  readonly why: string;
  /** A command in backquotes, a field, or "Nothing: the operator ...". NAME and NAMESPACE are the object's. */
  readonly action: string;
}

/** Creates an Explanation. */
export const explained = (see: string, means: string, why: string, action: string): Explanation => ({
  see,
  means,
  why,
  action,
});

/** Reason of every kind: an error that fits no other condition. */
export const RECONCILE_FAILED = {
  ReconcileFailed: explained(
    'False: the operator failed to reconcile this object',
    'The operator could not finish its work on the object.',
    'The message has the error; the code of the condition says whether a retry can help.',
    'Look up the code of the condition in the page on error codes, and repair what the message names.',
  ),
} as const;

import type { Change } from '../cloud.ts';
import type { ApplyRequest, ApplyResult, StackRequest } from './request.ts';

/**
 * Runs Pulumi operations on stacks: one at a time per stack, bounded per account and region. Errors are CoppiceErrors; their code
 * is what the request's `classify` made of the diagnostics.
 */
export interface StackRunner {
  /** What apply would do. Changes nothing. */
  preview(request: StackRequest): Promise<Change[]>;
  apply(request: ApplyRequest): Promise<ApplyResult>;
  /** What differs in the cloud from what was last applied. Changes neither the cloud nor the stack's state. */
  drift(request: StackRequest): Promise<Change[]>;
  /** Deletes everything of the stack, then the stack. A stack that is not there is fine. */
  destroy(request: StackRequest): Promise<void>;
  /** What the stack's program gave back when it was last applied; undefined when it never was. */
  outputs(request: StackRequest): Promise<Record<string, unknown> | undefined>;
}

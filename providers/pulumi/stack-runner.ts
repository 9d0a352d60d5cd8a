import type { Change } from '../cloud.ts';
import type { ApplyRequest, ApplyResult, StackRequest } from './request.ts';

/**
 * Runs Pulumi operations on stacks: one at a time per stack, bounded per account and region. Errors are CoppiceErrors
 * with the code from the request's `classify`.
 */
export interface StackRunner {
  /** Changes that apply would make. Changes nothing. */
  preview(request: StackRequest): Promise<Change[]>;
  apply(request: ApplyRequest): Promise<ApplyResult>;
  /** Drift since the last apply. Changes neither the cloud nor the state. */
  drift(request: StackRequest): Promise<Change[]>;
  /** Deletes all resources of the stack, then the stack. A missing stack is fine. */
  destroy(request: StackRequest): Promise<void>;
  /** Outputs of the last apply; undefined when there was none. */
  outputs(request: StackRequest): Promise<Record<string, unknown> | undefined>;
}

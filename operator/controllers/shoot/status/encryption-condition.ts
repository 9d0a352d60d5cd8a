import { ENCRYPTION_KEY_ROTATING } from '../../../api/conditions.ts';
import { ANNOTATIONS } from '../../../api/group.ts';
import type { Reason } from '../../../api/reasons.ts';
import { encryptionSeen } from '../../../shoot/secrets-encryption.ts';
import { type Said, say } from '../../conditions.ts';
import type { Operation } from '../operation.ts';
import { asksFor, ROTATE } from '../operation-request.ts';

/**
 * Condition EncryptionKeyRotating; undefined: no rotation is running or requested. Pure. @param shoot the present
 * object
 */
export function encryptionCondition(op: Operation, shoot: Operation['shoot']): Said<'Shoot'> | undefined {
  const problem = asksFor(shoot, ROTATE) ? op.strategy.rotationProblem(op) : undefined;
  if (problem) {
    const way = `Take annotation ${ANNOTATIONS.operation} off the Shoot. For another key, create a cluster and move the workloads there`;
    return say(ENCRYPTION_KEY_ROTATING, false, 'NotPossible', `${problem}. ${way}`);
  }
  const step = stepOf(op);
  return step && say(ENCRYPTION_KEY_ROTATING, true, step.reason, step.message);
}

function stepOf({ pki }: Operation): { reason: Reason<'Shoot', 'EncryptionKeyRotating'>; message: string } | undefined {
  const encryption = encryptionSeen(pki);
  if (encryption?.next)
    return {
      reason: 'AddingKey',
      message: `step 1 of 3: API servers are given ${encryption.next.name} to read Secrets with`,
    };
  if (encryption?.rewrite)
    return {
      reason: 'WritingWithKey',
      message: `step 2 of 3: API servers are told to write Secrets with ${encryption.write.name}, then all Secrets are rewritten`,
    };
  if (encryption?.dropped)
    return {
      reason: 'DroppingKey',
      message: `step 3 of 3: API servers forget the earlier key; all Secrets are encrypted with ${encryption.write.name}`,
    };
  return undefined;
}

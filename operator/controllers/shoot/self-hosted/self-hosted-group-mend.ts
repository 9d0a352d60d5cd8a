import { errorText } from '../../../api/errors.ts';
import { keyOf } from '../../../kube/resources.ts';
import type { Operation } from '../operation.ts';
import { noteIn } from './self-hosted.ts';
import type { CloudMachines } from './self-hosted-group.ts';

const PARTS = ['endpoint', 'machines'] as const;

/**
 * Reverts drift of an initialised control plane if wanted. Must not run while machines are added or ended. A refusal of
 * the cloud is reported and blocks nothing.
 * @param isLast give up what cannot be reverted now
 */
export async function mendControlPlane(op: Operation, { pool, group }: CloudMachines, isLast: boolean): Promise<void> {
  if (!op.mend || !noteIn(op)) return;
  for (const part of PARTS) {
    if (op.unmended.has(part)) continue;
    try {
      const changes = await group.mend(op.context(), pool.name, part);
      if (changes) op.unmended.set(part, { changes });
      else if (isLast) op.unmended.set(part, { changes: [], because: 'its machines come or go' });
    } catch (error) {
      op.signal.throwIfAborted();
      if (isLast) op.unmended.set(part, { changes: [], because: errorText(error) });
      op.deps.log.warn(
        { err: error, shoot: keyOf(op.shoot) },
        'what others changed of the control plane is not mended yet',
      );
    }
  }
}

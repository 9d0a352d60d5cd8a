import { errorText } from '../../../api/errors.ts';
import { keyOf } from '../../../kube/resources.ts';
import type { Operation } from '../operation.ts';
import { noteIn } from './self-hosted.ts';
import type { CloudMachines } from './self-hosted-group.ts';

const PARTS = ['endpoint', 'machines'] as const;

/**
 * Changes back what others changed of a control plane that has begun, if that is wanted. Nobody may add or end machines meanwhile. What the
 * cloud refuses is told, and keeps the cluster from nothing.
 * @param isLast what cannot be mended now is left
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

import { errorText } from '../../../api/errors.ts';
import { keyOf } from '../../../kube/resources.ts';
import type { Operation } from '../operation.ts';
import { noteIn } from './self-hosted.ts';
import { controlPlaneGroupOf } from './self-hosted-group.ts';

const PARTS = ['endpoint', 'machines'] as const;

/**
 * Changes back what others changed of a control plane that has begun, if that is wanted: before its API server is asked for, which may be
 * cut off by it, and once more, for what could not be mended then, when its machines are as many as they should be. Nobody may add or end
 * any meanwhile. What the cloud refuses is told, and keeps the cluster from nothing.
 * @param isLast what cannot be mended now is left
 */
export async function mendControlPlane(op: Operation, isLast: boolean): Promise<void> {
  if (!op.mend || !noteIn(op)) return;
  const { pool, group } = controlPlaneGroupOf(op);
  for (const part of PARTS) {
    if (op.left.has(part)) continue;
    try {
      const changes = await group.mend(op.context(), pool.name, part);
      if (changes) op.left.set(part, { changes });
      else if (isLast) op.left.set(part, { changes: [], because: 'its machines come or go' });
    } catch (error) {
      op.signal.throwIfAborted();
      if (isLast) op.left.set(part, { changes: [], because: errorText(error) });
      op.world.log.warn(
        { err: error, shoot: keyOf(op.shoot) },
        'what others changed of the control plane is not mended yet',
      );
    }
  }
}

import type { ShootStatus } from '../../api/shoot.ts';
import { keyOf } from '../../kube/resources.ts';
import { writeStatus } from '../status-writer.ts';
import { deletionConditions, heldCondition } from './deletion/deletion-path.ts';
import type { Operation } from './operation.ts';

/**
 * Writes the present status, serialised: a late progress update could otherwise overwrite the final status, which would
 * stay for ever.
 *
 * @returns the status; undefined: another shoot has this name now
 */
export function tellStatus(op: Operation, signal?: AbortSignal): Promise<ShootStatus | undefined> {
  return op.state.statusWrites.run(() => tellNow(op, signal));
}

async function tellNow(op: Operation, signal?: AbortSignal): Promise<ShootStatus | undefined> {
  const { state, deps } = op;
  const shoot = deps.shoots.get(keyOf(op.shoot)) ?? op.shoot;
  if (shoot.metadata.uid !== op.shoot.metadata.uid) return undefined;
  const now = deps.now();
  const status = await op.strategy.status(op, shoot, now);
  if (shoot.metadata.deletionTimestamp && !(state.held !== undefined && deps.isDeletedByHand?.(shoot)))
    status.conditions = deletionConditions(shoot, state, now);
  else status.conditions = [...(status.conditions ?? []), ...heldCondition(shoot, state, now)];
  await writeStatus(deps.garden, deps.shoots, shoot, status, signal);
  return status;
}

import type { Condition } from '../../../api/meta.ts';
import type { Shoot } from '../../../api/shoot.ts';
import { type GateVerdict, HELD, judgeDeletion } from '../../../clusters/deletion-gate.ts';
import type { FlowResult } from '../../../flow/graph.ts';
import { say, withConditions } from '../../conditions.ts';
import { movedOperation } from '../../status-writer.ts';
import type { ShootDependencies } from '../dependencies.ts';
import { recordsCondition } from '../dns/dns-outcome.ts';
import { endDriftLook } from '../drift/drift.ts';
import type { Operation } from '../operation.ts';
import { runFlow } from '../run-flow.ts';
import type { ShootState } from '../state.ts';

/** Whether the shoot is being destroyed: deleted and without holds. */
export const isBeingDeleted = ({ metadata }: Shoot, { held }: ShootState): boolean =>
  metadata.deletionTimestamp !== undefined && held === undefined;

/** Whether the shoot may be destroyed. A shoot without a seed has nothing to hold. */
export function gateOf(deps: Pick<ShootDependencies, 'holds' | 'now'>, shoot: Shoot, state: ShootState): GateVerdict {
  const { metadata, status } = shoot;
  const begun = !status?.seedName || (state.operation ?? status.lastOperation)?.type === 'Delete';
  const holds = metadata.deletionTimestamp ? deps.holds(metadata.namespace ?? '', metadata.name) : [];
  return judgeDeletion(holds, begun, deps.now());
}

/** Destroys the shoot. @throws the signal's reason on abort */
export async function runDeletion(op: Operation, signal: AbortSignal): Promise<FlowResult> {
  const { shoot, state, deps } = op;
  endDriftLook(state);
  state.operation = movedOperation(
    shoot.status?.lastOperation,
    { type: 'Delete', state: 'Processing', progress: 0, description: 'starting' },
    deps.now(),
  );
  const tasks = op.strategy.deletionTasks(op);
  const result = await runFlow(op, { tasks, type: 'Delete', visible: true }, signal);
  if (signal.aborted) throw signal.reason;
  return result;
}

/** Condition Deleting of a shoot that was deleted by hand and keeps running; empty for others. Pure. */
export const heldCondition = (shoot: Shoot, { held }: ShootState, now: Date): Condition[] =>
  withConditions<'Shoot'>(
    shoot.status?.conditions,
    [held === undefined ? undefined : say('Deleting', true, HELD, held)],
    now,
  );

/** Conditions of a deleted shoot, without those of its operation. Pure. */
export function deletionConditions(shoot: Shoot, state: ShootState, now: Date): Condition[] {
  const waiting =
    state.errors.size > 0
      ? [...state.errors.values()].map((error) => error.description).join('; ')
      : (state.operation?.description ?? 'starting');
  return withConditions<'Shoot'>(
    shoot.status?.conditions,
    [
      say('Ready', false, 'Deleting', 'the cluster is being deleted'),
      state.held
        ? say('Deleting', true, HELD, state.held)
        : say('Deleting', true, state.errors.size > 0 ? 'Stuck' : 'InProgress', waiting),
      recordsCondition(state.dns?.outcomes.filter(({ problem }) => problem) ?? [], shoot),
    ],
    now,
  );
}

import type { LastError, LastOperation } from '../../api/meta.ts';
import type { Shoot, ShootStatus } from '../../api/shoot.ts';
import { say, withConditions } from '../conditions.ts';

/** Status of a shoot without a seed, of which nothing can be observed. */
export function bareStatus(
  shoot: Shoot,
  operation: LastOperation | undefined,
  errors: readonly LastError[],
  now: Date,
): ShootStatus {
  const failed = errors.length > 0;
  const description = failed ? errors.map((error) => error.description).join('; ') : (operation?.description ?? '');
  const codes = errors.flatMap((error) => error.codes ?? []);
  const deleting = shoot.metadata.deletionTimestamp !== undefined;
  const conditions = withConditions<'Shoot'>(
    shoot.status?.conditions,
    [
      say('Ready', false, deleting ? 'Deleting' : failed ? 'OperationFailed' : 'WaitingForSeed', description, codes),
      deleting ? say('Deleting', true, 'WaitingFor', description, codes) : undefined,
    ],
    now,
  );
  return {
    ...shoot.status,
    conditions,
    ...(operation && { lastOperation: operation }),
    lastErrors: [...errors],
    observedGeneration: shoot.metadata.generation,
  };
}

import type { Change } from '../../providers/cloud.ts';
import type { SaidOf } from '../api/reasons.ts';
import { say } from './conditions.ts';

export const DRIFTED = 'Drifted';

/** Most named changes. */
const SHOWN = 10;

/** Condition Drifted for found drift. @param toMend advice, a sentence. Pure. */
export function driftedCondition(
  changes: readonly Change[],
  toMend: string,
): SaidOf<'Drifted', 'AsApplied' | 'ChangedByOthers'> {
  if (changes.length === 0) return say(DRIFTED, false, 'AsApplied', 'nobody else has changed it in the cloud');
  const named = changes
    .slice(0, SHOWN)
    .map(({ operation, resource, properties }) =>
      properties?.length ? `${operation} ${resource} (${properties.join(', ')})` : `${operation} ${resource}`,
    );
  const more = changes.length > SHOWN ? ` and ${changes.length - SHOWN} more` : '';
  return say(
    DRIFTED,
    true,
    'ChangedByOthers',
    `others changed cloud resources; to restore them: ${named.join('; ')}${more}. ${toMend}`,
  );
}

import type { SaidOf } from '../api/reasons.ts';
import { say } from './conditions.ts';

/** Condition of a cluster with amounts too large to count; absent otherwise. */
export const RESOURCES_COUNTED = 'ResourcesCounted';
/** Most named pods: a cluster may have thousands. */
const MOST_NAMED = 3;
const LONGEST_NAME = 120;

/** Condition ResourcesCounted; undefined: all amounts were counted. Pure. @param uncounted see CountedResources */
export function resourcesCondition(
  uncounted: readonly string[],
): SaidOf<'ResourcesCounted', 'AmountTooLarge'> | undefined {
  if (uncounted.length === 0) return undefined;
  const named = uncounted.slice(0, MOST_NAMED).map((name) => name.slice(0, LONGEST_NAME));
  const more = uncounted.length > MOST_NAMED ? ` and ${uncounted.length - MOST_NAMED} more` : '';
  return say(
    RESOURCES_COUNTED,
    false,
    'AmountTooLarge',
    `${named.join(', ')}${more}: requests or allocatable are too large to count. In status.resource such a pod fills its node. Correct the amount`,
  );
}

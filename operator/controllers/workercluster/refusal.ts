import type { ErrorCode } from '../../api/errors.ts';
import type { Reason } from '../../api/reasons.ts';
import { type Said, say } from '../conditions.ts';
import { OVER_QUOTA } from '../quota/claimants.ts';
import type { ModeRequest } from './view.ts';

/** Why a spec is not acted on. */
interface Refusal {
  reason: Exclude<Reason<'WorkerCluster', 'SpecAccepted'>, 'Accepted'>;
  why: string;
  codes: ErrorCode[];
}

/** undefined: no problem. */
export function clusterRefusalOf({ problems, overQuota }: ModeRequest): Refusal | undefined {
  if (problems.length === 0) return undefined;
  const said = problems.map(
    ({ field, message }) => `${field.startsWith('metadata.') ? '' : 'spec.'}${field}: ${message}`,
  );
  return {
    reason: overQuota ? OVER_QUOTA : 'ConfigurationProblem',
    why: said.join('; '),
    codes: [...new Set(problems.map(({ code }) => code))],
  };
}

/** Condition SpecAccepted. @param unacted fields that are stored without effect */
export function specAccepted(
  refusal: Refusal | undefined,
  exists: boolean,
  unacted: readonly string[],
): Said<'WorkerCluster'> {
  if (refusal) {
    const { reason, why, codes } = refusal;
    return say('SpecAccepted', false, reason, exists ? `${why}. The cluster stays as it was` : why, codes);
  }
  const message =
    unacted.length > 0
      ? `the spec was accepted; these fields are stored without effect yet: ${unacted.join(', ')}`
      : 'the spec is valid and was accepted';
  return say('SpecAccepted', true, 'Accepted', message);
}

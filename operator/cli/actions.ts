import type { Condition, KubeObject } from '../api/meta.ts';
import { explanationOf } from '../api/reasons.ts';
import { conditionOf } from './clusterview.ts';

/** Condition types for which False is good. */
const NEGATIVE =
  /^(Simulated|NoControlPlane|Deleting|Denied|Expiring|ShootDeleted|Paused|Degraded|.*(Problem|Pressure|Error|Failed|Ignored|NotActedOn|Unacted|Drift).*)$/;

/** Whether a condition needs nobody's attention. Pure. */
export const isWell = ({ type, status }: Pick<Condition, 'type' | 'status'>): boolean =>
  NEGATIVE.test(type) ? status === 'False' : status === 'True';

/** Action for a condition that is not good. Undefined: the condition is good, or its reason comes from another version of the operator. Pure. */
export function actionOf({ kind, metadata }: KubeObject, condition: Condition | undefined): string | undefined {
  if (!condition || isWell(condition)) return undefined;
  const { name, namespace } = metadata;
  const action = explanationOf(kind, condition)
    ?.action.replace(/\bNAME\b/g, name)
    .replace(/\bNAMESPACE\b/g, namespace ?? 'NAMESPACE');
  // Many messages end with their action.
  return action && condition.message?.includes(action.replace(/\.$/, '')) ? undefined : action;
}

/** The most urgent action for an object: about its spec if that is refused, else about its Ready condition. Pure. */
export const firstAction = (object: KubeObject): string | undefined =>
  actionOf(object, conditionOf(object, 'SpecAccepted')) ?? actionOf(object, conditionOf(object, 'Ready'));

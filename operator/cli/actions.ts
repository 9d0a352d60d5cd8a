import type { Condition, KubeObject } from '../api/meta.ts';
import { explanationOf } from '../api/reasons.ts';
import { conditionOf } from './clusterview.ts';

/** Types of conditions that are well when they are False. */
const NEGATIVE =
  /^(Simulated|NoControlPlane|Deleting|Denied|Expiring|ShootDeleted|Paused|Degraded|.*(Problem|Pressure|Error|Failed|Ignored|NotActedOn|Unacted|Drift).*)$/;

/** Whether a condition tells of nothing that a person should look at. Pure. */
export const isWell = ({ type, status }: Pick<Condition, 'type' | 'status'>): boolean =>
  NEGATIVE.test(type) ? status === 'False' : status === 'True';

/** What to do about a condition of an object that is not well; undefined: it is well, or an operator of another version wrote it. Pure. */
export function actionOf({ kind, metadata }: KubeObject, condition: Condition | undefined): string | undefined {
  if (!condition || isWell(condition)) return undefined;
  const { name, namespace } = metadata;
  const action = explanationOf(kind, condition)
    ?.action.replace(/\bNAME\b/g, name)
    .replace(/\bNAMESPACE\b/g, namespace ?? 'NAMESPACE');
  // Many messages end with it.
  return action && condition.message?.includes(action.replace(/\.$/, '')) ? undefined : action;
}

/** What to do first about an object: about its spec where that is refused, else about what Ready says. Pure. */
export const firstAction = (object: KubeObject): string | undefined =>
  actionOf(object, conditionOf(object, 'SpecAccepted')) ?? actionOf(object, conditionOf(object, 'Ready'));

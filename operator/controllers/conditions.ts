import { findCondition, setCondition } from '../api/conditions.ts';
import type { Condition } from '../api/meta.ts';
import type { ConditionKind, ConditionType, Reason, Said, SaidAs, SaidOf } from '../api/reasons.ts';

export type { Said, SaidAs } from '../api/reasons.ts';

/** Sets several conditions of an object of kind `K` in order; `undefined` entries are left out. */
export function withConditions<K extends ConditionKind = never>(
  before: readonly Condition[] | undefined,
  next: readonly (Said<NoInfer<K>> | undefined)[],
  now: Date,
): Condition[] {
  let list: Condition[] = [];
  for (const condition of next) {
    if (!condition) continue;
    const old = before?.find((other) => other.type === condition.type);
    list = [...list, ...setCondition(old ? [old] : [], condition, now)];
  }
  return list;
}

/** A condition in one call. */
export const say = <const T extends ConditionType, const R extends Reason<ConditionKind, T>>(
  type: T,
  status: boolean | 'Unknown',
  reason: R,
  message: string,
  codes?: string[],
): SaidOf<T, R> => ({
  type,
  status: status === 'Unknown' ? 'Unknown' : status ? 'True' : 'False',
  reason,
  message,
  ...(codes?.length && { codes }),
});

/** What the conditions of an object of that kind said last, without since when. Pure. */
export const conditionsBefore = <K extends ConditionKind>(
  _kind: K,
  conditions: readonly Condition[] | undefined,
): Said<K>[] =>
  (conditions ?? []).map((condition) => {
    const { lastTransitionTime: _, observedGeneration: __, ...said } = condition;
    // Only operators write these conditions, of this version or of an earlier one.
    return said as Said<K>;
  });

/** What one condition of an object of that kind said last; undefined: it was never set. Pure. */
export function conditionBefore<K extends ConditionKind, const T extends ConditionType<K>>(
  kind: K,
  conditions: readonly Condition[] | undefined,
  type: T,
): SaidAs<K, T> | undefined {
  const condition = findCondition(conditions, type);
  const [said] = condition ? conditionsBefore(kind, [condition]) : [];
  return said as SaidAs<K, T> | undefined;
}

/** Condition EveryNodeReady of a cluster whose nodes all are. @param meanwhile what goes on beside, in a clause that begins with a comma or a semicolon */
export const allNodesReady = (nodes: number, meanwhile = '') =>
  say(
    'EveryNodeReady',
    true,
    'AllReady',
    `${nodes === 1 ? 'the node is' : `all ${nodes} nodes are`} Ready${meanwhile}`,
  );

import { findCondition, setCondition } from '../api/conditions.ts';
import type { Condition } from '../api/meta.ts';
import type { ConditionKind, ConditionType, Reason, Said, SaidAs, SaidOf } from '../api/reasons.ts';

export type { Said, SaidAs } from '../api/reasons.ts';

/** Sets several conditions of an object of kind `K` in order; skips `undefined`. */
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

/** Builds a condition. */
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

/** Last conditions of an object of that kind, without transition times. Pure. */
export const conditionsBefore = <K extends ConditionKind>(
  _kind: K,
  conditions: readonly Condition[] | undefined,
): Said<K>[] =>
  (conditions ?? []).map((condition) => {
    const { lastTransitionTime: _, observedGeneration: __, ...said } = condition;
    // Only operators of this or an earlier version write these conditions.
    return said as Said<K>;
  });

/** Last condition of a type; undefined: never set. Pure. */
export function conditionBefore<K extends ConditionKind, const T extends ConditionType<K>>(
  kind: K,
  conditions: readonly Condition[] | undefined,
  type: T,
): SaidAs<K, T> | undefined {
  const condition = findCondition(conditions, type);
  const [said] = condition ? conditionsBefore(kind, [condition]) : [];
  return said as SaidAs<K, T> | undefined;
}

/** EveryNodeReady with all nodes Ready. @param meanwhile further clause, beginning with a comma or a semicolon */
export const allNodesReady = (nodes: number, meanwhile = '') =>
  say(
    'EveryNodeReady',
    true,
    'AllReady',
    `${nodes === 1 ? 'the node is' : `all ${nodes} nodes are`} Ready${meanwhile}`,
  );

import { setCondition } from '../api/conditions.ts';
import type { Condition } from '../api/meta.ts';

/** Sets several conditions in order; `undefined` entries are left out. */
export function withConditions(
  before: readonly Condition[] | undefined,
  next: readonly (Said | undefined)[],
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

/** A condition as it is said; when it began is for whoever writes it. */
export type Said = Omit<Condition, 'lastTransitionTime'>;

/** A condition in one call. */
export const say = (
  type: string,
  status: boolean | 'Unknown',
  reason: string,
  message: string,
  codes?: string[],
): Said => ({
  type,
  status: status === 'Unknown' ? 'Unknown' : status ? 'True' : 'False',
  reason,
  message,
  ...(codes?.length && { codes }),
});

/** Condition EveryNodeReady of a cluster whose nodes all are. @param meanwhile what goes on beside, in a clause that begins with a comma or a semicolon */
export const allNodesReady = (nodes: number, meanwhile = ''): Said =>
  say(
    'EveryNodeReady',
    true,
    'AllReady',
    `${nodes === 1 ? 'the node is' : `all ${nodes} nodes are`} Ready${meanwhile}`,
  );

import { findCondition } from './conditions.ts';
import type { Condition } from './meta.ts';

/** Which fields of a spec are acted on: `true` for a whole subtree, an object for its fields (of each item, in a list). */
export interface ActedFields {
  [field: string]: true | ActedFields;
}

/** What a cluster is made of, as far as it decides which fields mean something. */
export interface MadeOf {
  /** Its machines are in an account of a cloud. */
  readonly inCloud?: boolean | undefined;
  /** It exists as objects only, without a control plane: nothing of it runs (see ClustersWithoutControlPlane of the providers). */
  readonly lacksControlPlane?: boolean | undefined;
}

/** Paths of everything in `value` that `acted` does not name, in the order written; lists by index. */
export function unacted(value: unknown, acted: ActedFields, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => unacted(item, acted, `${path}[${index}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    if (inner === undefined) return [];
    const here = path === '' ? field : `${path}.${field}`;
    const rule = acted[field];
    if (rule === true) return [];
    return rule === undefined ? [here] : unacted(inner, rule, here);
  });
}

/** Those of a cluster that exists as objects only: it has no address that a name could lead to, and runs no addon. */
export const actedWithoutControlPlane = (acted: ActedFields): ActedFields => ({ ...acted, dns: {}, addons: {} });

/** Whether a condition tells that the operator which wrote it kept the field of this path and did not act on it. */
export function saysKept(conditions: readonly Condition[] | undefined, type: string, path: string): boolean {
  const { message = '' } = findCondition(conditions, type) ?? {};
  const kept = /these fields are stored without effect yet: (.*)$/.exec(message)?.[1]?.split(', ') ?? [];
  return kept.some((one) => path === one || path.startsWith(`${one}.`));
}

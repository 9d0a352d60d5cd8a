import { findCondition } from './conditions.ts';
import type { Condition } from './meta.ts';

/**
 * Fields of a spec that the operator acts on: `true` for a whole subtree, an object for its fields (of each item, in a
 * list).
 */
export interface ActedFields {
  [field: string]: true | ActedFields;
}

/** Facts about a cluster that decide which of its fields have an effect. */
export interface MadeOf {
  /** The machines are in a cloud account. */
  readonly inCloud?: boolean | undefined;
  /** The cluster exists as objects only, without a control plane (see ClustersWithoutControlPlane of the providers). */
  readonly lacksControlPlane?: boolean | undefined;
}

/** Paths of all values that `acted` does not name, in the order written; list items by index. */
export function findUnacted(value: unknown, acted: ActedFields, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, index) => findUnacted(item, acted, `${path}[${index}]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, inner]) => {
    if (inner === undefined) return [];
    const here = path === '' ? field : `${path}.${field}`;
    const rule = acted[field];
    if (rule === true) return [];
    return rule === undefined ? [here] : findUnacted(inner, rule, here);
  });
}

/** Acted fields of a cluster that exists as objects only: it has no API server for a DNS name, and runs no addon. */
export const actedWithoutControlPlane = (acted: ActedFields): ActedFields => ({ ...acted, dns: {}, addons: {} });

/** Whether a condition says that its operator kept the field of this path without acting on it. */
export function saysKept(conditions: readonly Condition[] | undefined, type: string, path: string): boolean {
  const { message = '' } = findCondition(conditions, type) ?? {};
  const kept = /these fields are stored without effect yet: (.*)$/.exec(message)?.[1]?.split(', ') ?? [];
  return kept.some((one) => path === one || path.startsWith(`${one}.`));
}

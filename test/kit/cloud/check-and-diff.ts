import { isDeepStrictEqual } from 'node:util';
import type { CloudModel, Properties, ResourceType } from './model.ts';
import { UNKNOWN } from './property-values.ts';

/** What Check makes of a program's inputs: a physical name where there is none. Marks stay. */
export function named(
  model: CloudModel,
  type: ResourceType,
  logicalName: string,
  inputs: Properties,
  before: Properties,
  digits: string,
): Properties {
  const property = type.nameInput;
  if (property === undefined || inputs[property] !== undefined) return inputs;
  const prefix = inputs[`${property}Prefix`];
  const name =
    before[property] ??
    (typeof prefix === 'string' ? `${prefix}${digits.slice(0, 26)}` : model.autoname(logicalName, digits));
  return { ...inputs, [property]: name };
}

/** A property that differs: its path as Pulumi writes one, and how. */
export interface PropertyChange {
  path: string;
  kind: 'add' | 'delete' | 'update';
  replaces: boolean;
}

export interface Difference {
  changes: PropertyChange[];
  /** Whether the old one must go first: they could not exist at once. */
  deleteBeforeReplace: boolean;
}

/** What differs between the inputs in state and the program's. */
export function difference(type: ResourceType, before: Properties, after: Properties): Difference {
  const changes = compare('', before, after).map(({ path, kind }) => ({
    path,
    kind,
    replaces: type.immutable.some(
      (fixed) => fixed === '*' || path === fixed || (/^[.[]/.test(path.slice(fixed.length)) && path.startsWith(fixed)),
    ),
  }));
  const same = type.uniqueBy?.(before, '') !== undefined && type.uniqueBy(before, '') === type.uniqueBy(after, '');
  return { changes, deleteBeforeReplace: same && changes.some(({ replaces }) => replaces) };
}

function compare(path: string, before: unknown, after: unknown): Omit<PropertyChange, 'replaces'>[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (after === UNKNOWN) return [{ path, kind: 'update' }];
  if (before === undefined) return [{ path, kind: 'add' }];
  if (after === undefined) return [{ path, kind: 'delete' }];
  if (isPlain(before) && isPlain(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => compare(member(path, name), before[name], after[name]));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const longest = Math.max(before.length, after.length);
    return Array.from({ length: longest }, (_, index) => index).flatMap((index) =>
      compare(`${path}[${index}]`, before[index], after[index]),
    );
  }
  return [{ path, kind: 'update' }];
}

const isPlain = (value: unknown): value is Properties =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const member = (path: string, name: string): string => {
  if (!/^[A-Za-z_$][\w$]*$/.test(name)) return `${path}[${JSON.stringify(name)}]`;
  return path === '' ? name : `${path}.${name}`;
};

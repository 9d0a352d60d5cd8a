import type { Schema } from '../../api/crd.ts';
import type { KubeObject } from '../../api/meta.ts';

/** Fields that objects had in an earlier Coppice and that nobody acts on any more, as `settableFields` writes them: losing one is no loss. */
const RETIRED: readonly string[] = [];

/** What an API server or a controller writes. */
const NOT_WISHED = ['apiVersion', 'kind', 'metadata', 'status'];

interface Definition {
  names: { kind: string };
  versions: { schema: { openAPIV3Schema: Schema } }[];
}

/** What people can set in objects of these definitions, sorted, e.g. `WorkerCluster.spec.pools[].name`. */
export function settableFields(definitions: readonly KubeObject[]): string[] {
  const found = new Set<string>();
  const walk = (schema: Schema, path: string): void => {
    found.add(path);
    for (const [name, field] of Object.entries(schema.properties ?? {})) walk(field, `${path}.${name}`);
    if (schema.items) walk(schema.items, `${path}[]`);
    if (typeof schema.additionalProperties === 'object') walk(schema.additionalProperties, `${path}{}`);
  };
  for (const definition of definitions) {
    const { names, versions } = definition.spec as Definition;
    for (const { schema } of versions) {
      for (const [name, field] of Object.entries(schema.openAPIV3Schema.properties ?? {}))
        if (!NOT_WISHED.includes(name)) walk(field, `${names.kind}.${name}`);
    }
  }
  return [...found].sort();
}

/**
 * Of the fields that a garden's objects may have, those that this Coppice does not know: an API server with its definitions would drop
 * them from each object that is written.
 */
const fieldsLost = (before: readonly string[], known: readonly string[]): string[] =>
  before.filter((field) => !known.includes(field) && !RETIRED.includes(field));

/** Throws when some would be lost. `folder` is the garden's. */
export function refuseLoss(before: readonly string[], known: readonly string[], folder: string): void {
  const [first, ...others] = fieldsLost(before, known);
  if (first === undefined) return;
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  throw new Error(`${openedByNewer(folder)}, whose clusters may have ${first}${more}: ${WAY_ON}`);
}

export const openedByNewer = (folder: string): string => `the garden in ${folder} was last opened by a newer Coppice`;
export const WAY_ON = 'open it with that version, or set COPPICE_HOME to another folder for a new garden';

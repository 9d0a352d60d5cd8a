import type { Schema } from '../../api/crd.ts';
import type { KubeObject } from '../../api/meta.ts';

/**
 * Fields of an earlier Coppice that have no effect any more, in the form of `settableFields`: dropping them is
 * harmless.
 */
const RETIRED: readonly string[] = [];

/** Fields written by API server or controllers. */
const NOT_WISHED = ['apiVersion', 'kind', 'metadata', 'status'];

interface Definition {
  names: { kind: string };
  versions: { schema: { openAPIV3Schema: Schema } }[];
}

/** Fields that people can set in objects of these CRDs, sorted, e.g. `WorkerCluster.spec.pools[].name`. */
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
 * A garden's possible fields that this Coppice does not know: an API server with its CRDs would drop them at each
 * write.
 */
const fieldsLost = (before: readonly string[], known: readonly string[]): string[] =>
  before.filter((field) => !known.includes(field) && !RETIRED.includes(field));

/** Throws when fields would be lost. `folder`: the garden's. */
export function refuseLoss(before: readonly string[], known: readonly string[], folder: string): void {
  const [first, ...others] = fieldsLost(before, known);
  if (first === undefined) return;
  const more = others.length > 0 ? ` and ${others.length} more` : '';
  throw new Error(`${openedByNewer(folder)}, whose clusters may have ${first}${more}: ${WAY_ON}`);
}

export const openedByNewer = (folder: string): string => `the garden in ${folder} was last opened by a newer Coppice`;
export const WAY_ON = 'open it with that version, or set COPPICE_HOME to another folder for a new garden';

import type { Schema } from '../api/crd.ts';
import { nearest } from './suggest.ts';

/** A path that an API server found undeclared: the fields down to the parent, and the last. */
const UNDECLARED = /(?:^|[\s,[])\.(\S+?)\.?(\w+): field not declared in schema/g;

/**
 * Fields that were meant where an API server says that some are not declared: `did you mean "controlPlaneNodes"?`, or undefined where
 * nothing is near. Loads the schemas of our kinds.
 */
export async function suggestFields(kind: string, message: string): Promise<string | undefined> {
  const { crds } = await import('../api/crd.ts');
  const crd = crds().find(({ spec }) => (spec as { names: { kind: string } }).names.kind === kind);
  const schema = (crd?.spec as CrdSpec | undefined)?.versions[0]?.schema.openAPIV3Schema;
  if (!schema) return undefined;
  const meant = [...message.matchAll(UNDECLARED)].flatMap(([, parents = '', field = '']) => {
    const known = Object.keys(schemaAt(schema, parents)?.properties ?? {});
    return nearest(field, known) ?? [];
  });
  return meant.length > 0 ? `did you mean ${meant.map((field) => `"${field}"`).join(' and ')}?` : undefined;
}

interface CrdSpec {
  versions: { schema: { openAPIV3Schema: Schema } }[];
}

/** The schema below `spec.pools[name="a"]`; undefined where there is none. */
function schemaAt(schema: Schema, path: string): Schema | undefined {
  const fields = path
    .replace(/\[.*?\]/g, '')
    .split('.')
    .filter((field) => field !== '');
  return fields.reduce<Schema | undefined>((at, field) => {
    const next = at?.properties?.[field];
    return next?.items ?? next;
  }, schema);
}

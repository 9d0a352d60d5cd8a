import type { Schema } from '../api/crd.ts';
import { undeclaredPaths } from '../kube/requests/undeclared-fields.ts';
import { nearestWord } from './suggest.ts';

/** Most fields listed when no field is similar. */
const MOST_LISTED = 12;

/**
 * Suggestion for fields that the API server calls undeclared: `did you mean "controlPlaneNodes"?`. If no field is similar, lists the
 * declared fields, unless they are many. Undefined: no suggestion. Loads the schemas of our kinds.
 */
export async function suggestFields(kind: string, message: string): Promise<string | undefined> {
  const { crds } = await import('../api/crd.ts');
  const crd = crds().find(({ spec }) => (spec as { names: { kind: string } }).names.kind === kind);
  const schema = (crd?.spec as CrdSpec | undefined)?.versions[0]?.schema.openAPIV3Schema;
  if (!schema) return undefined;
  const undeclared = undeclaredPaths(message).map((path) => {
    const last = path.lastIndexOf('.');
    const [parents, field] = [path.slice(0, Math.max(0, last)), path.slice(last + 1)];
    const known = Object.keys(schemaAt(schema, parents)?.properties ?? {});
    return { parents, known, meant: nearestWord(field, known) };
  });
  const meant = undeclared.flatMap((field) => field.meant ?? []);
  if (meant.length > 0) return `did you mean ${meant.map((field) => `"${field}"`).join(' and ')}?`;
  const [first] = undeclared;
  const isFew = first && first.known.length > 0 && first.known.length <= MOST_LISTED;
  return isFew ? `${first.parents} has: ${first.known.join(', ')}` : undefined;
}

interface CrdSpec {
  versions: { schema: { openAPIV3Schema: Schema } }[];
}

/** Schema at a path such as `spec.pools[name="a"]`; undefined if the path does not exist. */
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

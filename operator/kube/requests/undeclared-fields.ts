/**
 * A path in a refusal of structured-merge-diff, for example `.status.pools[name="a"].size: field not declared in
 * schema`.
 */
const UNDECLARED = /(?:^|[\s,[])\.(\S+): field not declared in schema/g;

/** Paths of undeclared fields in an API server's refusal, with indices; empty for another text. */
export const undeclaredPaths = (refusal: string): string[] =>
  [...refusal.matchAll(UNDECLARED)].map(([, path = '']) => path);

/** Paths of undeclared fields in an error, each once and without indices. */
export function undeclaredFields(error: unknown): string[] {
  const paths = error instanceof Error ? undeclaredPaths(error.message) : [];
  return [...new Set(paths.map((path) => path.replace(/\[[^\]]*\]/g, '')))];
}

/** A copy of the object without the fields at these paths; a path descends into each item of a list. */
export function withoutFields<T extends object>(object: T, paths: readonly string[]): T {
  const copy = structuredClone(object);
  for (const path of paths) removeField(copy, path.split('.'));
  return copy;
}

function removeField(value: unknown, [field = '', ...rest]: readonly string[]): void {
  if (Array.isArray(value)) {
    for (const item of value) removeField(item, [field, ...rest]);
  } else if (typeof value === 'object' && value !== null) {
    const fields = value as Record<string, unknown>;
    if (rest.length === 0) delete fields[field];
    else removeField(fields[field], rest);
  }
}

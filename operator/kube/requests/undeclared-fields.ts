/** A path in structured-merge-diff's refusal, for example `.status.pools[name="a"].size: field not declared in schema`. */
const UNDECLARED = /(?:^|[\s,[])\.(\S+): field not declared in schema/g;

/** Paths of the fields that an API server refused because its schema does not declare them, without indices; none for another error. */
export function undeclaredFields(error: unknown): string[] {
  const text = error instanceof Error ? error.message : '';
  const paths = [...text.matchAll(UNDECLARED)].map(([, path = '']) => path.replace(/\[[^\]]*\]/g, ''));
  return [...new Set(paths)];
}

/** A copy of the object without the fields at these paths; a path leads through each item of a list. */
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

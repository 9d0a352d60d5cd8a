import type { Terminal } from './terminal.ts';

/** Prints a value as JSON or YAML, without managedFields. */
export async function printObject(terminal: Terminal, format: 'json' | 'yaml', value: object): Promise<void> {
  const shown = withoutManagedFields(value);
  if (format === 'json') {
    terminal.print(JSON.stringify(shown, undefined, 2));
    return;
  }
  const { dump } = await import('js-yaml');
  terminal.print(dump(shown, { lineWidth: -1, noRefs: true, seqNoIndent: true }).trimEnd());
}

function withoutManagedFields(value: object): object {
  const object = value as { metadata?: { managedFields?: unknown }; items?: object[] };
  if (Array.isArray(object.items)) return { ...object, items: object.items.map(withoutManagedFields) };
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

import { type LoadOptions, load, loadAll } from 'js-yaml';

/** What aliases may add to a text by unfolding, in characters: an API server takes 3 MB of an object. */
const UNFOLDED_MORE = 3_000_000;

type Limits = Pick<LoadOptions, 'maxAliases'>;

/**
 * The documents of a YAML or JSON text that somebody else may have written. 600 bytes of aliases unfold to gigabytes as soon as somebody
 * makes text of a value: that is refused. Throws an Error of one line: the others show the text around the place, and keys with it.
 */
export const yamlDocuments = (text: string, limits?: Limits): unknown[] => bounded(text, () => loadAll(text, limits));

/** As yamlDocuments, of a text with one document. */
export const yamlDocument = (text: string, limits?: Limits): unknown => bounded(text, () => load(text, limits));

function bounded<Value>(text: string, parse: () => Value): Value {
  let value: Value;
  try {
    value = parse();
  } catch (error) {
    throw new Error((error instanceof Error ? error.message : String(error)).split('\n')[0]);
  }
  if (unfolded(value, new Map()) > text.length + UNFOLDED_MORE)
    throw new Error('its aliases unfold to more than an API server takes: write out what they stand for');
  return value;
}

/**
 * Characters of the value at least, each alias written out; without aliases not more than its text had.
 * @param known sizes, infinite while they are found: an alias to what it is in
 */
function unfolded(value: unknown, known: Map<object, number>): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  const before = known.get(value);
  if (before !== undefined) return before;
  known.set(value, Number.POSITIVE_INFINITY);
  let size = 1;
  for (const [key, part] of Object.entries(value))
    size += (Array.isArray(value) ? 1 : key.length + 1) + unfolded(part, known);
  known.set(value, size);
  return size;
}

import { type LoadOptions, load, loadAll } from 'js-yaml';

/** Characters that aliases may add when written out. An API server takes objects of 3 MB. */
const UNFOLDED_MORE = 3_000_000;

type Limits = Pick<LoadOptions, 'maxAliases'>;

/**
 * Documents of an untrusted YAML or JSON text. Refuses aliases that grow too much when written out: 600 bytes can
 * become gigabytes. Throws an Error of one line, because js-yaml's errors quote the text, including keys.
 */
export const yamlDocuments = (text: string, limits?: Limits): unknown[] => bounded(text, () => loadAll(text, limits));

/** Like yamlDocuments, for a text with one document. */
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
 * Lower bound of the value's characters with each alias written out; without aliases at most the length of its text.
 * @param known sizes so far, infinite while being computed: an alias to its own parent
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

/** Values that many objects have alike are kept once. They go when nobody holds them any more. */
const known = new Map<string, WeakRef<object>>();
const gone = new FinalizationRegistry((key: string) => {
  if (!known.get(key)?.deref()) known.delete(key);
});

/** An equal value that was given before, frozen; else this one. Fields must come in the same order to count as equal. */
export function shared<T extends object>(value: T): T {
  const key = JSON.stringify(value);
  const before = known.get(key)?.deref();
  if (before) return before as T;
  // Of the text, not the value itself: what was parsed with it would be held as well.
  const kept = Object.freeze(JSON.parse(key) as T);
  known.set(key, new WeakRef(kept));
  gone.register(kept, key);
  return kept;
}

/** Names of namespaces and nodes, of which a cluster has few and its pods many copies. */
const texts = new Map<string, string>();
const MOST_TEXTS = 50_000;

/** An equal text that was given before, else this one. */
export function sharedText(text: string): string {
  const before = texts.get(text);
  if (before !== undefined) return before;
  // A tenant may make names without end.
  if (texts.size >= MOST_TEXTS) texts.clear();
  texts.set(text, text);
  return text;
}

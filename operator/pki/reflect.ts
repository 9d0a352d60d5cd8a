// @peculiar/x509 registers its algorithms through tsyringe, which does not load without a metadata reflection
// polyfill. None of its registrations has injected constructor parameters, so only these three functions are called.
// Must be imported before '@peculiar/x509'.

interface MetadataReflection {
  getMetadata?(key: unknown, target: object): unknown;
  getOwnMetadata?(key: unknown, target: object): unknown;
  defineMetadata?(key: unknown, value: unknown, target: object): void;
}

const reflection = Reflect as MetadataReflection;

if (!reflection.getMetadata) {
  const store = new WeakMap<object, Map<unknown, unknown>>();
  reflection.getOwnMetadata = (key, target) => store.get(target)?.get(key);
  reflection.getMetadata = (key, target) => {
    for (let at: object | null = target; at; at = Object.getPrototypeOf(at)) {
      const entries = store.get(at);
      if (entries?.has(key)) return entries.get(key);
    }
    return undefined;
  };
  reflection.defineMetadata = (key, value, target) => {
    const entries = store.get(target) ?? new Map();
    entries.set(key, value);
    store.set(target, entries);
  };
}

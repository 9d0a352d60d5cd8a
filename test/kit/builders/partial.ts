/**
 * T with every field optional, at each depth. A function may return a part of its result, and may declare narrower parameters
 * than its callers are typed for (a method is bivariant in TypeScript).
 */
export type DeepPartial<T> = T extends (...args: infer A) => infer R
  ? { method(...args: A): DeepPartialResult<R> }['method']
  : T extends readonly (infer E)[]
    ? readonly DeepPartial<E>[]
    : T extends object
      ? { [K in keyof T]?: DeepPartial<T[K]> | undefined }
      : T;
// biome-ignore lint/suspicious/noConfusingVoidType: a stand-in without a result returns void
type Nothing = undefined | void;
type DeepPartialResult<R> = [R] extends [Nothing]
  ? unknown
  : R extends Promise<infer V>
    ? Promise<[V] extends [Nothing] ? unknown : DeepPartial<V> | Nothing>
    : DeepPartial<R> | Nothing;

/**
 * A part of T for code that reads no more of T. The compiler checks names and types of the given fields, so a renamed field
 * breaks the test; `as unknown as T` would hide it.
 */
export const partOf = <T>(part: DeepPartial<T>): T => part as T;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Merges records at each depth. Lists of `overrides` replace those of `base`; a field that is undefined is removed. */
export function withOverrides<T extends object>(base: object, overrides: object): T {
  const merged: Record<string, unknown> = { ...base };
  for (const [field, value] of Object.entries(overrides)) {
    const known = merged[field];
    if (value === undefined) delete merged[field];
    else merged[field] = isRecord(known) && isRecord(value) ? withOverrides(known, value) : value;
  }
  return merged as T;
}

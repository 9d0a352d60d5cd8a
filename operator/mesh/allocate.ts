import {
  type AddressRange,
  addressRange,
  addressRangeIn,
  addressRangesOverlap,
  nthAddress,
} from '../api/address-range.ts';
import { memberName } from '../hubs/member-name.ts';

/** Kinds of address ranges. */
export const RANGE_KINDS = ['pods', 'services'] as const;
type RangeKind = (typeof RANGE_KINDS)[number];

/** A cluster's id, name and ranges in a mesh, for its whole life. */
export interface MeshEntry {
  /** UID of the WorkerCluster: a new one of the same name gets another entry. */
  readonly uid: string;
  /** Unique in the mesh, from 1. */
  readonly id: number;
  /** Unique in the mesh, and short enough for cluster-mesh software. */
  readonly name: string;
  /** Absent: unknown (an attached cluster). */
  readonly pods?: string;
  readonly services?: string;
  /** The kinds taken from the mesh's pools; the others are as they would be without the mesh. */
  readonly given: readonly RangeKind[];
}

/** An id and ranges of a deleted cluster. */
type Freed = Pick<MeshEntry, 'id' | RangeKind>;

/** All allocations of one mesh. */
export interface MeshReceipt {
  /** By `namespace/name` of the WorkerCluster. */
  readonly clusters: Readonly<Record<string, MeshEntry>>;
  /** In order of release, the oldest first. */
  readonly freed: readonly Freed[];
}

export const NO_CLUSTERS: MeshReceipt = { clusters: {}, freed: [] };

/** A new cluster's request to its mesh. */
export interface MeshRequest {
  readonly mesh: string;
  /** Name of the CloudProfile, for the error. */
  readonly profile: string;
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Ranges fixed outside the mesh; the missing ones are allocated. */
  readonly has: Partial<Record<RangeKind, string>>;
  /** Kinds that a person wrote: in one mesh these must not overlap. */
  readonly written: readonly RangeKind[];
  /** Kinds that the mesh allocates; others are left alone. */
  readonly wants: readonly RangeKind[];
  readonly pools: Readonly<Record<RangeKind, readonly string[]>>;
  /** Ranges that are never allocated. */
  readonly reserved: readonly string[];
  /** Prefix lengths of allocated ranges. */
  readonly prefixes: Readonly<Record<RangeKind, number>>;
  readonly highestID: number;
}

/** Ranges in use outside the mesh. */
export interface TakenRanges {
  readonly ranges: readonly string[];
  readonly ids: readonly number[];
}

/** Why the mesh cannot serve the cluster: the field of its spec, and a sentence with advice. */
export interface MeshRefusal {
  readonly field: string;
  readonly message: string;
}

export type Allocated =
  | { readonly receipt: MeshReceipt; readonly entry: MeshEntry; readonly refused?: undefined }
  | { readonly refused: MeshRefusal };

/** Released entries remembered: older ones count as unused. */
const MOST_FREED = 256;
/** Cilium's limit of cluster.name; Submariner and Istio permit longer names. */
const LONGEST_NAME = 32;

export const keyOfCluster = ({ namespace, name }: MeshRequest['cluster']): string => `${namespace}/${name}`;

/**
 * Allocates a cluster's id and ranges: the lowest free ones; released ones only when no others are left, the oldest
 * released first, since peers may still have routes to them. Idempotent for a cluster with an entry. Pure.
 */
export function allocateRanges(before: MeshReceipt, request: MeshRequest, taken: TakenRanges): Allocated {
  const key = keyOfCluster(request.cluster);
  const known = before.clusters[key];
  if (known?.uid === request.cluster.uid) return { receipt: before, entry: known };
  const { clusters, freed } = release(before, [key]);
  const others = Object.entries(clusters);
  const refuse = (field: string, message: string): Allocated => ({ refused: { field, message } });

  for (const kind of request.written) {
    const range = request.has[kind];
    const other = range && others.find(([, entry]) => rangesIn([entry]).some((one) => rangesOverlap(one, range)));
    if (other)
      return refuse(
        `networking.${kind}`,
        `${range} overlaps with the ranges of WorkerCluster ${other[0]} in mesh ${request.mesh}: take another, or none, and one that is free is given`,
      );
  }
  const ids = [...others.map(([, { id }]) => id), ...taken.ids];
  const id = idFrom(request.highestID, ids, freed);
  if (id === undefined)
    return refuse(
      'cloudProfile',
      `mesh ${request.mesh} has no cluster id up to ${request.highestID} left: raise spec.mesh.highestClusterID of CloudProfile ${request.profile}, or delete clusters`,
    );
  const ranges: Partial<Record<RangeKind, string>> = { ...request.has };
  for (const kind of request.wants) {
    const [pool, prefix] = [request.pools[kind], request.prefixes[kind]];
    const inUse = [
      ...taken.ranges,
      ...request.reserved,
      ...rangesIn(others.map(([, entry]) => entry)),
      ...rangesIn([ranges]),
    ];
    const range = rangeFrom(pool, prefix, inUse, freed);
    if (!range)
      return refuse(
        `networking.${kind}`,
        `mesh ${request.mesh} has no /${prefix} left in ${pool.join(', ')}: add a range to spec.mesh.${kind} of CloudProfile ${request.profile}, or write networking.${kind}`,
      );
    ranges[kind] = range;
  }
  const { namespace, name, uid } = request.cluster;
  const entry: MeshEntry = {
    uid,
    id,
    name: memberName(namespace, name, LONGEST_NAME),
    ...ranges,
    given: request.wants,
  };
  return { entry, receipt: { clusters: { ...clusters, [key]: entry }, freed } };
}

/** The receipt without these clusters; the same object where it has none of them. Pure. */
export function release(receipt: MeshReceipt, keys: readonly string[]): MeshReceipt {
  const gone = keys.filter((key) => receipt.clusters[key]);
  if (gone.length === 0) return receipt;
  const left = Object.entries(receipt.clusters).filter(([key]) => !gone.includes(key));
  const freed = gone.map((key): Freed => {
    const { id, given, ...entry } = receipt.clusters[key]!;
    return { id, ...Object.fromEntries(given.map((kind) => [kind, entry[kind]])) };
  });
  return { clusters: Object.fromEntries(left), freed: [...receipt.freed, ...freed].slice(-MOST_FREED) };
}

/** All ranges of these entries, of every kind. */
export const rangesIn = (entries: readonly Partial<Record<RangeKind, string>>[]): string[] =>
  entries.flatMap((entry) => RANGE_KINDS.flatMap((kind) => entry[kind] ?? []));

/** Whether two ranges overlap; an invalid range overlaps none. */
export function rangesOverlap(one: string, other: string): boolean {
  const [a, b] = [parsed(one), parsed(other)];
  return a !== undefined && b !== undefined && addressRangesOverlap(a, b);
}

const idFrom = (highest: number, taken: readonly number[], freed: readonly Freed[]): number | undefined =>
  sparing(freed, (spared) => {
    const used = new Set([...taken, ...spared.map(({ id }) => id)]);
    for (let id = 1; id <= highest; id++) if (!used.has(id)) return id;
    return undefined;
  });

function rangeFrom(
  pools: readonly string[],
  prefix: number,
  taken: readonly string[],
  freed: readonly Freed[],
): string | undefined {
  const inUse = [...new Set(taken)].flatMap((text) => parsed(text) ?? []);
  return sparing(freed, (spared) => {
    const held = rangesIn(spared).flatMap((text) => parsed(text) ?? []);
    const all = [...inUse, ...held].sort((a, b) => (a.first < b.first ? -1 : a.first > b.first ? 1 : 0));
    for (const pool of pools) {
      const found = firstFree(pool, prefix, all);
      if (found) return found;
    }
    return undefined;
  });
}

/** Searches with as few released entries reused as possible, the oldest released first. */
function sparing<Found>(
  freed: readonly Freed[],
  find: (spared: readonly Freed[]) => Found | undefined,
): Found | undefined {
  const without = find(freed);
  if (without !== undefined) return without;
  let found = find([]);
  if (found === undefined) return undefined;
  // Reusing more never finds less, so binary search applies.
  let [tooFew, enough] = [0, freed.length];
  while (enough - tooFew > 1) {
    const used = Math.floor((tooFew + enough) / 2);
    const better = find(freed.slice(used));
    if (better === undefined) tooFew = used;
    else [enough, found] = [used, better];
  }
  return found;
}

/** @param taken sorted by first address */
function firstFree(pool: string, prefix: number, taken: readonly AddressRange[]): string | undefined {
  const whole = addressRange(pool);
  if (whole.prefix > prefix) return undefined;
  const step = 1n << BigInt((whole.family === 4 ? 32 : 128) - prefix);
  let at = whole.first;
  for (const { family, first, last } of taken) {
    if (family !== whole.family || last < at) continue;
    if (at + step <= first) break;
    at = whole.first + ((last + 1n - whole.first + step - 1n) / step) * step;
  }
  if (at + step > whole.last + 1n) return undefined;
  return `${nthAddress(pool, at - whole.first)}/${prefix}`;
}

/** The same few thousand ranges are parsed for each new cluster. */
const MOST_PARSED = 20_000;
const ranges = new Map<string, AddressRange | undefined>();

/** undefined for an invalid range. */
function parsed(text: string): AddressRange | undefined {
  if (ranges.has(text)) return ranges.get(text);
  if (ranges.size >= MOST_PARSED) ranges.clear();
  const range = addressRangeIn(text);
  ranges.set(text, range);
  return range;
}

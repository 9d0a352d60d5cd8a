import { type AddressRange, addressRange, addressRangeIn, nthAddress, overlap } from '../api/address-range.ts';
import { memberName } from '../hubs/member-name.ts';

/** What ranges are of. */
export const KINDS = ['pods', 'services'] as const;
type RangeKind = (typeof KINDS)[number];

/** What one cluster has in a mesh, for as long as it lives. */
export interface MeshEntry {
  /** Of the WorkerCluster: a new one of the same name gets something else. */
  readonly uid: string;
  /** Unique in the mesh, from 1. */
  readonly id: number;
  /** Unique in the mesh, and short enough for whoever connects clusters. */
  readonly name: string;
  /** Absent: nobody here knows (a cluster that others made). */
  readonly pods?: string;
  readonly services?: string;
  /** Which of the two were taken out of the pools of the mesh; the others are as they would be without it. */
  readonly given: readonly RangeKind[];
}

/** Given before, to a cluster that is gone. */
type Freed = Pick<MeshEntry, 'id' | RangeKind>;

/** All that is given in one mesh. */
export interface MeshReceipt {
  /** By `namespace/name` of the WorkerCluster. */
  readonly clusters: Readonly<Record<string, MeshEntry>>;
  /** The one that was freed first comes first. */
  readonly freed: readonly Freed[];
}

export const NO_CLUSTERS: MeshReceipt = { clusters: {}, freed: [] };

/** What a new cluster asks of its mesh. */
export interface MeshRequest {
  readonly mesh: string;
  /** Of the CloudProfile, for the error. */
  readonly profile: string;
  readonly cluster: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Ranges that it has whatever the mesh says; `given` are those that are missing here. */
  readonly has: Partial<Record<RangeKind, string>>;
  /** Which of them a person wrote: in one mesh these have to be its own. */
  readonly written: readonly RangeKind[];
  /** Which ranges the mesh is to give; the others are none of its business. */
  readonly wants: readonly RangeKind[];
  readonly pools: Readonly<Record<RangeKind, readonly string[]>>;
  /** Given to nobody. */
  readonly reserved: readonly string[];
  /** Prefix lengths of what is given. */
  readonly prefixes: Readonly<Record<RangeKind, number>>;
  readonly highestID: number;
}

/** What is in use by others than the clusters of the mesh. */
export interface Taken {
  readonly ranges: readonly string[];
  readonly ids: readonly number[];
}

/** Why the mesh has nothing for the cluster: the field of its spec, and a sentence with what to do. */
export interface Refusal {
  readonly field: string;
  readonly message: string;
}

export type Allocated =
  | { readonly receipt: MeshReceipt; readonly entry: MeshEntry; readonly refused?: undefined }
  | { readonly refused: Refusal };

/** So many are remembered as freed: those before are as good as new. */
const MOST_FREED = 256;
/** What Cilium takes as cluster.name; Submariner and Istio take longer ones. */
const LONGEST_NAME = 32;

export const keyOfCluster = ({ namespace, name }: MeshRequest['cluster']): string => `${namespace}/${name}`;

/**
 * Gives a cluster its id and its ranges: the lowest that are free, and what was freed only when nothing else is left, the longest freed
 * first, since peers may still have routes to where a cluster was. The same again for one that has them. Pure.
 */
export function allocate(before: MeshReceipt, request: MeshRequest, taken: Taken): Allocated {
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

/** All ranges of these, whatever they are of. */
export const rangesIn = (entries: readonly Partial<Record<RangeKind, string>>[]): string[] =>
  entries.flatMap((entry) => KINDS.flatMap((kind) => entry[kind] ?? []));

/** Whether two ranges have an address in common; text that is no range has none. */
export function rangesOverlap(one: string, other: string): boolean {
  const [a, b] = [parsed(one), parsed(other)];
  return a !== undefined && b !== undefined && overlap(a, b);
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

/** What is found when as few as possible of the freed are used again, those that were freed first. */
function sparing<Found>(
  freed: readonly Freed[],
  find: (spared: readonly Freed[]) => Found | undefined,
): Found | undefined {
  const without = find(freed);
  if (without !== undefined) return without;
  let found = find([]);
  if (found === undefined) return undefined;
  // Sparing fewer never finds less: the number is between these two.
  let [tooFew, enough] = [0, freed.length];
  while (enough - tooFew > 1) {
    const used = Math.floor((tooFew + enough) / 2);
    const better = find(freed.slice(used));
    if (better === undefined) tooFew = used;
    else [enough, found] = [used, better];
  }
  return found;
}

/** @param taken by their first addresses */
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

/** The same few thousand ranges are looked at for each new cluster. */
const MOST_PARSED = 20_000;
const ranges = new Map<string, AddressRange | undefined>();

/** What is no range is nobody's. */
function parsed(text: string): AddressRange | undefined {
  if (ranges.has(text)) return ranges.get(text);
  if (ranges.size >= MOST_PARSED) ranges.clear();
  const range = addressRangeIn(text);
  ranges.set(text, range);
  return range;
}

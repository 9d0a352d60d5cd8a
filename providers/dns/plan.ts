import type { RecordOwner, RecordSet, RecordType } from '../dns.ts';
import { plainValue } from './names.ts';
import { type Claim, claimName, claimOf, claimRecord, isOf } from './ownership.ts';

/** A record set as the cloud has it. */
export interface SeenRecordSet extends RecordSet {
  /** Made in a way that we never make one (an alias, a routing policy): somebody else's, whatever a claim says. */
  special?: boolean;
  /** The values as the cloud writes them, where it must be told them to the letter. */
  raw?: string[];
  /** By which the cloud knows whether it was changed since. */
  etag?: string;
}

/** One record set made, replaced or taken away. */
export interface RecordChange {
  before?: SeenRecordSet;
  after?: RecordSet;
}

/** What to change, in order (where a cloud does not do all at once), or whose record is in the way. */
export type RecordPlan = { changes: RecordChange[]; foreign?: undefined } | { foreign: string; changes?: undefined };

interface Seen {
  claimSet: SeenRecordSet | undefined;
  /** What claimSet says, if it is one of ours, whoever's. */
  claim: Claim | undefined;
  at: SeenRecordSet[];
}

function look(seen: readonly SeenRecordSet[], name: string): Seen {
  const claimSet = seen.find((one) => one.name === claimName(name) && one.type === 'TXT');
  const text = claimSet?.special || claimSet?.values.length !== 1 ? undefined : claimSet.values[0];
  const claim = text === undefined ? undefined : claimOf(text);
  return { claimSet, claim, at: seen.filter((one) => one.name === name) };
}

const isOurs = (set: SeenRecordSet, claim: Claim | undefined): boolean => set.type === claim?.type && !set.special;

/** A CNAME is alone at its name (RFC 1034, 3.6.2). */
const clash = (a: RecordType, b: RecordType): boolean => a === b || a === 'CNAME' || b === 'CNAME';

const isEqual = (a: RecordSet, b: RecordSet): boolean => {
  const values = ({ type, values: all }: RecordSet) => [...new Set(all.map((one) => plainValue(type, one)))].sort();
  return a.ttl === b.ttl && JSON.stringify(values(a)) === JSON.stringify(values(b));
};

const holder = (claim: Claim, { garden }: RecordOwner): string =>
  claim.garden === garden
    ? `cluster ${claim.namespace}/${claim.name}`
    : `cluster ${claim.namespace}/${claim.name} of another garden (${claim.garden})`;

/**
 * What makes the name have this record set: pure. The claim is written before what it claims and after what it no longer
 * claims, so that nothing of ours is ever without one.
 * @param seen everything at the name and at that of its claim
 */
export function planRecord(seen: readonly SeenRecordSet[], wanted: RecordSet, owner: RecordOwner): RecordPlan {
  const { claimSet, claim, at } = look(seen, wanted.name);
  if (claimSet && !claim) return { foreign: `${claimSet.name} has a TXT record that is not ours` };
  if (claim && !isOf(claim, owner)) return { foreign: `${wanted.name} belongs to ${holder(claim, owner)}` };
  const foreign = at.find((set) => !isOurs(set, claim) && clash(set.type, wanted.type));
  if (foreign) {
    const values = foreign.values.length > 0 ? ` (${foreign.values.join(', ').slice(0, 100)})` : '';
    return { foreign: `${wanted.name} has a record of type ${foreign.type}${values} that Coppice did not make` };
  }
  const ours = at.filter((set) => isOurs(set, claim));
  const changes: RecordChange[] = ours.filter(({ type }) => type !== wanted.type).map((before) => ({ before }));
  const claimed = claimRecord(owner, wanted);
  if (!claimSet) changes.push({ after: claimed });
  else if (claimSet.values[0] !== claimed.values[0]) changes.push({ before: claimSet, after: claimed });
  const before = ours.find(({ type }) => type === wanted.type);
  if (!before) changes.push({ after: wanted });
  else if (!isEqual(before, wanted)) changes.push({ before, after: wanted });
  return { changes };
}

/** What takes away all of the owner's at the name, the claim last: pure. Nothing where the claim is another's or absent. */
export function planRemoval(seen: readonly SeenRecordSet[], name: string, owner: RecordOwner): RecordChange[] {
  const { claimSet, claim, at } = look(seen, name);
  if (!claimSet || !claim || !isOf(claim, owner)) return [];
  return [...at.filter((set) => isOurs(set, claim)), claimSet].map((before) => ({ before }));
}

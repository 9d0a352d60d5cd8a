import type { RecordOwner, RecordSet, RecordType } from '../dns.ts';
import { plainValue } from './names.ts';
import { type Claim, claimName, claimOf, claimRecord, isOf } from './ownership.ts';

/** A record set as read from the cloud. */
export interface SeenRecordSet extends RecordSet {
  /** Made in a way that we never use (alias, routing policy): foreign, whatever a claim says. */
  special?: boolean;
  /** Values as the cloud spells them, for clouds that require exact values. */
  raw?: string[];
  /** Version for conditional changes. */
  etag?: string;
}

/** A record set to create, replace or delete. */
export interface RecordChange {
  before?: SeenRecordSet;
  after?: RecordSet;
}

/** Ordered changes (for clouds without atomic batches), or the foreign record in the way. */
type RecordPlan = { changes: RecordChange[]; foreign?: undefined } | { foreign: string; changes?: undefined };

interface Seen {
  claimSet: SeenRecordSet | undefined;
  /** Claim in claimSet, of any owner. */
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

/** A CNAME must be alone at its name (RFC 1034, 3.6.2). */
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
 * Plans the record set of a name: pure. The claim is written before the record and deleted after it, so that none of
 * our records is ever unclaimed.
 * @param seen all records at the name and at its claim
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

/**
 * Plans the deletion of the owner's records at the name, the claim last: pure. Empty when another owner, or nobody,
 * claims it.
 */
export function planRemoval(seen: readonly SeenRecordSet[], name: string, owner: RecordOwner): RecordChange[] {
  const { claimSet, claim, at } = look(seen, name);
  if (!claimSet || !claim || !isOf(claim, owner)) return [];
  return [...at.filter((set) => isOurs(set, claim)), claimSet].map((before) => ({ before }));
}

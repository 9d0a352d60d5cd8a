import type { RecordOwner, RecordSet, RecordType } from '../dns.ts';

/** Before the name of a record set, that of the TXT record by which it is ours. No host has such a name (RFC 8552). */
const PREFIX = '_coppice.';

/** Seconds: nobody but us reads it, and not by DNS. */
const TTL = 300;

/** What a TXT record says: whose the record set of that type is. */
export interface Claim extends RecordOwner {
  type: RecordType;
}

/** Name of the TXT record that says whose a name is. */
export const claimName = (name: string): string => `${PREFIX}${name}`;

/** The name that a TXT record of this name is about; undefined: it is none of that kind. */
export const claimedName = (name: string): string | undefined =>
  name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined;

/** In external-dns' form, so that people and tools know what they look at. At most 250 characters, where DNS allows 255 in one text. */
export const claimText = ({ garden, namespace, name, type }: Claim): string =>
  `heritage=coppice,coppice/garden=${garden},coppice/cluster=${namespace}/${name},coppice/type=${type}`;

const FORM =
  /^heritage=coppice,coppice\/garden=([^,]+),coppice\/cluster=([^,/]+)\/([^,/]+),coppice\/type=(A|AAAA|CNAME|TXT)$/;

/** What a text claims; undefined when it is not of ours. */
export function claimOf(text: string): Claim | undefined {
  const [, garden, namespace, name, type] = FORM.exec(text) ?? [];
  if (garden === undefined) return undefined;
  return { garden, namespace: namespace!, name: name!, type: type as RecordType };
}

/** The record set that makes a name ours. */
export const claimRecord = (owner: RecordOwner, wanted: Pick<RecordSet, 'name' | 'type'>): RecordSet => ({
  name: claimName(wanted.name),
  type: 'TXT',
  ttl: TTL,
  values: [claimText({ ...owner, type: wanted.type })],
});

/** Whether the claim is the owner's: also an earlier cluster of the name, whose records nobody else would ever take away. */
export const isOf = (claim: Claim, { garden, namespace, name }: RecordOwner): boolean =>
  claim.garden === garden && claim.namespace === namespace && claim.name === name;

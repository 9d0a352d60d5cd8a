import type { RecordOwner, RecordSet, RecordType } from '../dns.ts';

/** Prefix of the claiming TXT record's name. No host has such a name (RFC 8552). */
const PREFIX = '_coppice.';

/** Seconds; irrelevant, because the record is read through the cloud's API. */
const TTL = 300;

/** Content of a claiming TXT record: owner of the record set of a type. */
export interface Claim extends RecordOwner {
  type: RecordType;
}

/** Name of the TXT record that claims a name. */
export const claimName = (name: string): string => `${PREFIX}${name}`;

/** The name claimed by a TXT record of this name; undefined: not a claim. */
export const claimedName = (name: string): string | undefined =>
  name.startsWith(PREFIX) ? name.slice(PREFIX.length) : undefined;

/** external-dns' form, which people and tools recognise. At most 250 characters; DNS allows 255 per text. */
export const claimText = ({ garden, namespace, name, type }: Claim): string =>
  `heritage=coppice,coppice/garden=${garden},coppice/cluster=${namespace}/${name},coppice/type=${type}`;

const FORM =
  /^heritage=coppice,coppice\/garden=([^,]+),coppice\/cluster=([^,/]+)\/([^,/]+),coppice\/type=(A|AAAA|CNAME|TXT)$/;

/** The claim in a text; undefined: not ours. */
export function claimOf(text: string): Claim | undefined {
  const [, garden, namespace, name, type] = FORM.exec(text) ?? [];
  if (garden === undefined) return undefined;
  return { garden, namespace: namespace!, name: name!, type: type as RecordType };
}

/** The record set that claims a name. */
export const claimRecord = (owner: RecordOwner, wanted: Pick<RecordSet, 'name' | 'type'>): RecordSet => ({
  name: claimName(wanted.name),
  type: 'TXT',
  ttl: TTL,
  values: [claimText({ ...owner, type: wanted.type })],
});

/**
 * Whether the claim is the owner's, or an earlier cluster's of the same name, whose records nobody else would delete.
 */
export const isOf = (claim: Claim, { garden, namespace, name }: RecordOwner): boolean =>
  claim.garden === garden && claim.namespace === namespace && claim.name === name;

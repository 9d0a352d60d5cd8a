import type { RecordType } from '../dns.ts';

/** Name in RecordSet's form: `API.Example.com.` becomes `api.example.com`. */
export const plainName = (name: string): string => name.replace(/\.$/, '').toLowerCase();

/** Canonical form of a value, so that equal values are equal texts. */
export function plainValue(type: RecordType, value: string): string {
  if (type === 'CNAME') return plainName(value);
  if (type !== 'AAAA') return value;
  // URL parsing writes IPv6 addresses as RFC 5952 does.
  return URL.parse(`http://[${value}]/`)?.hostname.slice(1, -1) ?? value;
}

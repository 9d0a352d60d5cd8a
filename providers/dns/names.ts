import type { RecordType } from '../dns.ts';

/** A name as RecordSet has it: `API.Example.com.` is `api.example.com`. */
export const plainName = (name: string): string => name.replace(/\.$/, '').toLowerCase();

/** A value in the one form in which equal values are equal texts. */
export function plainValue(type: RecordType, value: string): string {
  if (type === 'CNAME') return plainName(value);
  if (type !== 'AAAA') return value;
  // A URL's host is written as RFC 5952 wants addresses written.
  return URL.parse(`http://[${value}]/`)?.hostname.slice(1, -1) ?? value;
}

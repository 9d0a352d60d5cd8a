import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** An address range of one family in CIDR notation, host bits cleared. */
export interface AddressRange {
  readonly family: 4 | 6;
  readonly prefix: number;
  readonly first: bigint;
  readonly last: bigint;
  /** Number of addresses. */
  readonly size: bigint;
}

/** Parses `10.0.0.0/16` or `fd00::/48`. Throws RangeError for other text. */
export function addressRange(text: string): AddressRange {
  const range = addressRangeIn(text);
  if (!range) throw new RangeError(`"${text}" is no address range (example: 10.0.0.0/16)`);
  return range;
}

/** Like addressRange, but returns undefined for invalid text. */
export function addressRangeIn(text: string): AddressRange | undefined {
  const [address = '', length = '', ...rest] = text.split('/');
  const family = familyOf(address);
  const bits = family === 4 ? 32 : 128;
  if (!family || rest.length > 0 || !/^\d{1,3}$/.test(length) || Number(length) > bits) return undefined;
  const size = 1n << BigInt(bits - Number(length));
  const first = numberIn(ipaddr.parse(address)) & ~(size - 1n);
  return { family, prefix: Number(length), first, last: first + size - 1n, size };
}

/** An IPv4 range; undefined for invalid text. */
export function ipv4Range(text: string): AddressRange | undefined {
  const range = addressRangeIn(text);
  return range?.family === 4 ? range : undefined;
}

/** A range, or the range of a single address; undefined for invalid text. */
export const rangeOrAddress = (text: string): AddressRange | undefined =>
  addressRangeIn(text.includes('/') ? text : `${text}/${isIP(text) === 6 ? 128 : 32}`);

/** CIDR notation of the range, as in RFC 5952. */
export const rangeText = ({ first, family, prefix }: AddressRange): string => `${addressText(first, family)}/${prefix}`;

/**
 * Address number `index` of the range; 0 is the network address. Throws RangeError for an invalid or too small range.
 */
export function nthAddress(text: string, index: number | bigint): string {
  const { first, size, family } = addressRange(text);
  if (index < 0 || BigInt(index) >= size) throw new RangeError(`${text} has no address number ${index}`);
  return addressText(first + BigInt(index), family);
}

/** Part number `index` of a range that is split into 2^`by` equal parts. */
export function partOf({ family, prefix, first, size }: AddressRange, by: number, index: number): AddressRange {
  const part = size >> BigInt(by);
  const from = first + BigInt(index) * part;
  return { family, prefix: prefix + by, first: from, last: from + part - 1n, size: part };
}

/** Whether two ranges overlap. Ranges of different families never do. */
export const addressRangesOverlap = (a: AddressRange, b: AddressRange): boolean =>
  a.family === b.family && a.first <= b.last && b.first <= a.last;

/** Whether `outer` contains all of `inner`. */
export const rangeContains = (outer: AddressRange, inner: AddressRange): boolean =>
  outer.family === inner.family && outer.first <= inner.first && inner.last <= outer.last;

/** Ranges to look an address up in. */
export interface AddressList {
  /**
   * Whether any range contains the address. An IPv4 address wrapped in IPv6 (`::ffff:10.0.0.1`) counts as both. False
   * for invalid text.
   */
  has(address: string): boolean;
}

/** A list of these ranges. Throws RangeError for an invalid one. */
export function addressList(ranges: readonly string[]): AddressList {
  const all = ranges.map(addressRange);
  return {
    has(text) {
      if (!familyOf(text)) return false;
      const address = ipaddr.process(text);
      const wrapped = address instanceof ipaddr.IPv4 ? [address.toIPv4MappedAddress()] : [];
      return [address, ...wrapped].some((form) => {
        const [family, value] = [form.kind() === 'ipv4' ? 4 : 6, numberIn(form)];
        return all.some((range) => range.family === family && range.first <= value && value <= range.last);
      });
    },
  };
}

/** Node's parser decides: ipaddr.js reads `010.1` as inet_aton does (8.0.0.1), which no author of YAML means. */
const familyOf = (address: string): 4 | 6 | undefined => (({ 4: 4, 6: 6 }) as const)[isIP(address)];

const numberIn = (address: ipaddr.IPv4 | ipaddr.IPv6): bigint =>
  BigInt(`0x${Buffer.from(address.toByteArray()).toString('hex')}`);

/** Text of an address. */
export function addressText(value: bigint, family: 4 | 6): string {
  const bytes = Buffer.from(value.toString(16).padStart(family === 4 ? 8 : 32, '0'), 'hex');
  const address = ipaddr.fromByteArray([...bytes]);
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString();
}

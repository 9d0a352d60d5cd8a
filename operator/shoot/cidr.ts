import { isIP } from 'node:net';

/** A parsed address range. `base` is the first address, `size` the number of addresses. */
export interface Range {
  family: 4 | 6;
  prefix: number;
  base: bigint;
  size: bigint;
}

/** Parses `10.0.0.0/16` or `fd00::/48`; host bits are cleared. Throws RangeError when `cidr` is not an address range. */
export function parseCIDR(cidr: string): Range {
  const [address = '', prefixText = '', ...rest] = cidr.split('/');
  const family = isIP(address) as 0 | 4 | 6;
  const bits = family === 4 ? 32 : 128;
  const prefix = Number(prefixText);
  if (!family || rest.length > 0 || !/^\d+$/.test(prefixText) || prefix > bits) {
    throw new RangeError(`"${cidr}" is not an address range: write it as in 10.96.0.0/12`);
  }
  const size = 1n << BigInt(bits - prefix);
  return { family, prefix, size, base: parseAddress(address) & ~(size - 1n) };
}

/** Address number `index` of the range, 0 being the network's own. Throws RangeError when the range is too small. */
export function nthAddress(cidr: string, index: number): string {
  const range = parseCIDR(cidr);
  if (BigInt(index) >= range.size || index < 0) throw new RangeError(`${cidr} has no address number ${index}`);
  return formatAddress(range.base + BigInt(index), range.family);
}

/** Whether the address or the whole range `inner` lies in `outer`. */
export function contains(outer: string, inner: string): boolean {
  const a = parseCIDR(outer);
  const b = parseCIDR(inner.includes('/') ? inner : `${inner}/${isIP(inner) === 6 ? 128 : 32}`);
  return a.family === b.family && b.base >= a.base && b.base + b.size <= a.base + a.size;
}

/** Whether two ranges have an address in common. */
export function overlaps(left: string, right: string): boolean {
  const a = parseCIDR(left);
  const b = parseCIDR(right);
  return a.family === b.family && a.base < b.base + b.size && b.base < a.base + a.size;
}

function parseAddress(address: string): bigint {
  if (isIP(address) === 4) return address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = canonical.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = !tail ? [] : tail.split(':');
  const groups = [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
  return groups.reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

function formatAddress(value: bigint, family: 4 | 6): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((value >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

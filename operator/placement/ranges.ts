import { BlockList, isIP } from 'node:net';

/** Whether two address ranges share an address. Ranges of different families share none. Throws RangeError on no range. */
export function overlap(one: string, other: string): boolean {
  const [a, b] = [parse(one), parse(other)];
  if (a.family !== b.family) return false;
  // Of two ranges that share an address, the smaller lies within the larger.
  const [larger, smaller] = a.prefix <= b.prefix ? [a, b] : [b, a];
  const block = new BlockList();
  block.addSubnet(larger.address, larger.prefix, larger.family);
  return block.check(smaller.address, smaller.family);
}

function parse(range: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } {
  const [address = '', length = ''] = range.split('/');
  const version = isIP(address);
  const prefix = Number(length);
  if (version === 0 || !/^[0-9]{1,3}$/.test(length) || prefix > (version === 4 ? 32 : 128)) {
    throw new RangeError(`"${range}" is no address range (example: 10.0.0.0/16)`);
  }
  return { address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' };
}

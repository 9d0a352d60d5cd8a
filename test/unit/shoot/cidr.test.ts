import { describe, expect, it } from 'vitest';
import { contains, nthAddress, overlaps, parseCIDR } from '../../../operator/shoot/cidr.ts';

describe('nthAddress', () => {
  it.each([
    ['10.96.0.0/12', 1, '10.96.0.1'],
    ['10.96.0.0/12', 10, '10.96.0.10'],
    ['10.96.3.7/16', 256, '10.96.1.0'],
    ['192.168.0.0/30', 3, '192.168.0.3'],
    ['fd00:10:96::/112', 10, 'fd00:10:96::a'],
    ['fd00::/64', 65536, 'fd00::1:0'],
  ])('%s number %i is %s', (cidr, index, address) => expect(nthAddress(cidr, index)).toBe(address));
  it('does not leave the range', () => expect(() => nthAddress('192.168.0.0/30', 4)).toThrow(/no address number 4/));
});

describe('contains', () => {
  it.each([
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '10.1.0.0/16', true],
    ['10.1.0.0/16', '10.0.0.0/8', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['fd00::/8', 'fd12:3456::1', true],
    ['fd00::/8', '10.0.0.1', false],
  ])('%s, %s: %s', (outer, inner, expected) => expect(contains(outer, inner)).toBe(expected));
});

describe('overlaps', () => {
  it.each([
    ['10.0.0.0/16', '10.0.128.0/17', true],
    ['10.0.128.0/17', '10.0.0.0/16', true],
    ['10.0.0.0/17', '10.0.128.0/17', false],
    ['10.0.0.0/16', 'fd00::/64', false],
  ])('%s, %s: %s', (left, right, expected) => expect(overlaps(left, right)).toBe(expected));
});

it.each(['10.0.0.0', '10.0.0.0/33', '10.0.0/8', 'x/8', '10.0.0.0/8/8', '10.0.0.0/', '::/129'])('refuses %s', (text) =>
  expect(() => parseCIDR(text)).toThrow(RangeError),
);

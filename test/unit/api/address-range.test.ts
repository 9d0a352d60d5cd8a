import { describe, expect, it } from 'vitest';
import {
  addressList,
  addressRange,
  addressRangeIn,
  addressRangesOverlap,
  ipv4Range,
  nthAddress,
  partOf,
  rangeContains,
  rangeOrAddress,
  rangeText,
} from '../../../operator/api/address-range.ts';

describe('nthAddress', () => {
  it.each([
    ['10.96.0.0/12', 1, '10.96.0.1'],
    ['10.96.0.0/12', 10, '10.96.0.10'],
    ['10.96.3.7/16', 256, '10.96.1.0'],
    ['192.168.0.0/30', 3, '192.168.0.3'],
    ['0.0.0.0/0', 0, '0.0.0.0'],
    ['fd00:10:96::/112', 10, 'fd00:10:96::a'],
    ['fd00::/64', 65536, 'fd00::1:0'],
    ['2001:db8:0:1:1:1:1:0/112', 1, '2001:db8:0:1:1:1:1:1'],
    ['::/0', 2n ** 128n - 1n, 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  ])('%s number %i is %s', (range, index, address) => expect(nthAddress(range, index)).toBe(address));
  it('throws beyond the end of the range', () => {
    expect(() => nthAddress('192.168.0.0/30', 4)).toThrow(/no address number 4/);
    expect(() => nthAddress('192.168.0.0/30', -1)).toThrow(/no address number -1/);
  });
});

it.each([
  ['10.0.0.7/24', 0x0a000000n, 0x0a0000ffn],
  ['0.0.0.0/0', 0n, 0xffffffffn],
  ['255.255.255.255/32', 0xffffffffn, 0xffffffffn],
  ['::1/127', 0n, 1n],
])('%s has a first and a last address', (text, first, last) => {
  expect(addressRange(text)).toMatchObject({ first, last, size: last - first + 1n });
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
    ['::/0', '10.0.0.1', false],
  ])('%s, %s: %s', (outer, inner, expected) =>
    expect(rangeContains(addressRange(outer), rangeOrAddress(inner)!)).toBe(expected),
  );
});

it.each([
  ['10.0.0.0/8', '10.255.0.0/16', true],
  ['10.0.0.0/16', '10.0.128.0/17', true],
  ['10.0.0.0/17', '10.0.128.0/17', false],
  ['10.0.0.0/16', '10.1.0.0/16', false],
  ['0.0.0.0/0', '192.168.1.0/24', true],
  ['10.0.0.0/16', 'fd00::/64', false],
  ['fd00::/8', 'fd12::/16', true],
])('%s and %s overlap: %s', (one, other, expected) => {
  expect(addressRangesOverlap(addressRange(one), addressRange(other))).toBe(expected);
  expect(addressRangesOverlap(addressRange(other), addressRange(one))).toBe(expected);
});

it.each([
  '10.0.0.0',
  '10.0.0.0/33',
  '10.0.0/8',
  'x/8',
  '10.0.0.0/8/8',
  '10.0.0.0/',
  '10.0.0.0/ 8',
  '10.0.0.0/+8',
  '10.0.0.0/1e1',
  '::/129',
  'default',
  '',
  // The library alone reads these as inet_aton does: 8.0.0.0, 10.0.0.0, 10.0.0.0.
  '010.0.0.0/8',
  '0x0a.0.0.0/8',
  '10.0/8',
])('"%s" is no range', (text) => {
  expect(addressRangeIn(text)).toBeUndefined();
  expect(() => addressRange(text)).toThrow(`"${text}" is no address range (example: 10.0.0.0/16)`);
});

it('returns false for ranges of different families', () => {
  expect(ipv4Range('10.0.0.0/8')?.size).toBe(2n ** 24n);
  expect(ipv4Range('fd00::/8')).toBeUndefined();
  expect(rangeOrAddress('fd00::1')).toMatchObject({ family: 6, prefix: 128 });
  expect(rangeOrAddress('default')).toBeUndefined();
});

it('partOf splits a range into equal parts', () => {
  const parts = [0, 1, 2, 3].map((index) => rangeText(partOf(addressRange('10.0.0.7/22'), 2, index)));
  expect(parts).toEqual(['10.0.0.0/24', '10.0.1.0/24', '10.0.2.0/24', '10.0.3.0/24']);
  expect(rangeText(partOf(addressRange('fd00::/62'), 2, 3))).toBe('fd00:0:0:3::/64');
});

describe('addressList', () => {
  const list = addressList(['10.0.0.0/8', 'fe80::/10', '::ffff:192.0.2.0/120']);
  it.each([
    ['10.1.2.3', true],
    ['11.1.2.3', false],
    ['fe80::1', true],
    ['fe80::1%eth0', true],
    // One and the same host, whichever way it is written.
    ['::ffff:10.1.2.3', true],
    ['::ffff:a01:203', true],
    ['192.0.2.9', true],
    ['::ffff:11.1.2.3', false],
    // No address: no name service and no inet_aton is asked what it may mean.
    ['010.1.2.3', false],
    ['10.1', false],
    ['localhost', false],
    ['', false],
  ])('has %s: %s', (address, expected) => expect(list.has(address)).toBe(expected));
});

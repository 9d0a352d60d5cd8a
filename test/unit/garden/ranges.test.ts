import { describe, expect, it } from 'vitest';
import { chooseRanges, conflicts, overlaps, parseRange } from '../../../operator/garden/ranges.ts';

describe('parseRange', () => {
  it.each([
    ['10.0.0.1', 0x0a000001, 0x0a000001],
    ['10.0.0.7/24', 0x0a000000, 0x0a0000ff],
    ['0.0.0.0/0', 0, 0xffffffff],
  ])('%s', (text, first, last) => {
    expect(parseRange(text)).toEqual({ first, last });
  });

  it.each(['default', 'fd00::/8', '10.0.0/8', '10.0.0.256', '10.0.0.0/33'])('does not take %s', (text) => {
    expect(parseRange(text)).toBeUndefined();
  });
});

describe('chooseRanges', () => {
  it('is the same for the same id', () => {
    expect(chooseRanges('abc', [])).toEqual(chooseRanges('abc', []));
  });

  it('keeps clear of what the host uses', () => {
    const first = chooseRanges('abc', ['10.0.0.0/9'])!;
    const second = chooseRanges('abc', [first.pods])!;
    expect(second).not.toEqual(first);
    expect(conflicts(second, [first.pods, first.services, first.nodes])).toEqual([]);
  });

  it('gives ranges that do not overlap each other and hold their addresses', () => {
    const { pods, nodes, services, nodeAddress, apiserverAddress } = chooseRanges('x', [])!;
    const [p, n, s] = [pods, nodes, services].map((range) => parseRange(range)!);
    expect(overlaps(p!, n!) || overlaps(n!, s!) || overlaps(p!, s!)).toBe(false);
    expect(overlaps(n!, parseRange(nodeAddress)!)).toBe(true);
    expect(overlaps(s!, parseRange(apiserverAddress)!)).toBe(true);
  });

  it('has an end, and ignores the default route', () => {
    expect(chooseRanges('abc', ['10.0.0.0/8'])).toBeUndefined();
    expect(chooseRanges('abc', ['default'])).toBeDefined();
  });
});

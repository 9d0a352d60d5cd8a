import { describe, expect, it } from 'vitest';
import { addressRange, addressRangesOverlap, rangeOrAddress } from '../../../operator/api/address-range.ts';
import { chooseRanges, rangeConflicts } from '../../../operator/garden/host/ranges.ts';

describe('chooseRanges', () => {
  it('is constant for an id', () => {
    expect(chooseRanges('abc', [])).toEqual(chooseRanges('abc', []));
  });

  it("avoids the host's ranges", () => {
    const first = chooseRanges('abc', ['10.0.0.0/9'])!;
    const second = chooseRanges('abc', [first.pods])!;
    expect(second).not.toEqual(first);
    expect(rangeConflicts(second, [first.pods, first.services, first.nodes])).toEqual([]);
  });

  it('returns ranges that do not overlap and contain their addresses', () => {
    const { pods, nodes, services, nodeAddress, apiserverAddress } = chooseRanges('x', [])!;
    const [p, n, s] = [pods, nodes, services].map(addressRange);
    expect(addressRangesOverlap(p!, n!) || addressRangesOverlap(n!, s!) || addressRangesOverlap(p!, s!)).toBe(false);
    expect(addressRangesOverlap(n!, rangeOrAddress(nodeAddress)!)).toBe(true);
    expect(addressRangesOverlap(s!, rangeOrAddress(apiserverAddress)!)).toBe(true);
  });

  it('ends without a free range, and ignores the default route', () => {
    expect(chooseRanges('abc', ['10.0.0.0/8'])).toBeUndefined();
    expect(chooseRanges('abc', ['default'])).toBeDefined();
  });
});

import { describe, expect } from 'vitest';
import {
  allocateRanges,
  type MeshReceipt,
  type MeshRequest,
  NO_CLUSTERS,
  rangesIn,
  release,
  type TakenRanges,
} from '../../../operator/mesh/allocate.ts';
import { type Draw, holds } from '../../kit/property.ts';

interface Range {
  text: string;
  first: number;
  last: number;
}
/** IPv4 by hand, so that the product's arithmetic is not what judges it. */
function range(text: string): Range {
  const [a, b, c, d, prefix] = text.split(/[./]/).map(Number) as [number, number, number, number, number];
  const size = 2 ** (32 - prefix);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  const first = address - (address % size);
  return { text, first, last: first + size - 1 };
}
const meet = (one: Range, other: Range) => one.first <= other.last && other.first <= one.last;
const within = (inner: Range, outer: Range) => outer.first <= inner.first && inner.last <= outer.last;

/** Pools and wishes that soon leave little room, so that what was freed is needed again. */
function requestOf(choose: Draw, uid: number): MeshRequest {
  const written = choose.chance(0.15) ? (['pods'] as const) : [];
  const wide = choose.integer(0, 15);
  return {
    mesh: 'default',
    profile: 'local',
    cluster: { namespace: 'shop', name: `c${choose.integer(0, 30)}`, uid: String(uid) },
    has: written.length > 0 ? { pods: `10.${wide}.${choose.integer(0, 255)}.0/${choose.integer(16, 24)}` } : {},
    written,
    wants: written.length > 0 ? ['services'] : ['pods', 'services'],
    pools: { pods: ['10.0.0.0/14', '10.8.0.0/13'], services: ['10.4.0.0/18', '10.0.0.0/14'] },
    reserved: ['10.1.0.0/24', '10.9.0.0/16', 'no range'],
    prefixes: { pods: choose.integer(15, 20), services: choose.integer(20, 24) },
    highestID: choose.pick([12, 40]),
  };
}
const takenOf = (choose: Draw): TakenRanges => ({
  ranges: choose.many(4, () => `10.${choose.integer(0, 15)}.${choose.integer(0, 255)}.0/${choose.integer(13, 24)}`),
  ids: [choose.integer(1, 5)],
});

/** Clusters come and go. `after` sees each thing that was given, with the receipt before it. */
function history(
  choose: Draw,
  after: (given: {
    before: MeshReceipt;
    request: MeshRequest;
    taken: TakenRanges;
    result: ReturnType<typeof allocateRanges>;
  }) => void,
) {
  let receipt = NO_CLUSTERS;
  const taken = takenOf(choose);
  for (let step = 0; step < 60; step++) {
    const keys = Object.keys(receipt.clusters);
    if (keys.length > 0 && choose.chance(0.4)) {
      receipt = release(receipt, choose.some(keys, 0.3));
      continue;
    }
    const request = requestOf(choose, step);
    const result = allocateRanges(receipt, request, taken);
    after({ before: receipt, request, taken, result });
    if (!result.refused) receipt = result.receipt;
  }
}

/** Each history is 60 clusters that come or go. */
const tried: typeof holds = (what, body) => holds(what, body, { runs: 50 });

describe('clusters of a mesh', () => {
  tried('never have an address, an id or a name in common, nor one of what is taken or reserved', (choose) => {
    history(choose, ({ request, taken, result }) => {
      if (result.refused) return;
      const entries = Object.entries(result.receipt.clusters);
      const all = entries.flatMap(([key, entry]) => rangesIn([entry]).map((text) => ({ key, range: range(text) })));
      all.forEach((one, index) => {
        for (const other of all.slice(index + 1))
          expect(meet(one.range, other.range), `${one.range.text} ${other.range.text}`).toBe(false);
      });
      expect(new Set(entries.map(([, { id }]) => id)).size).toBe(entries.length);
      expect(new Set(entries.map(([, { name }]) => name)).size).toBe(entries.length);
      const { entry } = result;
      expect(taken.ids).not.toContain(entry.id);
      expect(entry.id).toBeLessThanOrEqual(request.highestID);
      for (const kind of entry.given) {
        const given = range(entry[kind]!);
        expect(request.pools[kind].some((pool) => within(given, range(pool)))).toBe(true);
        for (const other of [...taken.ranges, '10.1.0.0/24', '10.9.0.0/16'])
          expect(meet(given, range(other)), `${given.text} ${other}`).toBe(false);
        expect(given.last - given.first + 1).toBe(2 ** (32 - request.prefixes[kind]));
      }
    });
  });

  tried('get the same each time that the same is asked', (choose) => {
    history(choose, ({ before, request, taken, result }) => {
      expect(allocateRanges(before, request, taken)).toEqual(result);
      if (!result.refused) expect(allocateRanges(result.receipt, request, taken)).toEqual(result);
    });
  });

  tried('get what was freed only when nothing else is left', (choose) => {
    history(choose, ({ before, request, taken, result }) => {
      if (result.refused) return;
      // One of the same name that was there before has gone.
      const others = release(before, [`${request.cluster.namespace}/${request.cluster.name}`]);
      const freed = rangesIn(others.freed);
      for (const kind of result.entry.given) {
        const given = range(result.entry[kind]!);
        if (!freed.some((text) => meet(range(text), given))) continue;
        const { pods } = result.entry;
        const elsewhere = allocateRanges(
          others,
          {
            ...request,
            has: kind === 'services' ? { pods: pods! } : {},
            written: [],
            wants: [kind],
            reserved: [...request.reserved, ...freed],
          },
          taken,
        );
        expect(elsewhere.refused?.field, `${given.text} was freed, and ${JSON.stringify(elsewhere)} was not`).toBe(
          `networking.${kind}`,
        );
      }
    });
  });
});

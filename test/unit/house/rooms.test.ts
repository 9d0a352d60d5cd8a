import { describe, expect, it } from 'vitest';
import { countShape } from '../../kit/rooms/counts.ts';
import { numbersOf, readRooms, summary } from '../../kit/rooms/table.ts';

/**
 * What there may be at most: counts that only fall, and counts per thousand lines of product, so that what comes later
 * fits in. Issue 27 wants 10 names, 30 exports and 9 files, 60 names with several definitions, 29 functions, and 0 else.
 */
const AT_MOST: Record<string, { count?: number; perThousand?: number }> = {
  'names imported across rooms': { perThousand: 10 },
  exports: { perThousand: 34.3 },
  'exports for tests alone': { count: 230 },
  'exports for nobody': { count: 0 },
  'exported names with several definitions': { count: 198 },
  'exported functions of one word': { count: 243 },
  'product files': { perThousand: 9 },
  'files of more than 500 lines': { count: 0 },
  'functions with five parameters or more': { count: 140 },
};
/** How far a number of the table may be from what is counted: the table says how far a room has come, and every change moves something. */
const STALE = { share: 0.15, count: 12 };

const shape = countShape();

describe('rooms', () => {
  it.each(Object.entries(AT_MOST))('have no more %s than agreed', (what, { count, perThousand }) => {
    const [, counted, rate] = summary(shape).find(([named]) => named === what)!;
    expect(counted).toBeLessThanOrEqual(count ?? Number.POSITIVE_INFINITY);
    expect(rate ?? 0).toBeLessThanOrEqual(perThousand ?? Number.POSITIVE_INFINITY);
  });

  it('stand in docs/rooms.md with numbers of today; `npm run rooms -- --write` counts them again', () => {
    const table = readRooms();
    expect([...table.keys()]).toEqual(Object.keys(shape.rooms));
    const stale = Object.entries(shape.rooms).filter(([room, counts]) =>
      numbersOf(counts).some(
        (now, at) => Math.abs(now - table.get(room)!.numbers[at]!) > Math.max(STALE.count, STALE.share * now),
      ),
    );
    expect(stale.map(([room]) => room)).toEqual([]);
  });

  it('whose face is done export nothing for tests alone or for nobody', () => {
    const table = readRooms();
    const needless = Object.entries(shape.rooms).flatMap(([room, { forTests, forNobody }]) =>
      table.get(room)?.marks.face ? [...forTests, ...forNobody] : [],
    );
    expect(needless).toEqual([]);
  });
});

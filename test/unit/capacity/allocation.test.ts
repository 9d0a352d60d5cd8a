import { describe, expect, it } from 'vitest';
import {
  allocatePool,
  type HeldPart,
  type OfferAvailability,
  partName,
} from '../../../operator/capacity/allocation.ts';
import { seeded } from '../../kit/seeded.ts';

type PoolWish = Parameters<typeof allocatePool>[0];

const wish = (count: number, more: Partial<PoolWish> = {}): PoolWish => ({
  name: 'workers',
  machineTypes: ['large', 'medium', 'small'],
  zones: ['a', 'b'],
  count,
  ...more,
});
/** `gone`: offers as `type/zone`, or `type` for all zones. `short`: names of parts. `taken`: offers of which the cloud took machines away. */
const market = (gone: string[] = [], short: string[] = [], taken: string[] = []): OfferAvailability => {
  const has = (offers: string[]) => (type: string, zone: string) =>
    offers.includes(type) || offers.includes(`${type}/${zone}`);
  return { isShort: (part) => short.includes(part), isDepleted: has(gone), wasInterrupted: has(taken) };
};
const part = (machineType: string, count: number, zones = ['a', 'b'], running?: number): HeldPart => ({
  name: partName(wish(0), machineType, zones),
  machineType,
  zones,
  count,
  running,
});
const shape = (parts: readonly HeldPart[]) =>
  parts.map(({ machineType, zones, count }) => `${count} ${machineType} ${zones.join('')}`);
const WORKERS = 'workers';
const MEDIUM = part('medium', 0).name;

describe('the parts of a pool', () => {
  it.each<[what: string, count: number, held: HeldPart[], market: OfferAvailability, parts: string[], lacking: number]>(
    [
      ['not at all while the first choice can be had', 3, [], market(), ['3 large ab'], 0],
      [
        'not at all while nothing is lacking',
        3,
        [part('large', 3, ['a', 'b'], 3)],
        market(['large']),
        ['3 large ab'],
        0,
      ],
      ['not because nodes are slow to come', 3, [part('large', 3, ['a', 'b'], 1)], market(), ['3 large ab'], 0],
      [
        'to go to the zones that are left',
        3,
        [part('large', 3, ['a', 'b'], 0)],
        market(['large/a'], [WORKERS]),
        ['3 large b'],
        0,
      ],
      [
        'to go to the next machine type',
        3,
        [part('large', 3, ['a', 'b'], 0)],
        market(['large'], [WORKERS]),
        ['3 medium ab'],
        0,
      ],
      [
        'to go to the one after that',
        3,
        [part('medium', 3, ['a', 'b'], 0)],
        market(['large', 'medium'], [MEDIUM]),
        ['3 small ab'],
        0,
      ],
      [
        'so that what runs stays',
        5,
        [part('large', 5, ['a', 'b'], 3)],
        market(['large'], [WORKERS]),
        ['3 large ab', '2 medium ab'],
        0,
      ],
      ['so that what a cloud took away is passed over', 2, [], market([], [], ['large']), ['2 medium ab'], 0],
      [
        'not where a zone is left that was not hit: the cloud goes there',
        2,
        [],
        market([], [], ['large/a']),
        ['2 large ab'],
        0,
      ],
      ['not where nothing else is to be had', 2, [], market(['medium', 'small'], [], ['large']), ['2 large ab'], 0],
      ['not because of what runs', 3, [part('large', 3, ['a', 'b'], 2)], market([], [], ['large']), ['3 large ab'], 0],
      ['so that nothing is asked for that is known to be sold out', 2, [], market(['large']), ['2 medium ab'], 0],
      [
        'and stays so when the first choice is back',
        3,
        [part('medium', 3, ['a', 'b'], 3)],
        market(),
        ['3 medium ab'],
        0,
      ],
      [
        'to grow by the first choice again',
        5,
        [part('medium', 3, ['a', 'b'], 3)],
        market(),
        ['2 large ab', '3 medium ab'],
        0,
      ],
      ['to shrink from its last choice up', 2, [part('large', 2), part('medium', 3)], market(), ['2 large ab'], 0],
      ['to shrink to nothing', 0, [part('medium', 3)], market(), ['0 large ab'], 0],
      [
        'to wait where it was when nothing is left',
        3,
        [part('medium', 3, ['a', 'b'], 1)],
        market(['large', 'medium', 'small'], [MEDIUM]),
        ['3 medium ab'],
        2,
      ],
      [
        'to wait for all it grows by when nothing is left',
        4,
        [part('large', 2, ['a', 'b'], 2)],
        market(['large', 'medium', 'small']),
        ['4 large ab'],
        2,
      ],
      [
        'to wait while nobody can see what runs',
        5,
        [part('large', 5)],
        market(['large'], [WORKERS]),
        ['5 large ab'],
        0,
      ],
      [
        'anew when a choice is taken off the list',
        3,
        [{ ...part('medium', 3), machineType: 'gone' }],
        market(),
        ['3 large ab'],
        0,
      ],
    ],
  )('%s', (_what, count, held, now, parts, lacking) => {
    const allocation = allocatePool(wish(count), held, now);
    expect(shape(allocation.parts)).toEqual(parts);
    expect(allocation.lacking).toBe(lacking);
  });

  it('have no zones in a region without zones', () => {
    const nowhere = wish(1, { zones: [] });
    const [only] = allocatePool(nowhere, [], market(['large'])).parts;
    expect(only).toMatchObject({ machineType: 'medium', zones: [], count: 1 });
    expect(only?.name).toBe(partName(nowhere, 'medium', []));
  });

  it('have names that every cloud accepts', () => {
    expect(partName(wish(0), 'large', ['a', 'b'])).toBe('workers');
    const long = wish(0, { name: 'name-of-15-char' });
    for (const type of ['medium', 'small']) {
      expect(partName(long, type, ['a', 'b'])).toMatch(/^[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])$/);
      expect(partName(wish(0), type, ['a', 'b'])).toBe(partName(wish(0), type, ['b', 'a']));
    }
  });
});

describe('allocate, after any events,', () => {
  it('requests the desired nodes, replaces no running one, and is idempotent', () => {
    const random = seeded(7);
    const pick = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
    for (let round = 0; round < 100; round++) {
      let held: HeldPart[] = [];
      for (let turn = 0; turn < 12; turn++) {
        const count = Math.floor(random() * 9);
        const gone = ['large', 'medium', 'small']
          .flatMap((type) => ['a', 'b'].map((zone) => `${type}/${zone}`))
          .filter(() => random() < 0.4);
        const seen = held.map((one) => ({
          ...one,
          running: random() < 0.2 ? undefined : Math.floor(random() * (one.count + 1)),
        }));
        const now = market(gone, random() < 0.7 ? seen.map(({ name }) => name) : [pick([WORKERS, MEDIUM])]);
        const { parts, lacking } = allocatePool(wish(count), seen, now);
        expect(parts.reduce((total, one) => total + one.count, 0)).toBe(count);
        expect(lacking).toBeLessThanOrEqual(count);
        const before = seen.reduce((total, one) => total + one.count, 0);
        for (const one of seen) {
          const after = parts.find(({ name }) => name === one.name)?.count ?? 0;
          if (count >= before) expect(after).toBeGreaterThanOrEqual(one.running ?? one.count);
        }
        const asked = parts.map((one) => ({ ...one, running: seen.find(({ name }) => name === one.name)?.running }));
        if (lacking === 0) {
          const calm = market(gone);
          expect(allocatePool(wish(count), asked, calm)).toEqual({ parts, lacking: 0 });
        } else {
          expect(allocatePool(wish(count), asked, now).parts).toEqual(parts);
        }
        held = [...parts];
      }
    }
  });
});

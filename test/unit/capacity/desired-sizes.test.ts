import { readFile } from 'node:fs/promises';
import { describe, expect, it, test } from 'vitest';
import type { DesiredPool, SizedBy } from '../../../operator/api/pools.ts';
import {
  DECIDES,
  type Decided,
  desiredSizes,
  HOLDS,
  type Holds,
  presentSize,
  type Say,
} from '../../../operator/capacity/desired-sizes.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';

const profile = buildCloudProfile({
  metadata: { name: 'cloud' },
  spec: { machineTypes: [], regions: [{ name: 'here' }], defaults: { machineType: 'm' } },
});
const RANGE = [{ name: 'a', minimum: 1, maximum: 8 }];
const COPPICE = [{ ...RANGE[0], autoscale: 'Coppice' }];
const cluster = (spec: object) =>
  buildWorkerCluster({ metadata: { name: 'c' }, spec: { cloudProvider: 'cloud', ...spec } });
const decided = (count: number): Decided => new Map([['a', { count, by: 'Coppice', why: 'pods wait' }]]);

const sizeOf = (spec: object, known: Decided, has?: number): DesiredPool =>
  desiredSizes({ cluster: cluster(spec), profile, decided: known, has: () => has })[0]!;

describe('the first decider of a size with an answer', () => {
  const cases: [Say, string, object, Decided, number | undefined, number, SizedBy][] = [
    ['person', 'a number that somebody wrote', { dataPlaneNodes: 4, pools: RANGE }, 'none', undefined, 4, 'person'],
    [
      'person',
      'also where something else was decided',
      { dataPlaneNodes: 4, pools: RANGE },
      decided(7),
      6,
      4,
      'person',
    ],
    ['person', 'also where that is unknown', { dataPlaneNodes: 4, pools: RANGE }, 'unknown', 7, 4, 'person'],
    ['person', 'of a cluster without pools', { dataPlaneNodes: 4 }, 'unknown', 7, 4, 'person'],
    ['decider', 'what is stored', { pools: COPPICE }, decided(5), 2, 5, 'decider'],
    ['decider', 'no less than the minimum', { pools: COPPICE }, decided(0), 2, 1, 'decider'],
    ['decider', 'no more than the maximum', { pools: COPPICE }, decided(50), 2, 8, 'decider'],
    ['decider', 'unknown: what it has', { pools: COPPICE }, 'unknown', 5, 5, 'kept'],
    [
      'decider',
      'unknown: within what people allow now',
      { pools: [{ ...COPPICE[0], maximum: 3 }] },
      'unknown',
      5,
      3,
      'kept',
    ],
    [
      'person',
      'as before without a word on autoscale',
      { dataPlaneNodes: 4, pools: RANGE },
      decided(7),
      6,
      4,
      'person',
    ],
    ['floor', 'more than was decided', { dataPlaneNodes: 4, pools: COPPICE }, decided(2), 2, 4, 'floor'],
    ['floor', 'no more than the maximum', { dataPlaneNodes: 40, pools: COPPICE }, 'none', 2, 8, 'floor'],
    ['floor', 'also while the record cannot be read', { dataPlaneNodes: 4, pools: COPPICE }, 'unknown', 2, 4, 'floor'],
    ['decider', 'more than the floor', { dataPlaneNodes: 4, pools: COPPICE }, decided(6), 2, 6, 'decider'],
    ['decider', 'as many as the floor', { dataPlaneNodes: 4, pools: COPPICE }, decided(4), 2, 4, 'decider'],
    ['minimum', 'a record of a pool that is not Coppice’s to size', { pools: RANGE }, decided(5), 5, 1, 'minimum'],
    [
      'minimum',
      'a record of a pool that nobody is to size any more',
      { pools: [{ ...RANGE[0], autoscale: 'None' }] },
      decided(5),
      5,
      1,
      'minimum',
    ],
    ['minimum', 'nobody said anything', { pools: RANGE }, 'none', 5, 1, 'minimum'],
    ['minimum', 'a pool that is not stored', { pools: COPPICE }, new Map(), 5, 1, 'minimum'],
    ['minimum', 'unknown, of a pool that is new', { pools: COPPICE }, 'unknown', undefined, 1, 'minimum'],
    [
      'minimum',
      'a cluster that was taken over, without pools of ours',
      { adopt: { id: 'x' } },
      'none',
      undefined,
      0,
      'minimum',
    ],
  ];
  test.each(cases)('wins, %s: %s', (_who, _what, spec, known, has, count, sizedBy) => {
    expect(sizeOf(spec, known, has)).toMatchObject({ count, sizedBy });
  });

  it('wins in every tested row of the table', () =>
    expect(new Set(cases.map(([who]) => who))).toEqual(new Set(DECIDES.map(({ who }) => who))));
});

describe('a minimum for several pools', () => {
  const pools = [
    { name: 'a', minimum: 0, maximum: 3, autoscale: 'Coppice' },
    { name: 'b', minimum: 1, maximum: 9, autoscale: 'None' },
    { name: 'c', minimum: 0, maximum: 9, autoscale: 'Coppice' },
  ];
  const counts = (dataPlaneNodes: number, known: [string, number][] = []) =>
    desiredSizes({
      cluster: cluster({ dataPlaneNodes, pools }),
      profile,
      decided: new Map(known.map(([name, count]) => [name, { count, by: 'Coppice', why: 'pods wait' }])),
    }).map(({ count, sizedBy }) => `${count} ${sizedBy}`);

  it('is met by all of them together, in order, each up to its maximum', () => {
    expect(counts(6)).toEqual(['3 floor', '3 person', '0 minimum']);
    expect(counts(14)).toEqual(['3 floor', '9 person', '2 floor']);
  });

  it('raises nothing where enough was decided in any pool', () => {
    expect(counts(6, [['c', 5]])).toEqual(
      ['3 floor', '3 person', '5 decider'].map((one) => one.replace('3 floor', '0 minimum')),
    );
  });
});

describe('the holds on a pool, in order,', () => {
  const five = sizeOf({ pools: COPPICE }, decided(5));
  const cases: [Say, string, Holds, number, Say[]][] = [
    ['schedule', 'no nodes until it wakes', { asleep: 'schedule' }, 0, ['schedule']],
    ['sleep', 'no nodes until it wakes', { asleep: 'sleep' }, 0, ['sleep']],
    ['policy', 'no nodes until it wakes', { asleep: 'policy' }, 0, ['policy']],
    ['quota', 'what it has', { refused: () => 3 }, 3, ['quota']],
    ['quota', 'less than it has, if less was decided', { refused: () => 7 }, 5, ['quota']],
    ['quota', 'nothing, if it is new', { refused: () => undefined }, 0, ['quota']],
    ['sold out', 'what could be had', { lacking: () => 2 }, 3, ['sold out']],
    ['sold out', 'all, if all could be had', { lacking: () => 0 }, 5, []],
    ['roll-out', 'as many as decided', { rolling: true }, 5, ['roll-out']],
    ['sold out', 'of what quotas left', { refused: () => 3, lacking: () => 2 }, 1, ['quota', 'sold out']],
    [
      'sleep',
      'whatever else',
      { asleep: 'sleep', lacking: () => 2, rolling: true },
      0,
      ['sleep', 'sold out', 'roll-out'],
    ],
  ];
  test.each(cases)('apply, %s: %s', (_who, _what, holds, present, heldBy) => {
    expect(presentSize(five, holds)).toEqual({ present, heldBy });
    // Nothing of it changes what was decided.
    expect(five.count).toBe(5);
  });

  it('are tested in every row of the table', () =>
    expect(new Set(cases.map(([who]) => who))).toEqual(new Set(HOLDS.map(({ who }) => who))));
});

it('docs/concepts/sizes.md shows the tables of deciders and holds', async () => {
  const page = await readFile(new URL('../../../docs/concepts/sizes.md', import.meta.url), 'utf8');
  const row = ({ who, says, because }: (typeof DECIDES)[number] | (typeof HOLDS)[number]) =>
    `| ${who} | ${says} | ${because} |`;
  expect(page).toContain(DECIDES.map(row).join('\n'));
  expect(page).toContain(HOLDS.map(row).join('\n'));
});

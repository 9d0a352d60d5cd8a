import { readFile } from 'node:fs/promises';
import { describe, expect, it, test } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import type { DesiredPool, SizedBy } from '../../../operator/api/pools.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import {
  DECIDES,
  type Decided,
  desiredSizes,
  HOLDS,
  type Holds,
  presentSize,
  type Say,
} from '../../../operator/capacity/desired-sizes.ts';

const profile = {
  metadata: { name: 'cloud' },
  spec: { machineTypes: [], regions: [{ name: 'here' }], defaults: { machineType: 'm' } },
} as unknown as CloudProfile;
const RANGE = [{ name: 'a', minimum: 1, maximum: 8 }];
const cluster = (spec: object) =>
  ({ metadata: { name: 'c' }, spec: { cloudProvider: 'cloud', ...spec } }) as WorkerCluster;
const decided = (count: number): Decided => new Map([['a', { count, by: 'Coppice', why: 'pods wait' }]]);

const sizeOf = (spec: object, known: Decided, has?: number): DesiredPool =>
  desiredSizes({ cluster: cluster(spec), profile, decided: known, has: () => has })[0]!;

describe('who decides: the first who says anything', () => {
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
    ['decider', 'what is on record', { pools: RANGE }, decided(5), 2, 5, 'decider'],
    ['decider', 'no less than the minimum', { pools: RANGE }, decided(0), 2, 1, 'decider'],
    ['decider', 'no more than the maximum', { pools: RANGE }, decided(50), 2, 8, 'decider'],
    ['decider', 'unknown: what it has', { pools: RANGE }, 'unknown', 5, 5, 'kept'],
    [
      'decider',
      'unknown: within what people allow now',
      { pools: [{ ...RANGE[0], maximum: 3 }] },
      'unknown',
      5,
      3,
      'kept',
    ],
    ['minimum', 'nobody said anything', { pools: RANGE }, 'none', 5, 1, 'minimum'],
    ['minimum', 'a pool that is not on record', { pools: RANGE }, new Map(), 5, 1, 'minimum'],
    ['minimum', 'unknown, of a pool that is new', { pools: RANGE }, 'unknown', undefined, 1, 'minimum'],
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
  test.each(cases)('%s: %s', (_who, _what, spec, known, has, count, sizedBy) => {
    expect(sizeOf(spec, known, has)).toMatchObject({ count, sizedBy });
  });

  it('every row is tried', () =>
    expect(new Set(cases.map(([who]) => who))).toEqual(new Set(DECIDES.map(({ who }) => who))));
});

describe('what holds a pool back, all in turn', () => {
  const five = sizeOf({ pools: RANGE }, decided(5));
  const cases: [Say, string, Holds, number, Say[]][] = [
    ['schedule', 'no nodes until it wakes', { asleep: 'schedule' }, 0, ['schedule']],
    ['sleep', 'no nodes until it wakes', { asleep: 'sleep' }, 0, ['sleep']],
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
  test.each(cases)('%s: %s', (_who, _what, holds, present, heldBy) => {
    expect(presentSize(five, holds)).toEqual({ present, heldBy });
    // Nothing of it changes what was decided.
    expect(five.count).toBe(5);
  });

  it('every row is tried', () =>
    expect(new Set(cases.map(([who]) => who))).toEqual(new Set(HOLDS.map(({ who }) => who))));
});

it('docs/architecture.md shows the table as it is', async () => {
  const page = await readFile(new URL('../../../docs/architecture.md', import.meta.url), 'utf8');
  const row = ({ who, says, because }: (typeof DECIDES)[number] | (typeof HOLDS)[number]) =>
    `| ${who} | ${says} | ${because} |`;
  expect(page).toContain(DECIDES.map(row).join('\n'));
  expect(page).toContain(HOLDS.map(row).join('\n'));
});

import { describe, expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { SeedSpec } from '../../../operator/api/seed.ts';
import {
  backupPolicy,
  planBackups,
  prefixOf,
  requestedAt,
  snapshotName,
  snapshotsIn,
} from '../../../operator/controllers/backup/plan.ts';
import { buildSeed } from '../../kit/builders/objects.ts';

const HOUR = 3600_000;
const T0 = Date.parse('2026-11-21T12:00:00Z');
const at = (hours: number) => new Date(T0 + hours * HOUR);
const taken = (...hours: number[]) =>
  snapshotsIn(hours.map((hour, index) => ({ key: `p/${snapshotName(index + 1, at(hour))}`, size: 512 })));
/** When all snapshots have been taken. */
const LATER = at(1000);
const daily = { periodMs: 24 * HOUR, keep: 3 };
const seed = (backup: SeedSpec['backup']) => buildSeed({ spec: { backup } });

describe('the due time of the next snapshot', () => {
  it('is now without a snapshot', () => {
    expect(+planBackups([], daily, undefined, LATER).due).toBe(0);
  });
  it('is one period after the start of the newest', () => {
    expect(planBackups(taken(0, 5), daily, undefined, LATER).due).toEqual(at(29));
  });
  it('is now for a request newer than the newest snapshot', () => {
    expect(planBackups(taken(0), daily, at(2), LATER).due).toEqual(at(2));
  });
  it('ignores a request that has been met', () => {
    expect(planBackups(taken(0, 2), daily, at(2), LATER).due).toEqual(at(26));
    expect(planBackups(taken(0, 3), daily, at(2), LATER).due).toEqual(at(27));
  });
  it('is not delayed by a request later than the regular time', () => {
    expect(planBackups(taken(0), daily, at(100), LATER).due).toEqual(at(24));
  });
});

describe('a snapshot with a time in the future', () => {
  const now = at(10);
  it('does not suspend backups until that time', () => {
    expect(planBackups(taken(0, 1000), daily, undefined, now).due).toEqual(at(24));
    expect(+planBackups(taken(1000), daily, undefined, now).due).toBe(0);
  });
  it('is deleted first, and the newest stays', () => {
    const gone = planBackups([...taken(0, 5, 1000), ...taken(10)], daily, undefined, now).remove;
    expect(gone.map(({ takenAt }) => takenAt)).toEqual([at(1000)]);
    const only = planBackups([...taken(1000), ...taken(10)], { ...daily, keep: 1 }, undefined, now).remove;
    expect(only.map(({ takenAt }) => takenAt)).toEqual([at(1000)]);
  });
  it('counts when clocks differ by seconds only', () => {
    const soon = planBackups(taken(10), daily, undefined, new Date(+now - 5000));
    expect(soon.due).toEqual(at(34));
  });
});

describe('the snapshots to delete', () => {
  it('are none up to the limit', () => {
    expect(planBackups(taken(0, 1, 2), daily, undefined, LATER).remove).toEqual([]);
  });
  it('are the oldest, in any order of the list', () => {
    const listed = [...taken(0, 1, 2, 3, 4)].reverse().map(({ key, size }) => ({ key, size }));
    const gone = planBackups(snapshotsIn(listed), daily, undefined, LATER).remove;
    expect(gone.map(({ takenAt }) => takenAt)).toEqual([at(0), at(1)]);
  });
  it('never include the newest', () => {
    expect(
      planBackups(taken(0, 1), { ...daily, keep: 1 }, undefined, LATER).remove.map(({ revision }) => revision),
    ).toEqual([1]);
  });
});

describe('snapshot names', () => {
  it('contain revision and time, and can be parsed', () => {
    const name = snapshotName(2088, new Date(1518427675_900));
    expect(name).toBe('Full-00000000-00002088-1518427675');
    expect(snapshotsIn([{ key: `a/b/${name}`, size: 7 }])).toEqual([
      { name, key: `a/b/${name}`, size: 7, revision: 2088, takenAt: new Date(1518427675_000) },
    ]);
  });
  it('permit revisions of more than eight digits', () => {
    const name = snapshotName(12_345_678_901, at(0));
    expect(snapshotsIn([{ key: name, size: 1 }])[0]?.revision).toBe(12_345_678_901);
  });
  it('exclude other objects of the bucket', () => {
    expect(
      snapshotsIn([
        { key: 'a/b/notes.txt', size: 1 },
        { key: 'deleted/a/b/1', size: 0 },
      ]),
    ).toEqual([]);
  });
  it("start with the shoot's UID, so that two shoots of one name never collide", () => {
    const of = (uid: string) => prefixOf({ metadata: { name: 'blue', namespace: 'shop', uid } });
    expect(of('u-1')).toBe('shoot--shop--blue/u-1/');
    expect(of('u-10').startsWith(of('u-1'))).toBe(false);
  });
});

describe('the backup settings of a seed', () => {
  it('are empty without spec.backup', () => {
    expect(backupPolicy(seed(undefined))).toBeUndefined();
  });
  it("default to Gardener's", () => {
    expect(backupPolicy(seed({ provider: 'aws' }))).toEqual({ periodMs: 24 * HOUR, keep: 7 });
  });
  it('are read from spec.backup', () => {
    const policy = backupPolicy(seed({ provider: 'aws', fullSnapshotPeriod: '1h30m', maxBackupsLimitBasedGC: 2 }));
    expect(policy).toEqual({ periodMs: 1.5 * HOUR, keep: 2 });
  });
  it('never permit unlimited snapshots', () => {
    expect(backupPolicy(seed({ provider: 'aws', fullSnapshotPeriod: '0s' }))?.periodMs).toBe(60_000);
  });
});

it('ignore a request without a valid time', () => {
  const asked = (text?: string) =>
    requestedAt({ metadata: { name: 'a', ...(text && { annotations: { [ANNOTATIONS.backupRequestedAt]: text } }) } });
  expect(asked('2026-11-21T12:00:00Z')).toEqual(at(0));
  expect(asked('soon')).toBeUndefined();
  expect(asked()).toBeUndefined();
});

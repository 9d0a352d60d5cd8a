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

describe('when the next snapshot is due', () => {
  it('is at once when there is none', () => {
    expect(+planBackups([], daily, undefined, LATER).due).toBe(0);
  });
  it('is a period after the beginning of the newest', () => {
    expect(planBackups(taken(0, 5), daily, undefined, LATER).due).toEqual(at(29));
  });
  it('is when somebody asked for it, if nothing newer is there', () => {
    expect(planBackups(taken(0), daily, at(2), LATER).due).toEqual(at(2));
  });
  it('forgets a request that has been met, so that it is met once', () => {
    expect(planBackups(taken(0, 2), daily, at(2), LATER).due).toEqual(at(26));
    expect(planBackups(taken(0, 3), daily, at(2), LATER).due).toEqual(at(27));
  });
  it('does not wait for a request that lies behind the regular time', () => {
    expect(planBackups(taken(0), daily, at(100), LATER).due).toEqual(at(24));
  });
});

describe('a snapshot of a clock that was ahead', () => {
  const now = at(10);
  it('does not stop backups until its time comes', () => {
    expect(planBackups(taken(0, 1000), daily, undefined, now).due).toEqual(at(24));
    expect(+planBackups(taken(1000), daily, undefined, now).due).toBe(0);
  });
  it('goes first, and the newest stays', () => {
    const gone = planBackups([...taken(0, 5, 1000), ...taken(10)], daily, undefined, now).remove;
    expect(gone.map(({ takenAt }) => takenAt)).toEqual([at(1000)]);
    const only = planBackups([...taken(1000), ...taken(10)], { ...daily, keep: 1 }, undefined, now).remove;
    expect(only.map(({ takenAt }) => takenAt)).toEqual([at(1000)]);
  });
  it('counts where clocks differ by seconds only', () => {
    const soon = planBackups(taken(10), daily, undefined, new Date(+now - 5000));
    expect(soon.due).toEqual(at(34));
  });
});

describe('which snapshots go', () => {
  it('is none while there are no more than are kept', () => {
    expect(planBackups(taken(0, 1, 2), daily, undefined, LATER).remove).toEqual([]);
  });
  it('is the oldest ones, whatever the order in which they are listed', () => {
    const listed = [...taken(0, 1, 2, 3, 4)].reverse().map(({ key, size }) => ({ key, size }));
    const gone = planBackups(snapshotsIn(listed), daily, undefined, LATER).remove;
    expect(gone.map(({ takenAt }) => takenAt)).toEqual([at(0), at(1)]);
  });
  it('is never the newest', () => {
    expect(
      planBackups(taken(0, 1), { ...daily, keep: 1 }, undefined, LATER).remove.map(({ revision }) => revision),
    ).toEqual([1]);
  });
});

describe('names of snapshots', () => {
  it('say revision and time, and are read back', () => {
    const name = snapshotName(2088, new Date(1518427675_900));
    expect(name).toBe('Full-00000000-00002088-1518427675');
    expect(snapshotsIn([{ key: `a/b/${name}`, size: 7 }])).toEqual([
      { name, key: `a/b/${name}`, size: 7, revision: 2088, takenAt: new Date(1518427675_000) },
    ]);
  });
  it('hold revisions of more than eight digits', () => {
    const name = snapshotName(12_345_678_901, at(0));
    expect(snapshotsIn([{ key: name, size: 1 }])[0]?.revision).toBe(12_345_678_901);
  });
  it('leave out what is no snapshot', () => {
    expect(
      snapshotsIn([
        { key: 'a/b/notes.txt', size: 1 },
        { key: 'deleted/a/b/1', size: 0 },
      ]),
    ).toEqual([]);
  });
  it('lie under the UID of the shoot, so that two of one name never meet', () => {
    const of = (uid: string) => prefixOf({ metadata: { name: 'blue', namespace: 'shop', uid } });
    expect(of('u-1')).toBe('shoot--shop--blue/u-1/');
    expect(of('u-10').startsWith(of('u-1'))).toBe(false);
  });
});

describe('what a seed says of snapshots', () => {
  it('is nothing without spec.backup', () => {
    expect(backupPolicy(seed(undefined))).toBeUndefined();
  });
  it("has Gardener's defaults", () => {
    expect(backupPolicy(seed({ provider: 'aws' }))).toEqual({ periodMs: 24 * HOUR, keep: 7 });
  });
  it('is taken up', () => {
    const policy = backupPolicy(seed({ provider: 'aws', fullSnapshotPeriod: '1h30m', maxBackupsLimitBasedGC: 2 }));
    expect(policy).toEqual({ periodMs: 1.5 * HOUR, keep: 2 });
  });
  it('never means a snapshot without end', () => {
    expect(backupPolicy(seed({ provider: 'aws', fullSnapshotPeriod: '0s' }))?.periodMs).toBe(60_000);
  });
});

it('a request that is no time is none', () => {
  const asked = (text?: string) =>
    requestedAt({ metadata: { name: 'a', ...(text && { annotations: { [ANNOTATIONS.backupRequestedAt]: text } }) } });
  expect(asked('2026-11-21T12:00:00Z')).toEqual(at(0));
  expect(asked('soon')).toBeUndefined();
  expect(asked()).toBeUndefined();
});

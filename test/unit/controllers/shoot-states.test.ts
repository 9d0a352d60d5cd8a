import { expect, it } from 'vitest';
import { ANNOTATIONS } from '../../../operator/api/group.ts';
import type { Shoot } from '../../../operator/api/shoot.ts';
import { ShootStates } from '../../../operator/controllers/shoot/shoot-states.ts';

const KEY = 'default/demo';
const NEVER = new AbortController().signal;

const shootWith = (metadata: Partial<Shoot['metadata']>): Shoot =>
  ({ metadata: { name: 'demo', namespace: 'default', uid: 'one', generation: 1, ...metadata } }) as Shoot;

/** Whether an operation that waits is stopped when the shoot becomes `after`. */
async function isStoppedBy(after: Shoot | undefined): Promise<boolean> {
  const states = new ShootStates();
  let stopped = false;
  await states.run(KEY, shootWith({}), NEVER, async (_, signal) => {
    states.shootChanged(KEY, after);
    stopped = signal.aborted;
  });
  return stopped;
}

it.each([
  ['is ignored from now on', shootWith({ annotations: { [ANNOTATIONS.ignore]: 'true' } }), true],
  ['has another spec', shootWith({ generation: 2 }), true],
  ['is to be deleted', shootWith({ deletionTimestamp: '2026-11-29T00:00:00Z' }), true],
  ['is gone', undefined, true],
  ['has another annotation', shootWith({ annotations: { note: 'true' } }), false],
])('a shoot that %s: a running operation is stopped: %#', async (_, after, stopped) => {
  expect(await isStoppedBy(after)).toBe(stopped);
});

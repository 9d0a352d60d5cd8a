import { expect, it } from 'vitest';
import type { Said } from '../../../operator/api/reasons.ts';
import { say, withConditions } from '../../../operator/controllers/conditions.ts';

const NOW = new Date(0);

it('say compiles only with a reason of its condition, and withConditions only with conditions of its kind', () => {
  const full = say('Ready', false, 'SeedFull', 'pod kube-apiserver-x cannot start: Unschedulable: 0/1 nodes');
  const conditions = withConditions<'Shoot'>([], [full], NOW);
  expect(conditions).toMatchObject([{ type: 'Ready', status: 'False', reason: 'SeedFull' }]);
  // @ts-expect-error a pod's reason is not ours
  say('Ready', false, 'CrashLoopBackOff', 'x');
  // @ts-expect-error a reason of another condition
  say('KeysKept', false, 'SeedFull', 'x');
  // @ts-expect-error a Seed says nothing of pods
  withConditions<'Seed'>([], [full], NOW);
  // @ts-expect-error whose conditions they are must be said
  withConditions([], [full], NOW);
  // @ts-expect-error as it comes from a status, a reason is any text
  const read: Said<'Shoot'> = { type: 'Ready', status: 'False', reason: 'x' as string };
  expect(read.reason).toBe('x');
});

import { expect, it, vi } from 'vitest';
import type { Change } from '../../../../providers/cloud.ts';
import { apply } from '../../../../providers/pulumi/operations.ts';
import type { RecentPlans } from '../../../../providers/pulumi/recent-plans.ts';
import { newReport } from '../../../../providers/pulumi/run-events.ts';
import type { StackSession } from '../../../../providers/pulumi/stack-session.ts';

it.each([
  [true, ['preview', 'up']],
  [false, ['preview']],
])('a plan is applied only if permitted (%s), and otherwise adopts nothing', async (isAllowed, runs) => {
  const change: Change = { operation: 'create', resource: 'aws:lb/loadBalancer:LoadBalancer endpoint' };
  const record = { ...newReport(), changes: new Map([['urn', change]]), isChanging: true };
  const state = { version: 3, deployment: { resources: [{ urn: 'urn:pulumi:a::b::t::n', type: 't' }] } };
  const run = vi.fn(async (_command: string) => record);
  const session = { request: {}, run, readState: async () => state, readAndKeepState: async () => state };
  const asked: unknown[] = [];
  const allows = (planned: readonly Change[]) => {
    asked.push(planned);
    return isAllowed;
  };
  const done = await apply(session as unknown as StackSession, { refresh: true, allows }, {} as RecentPlans);
  expect([asked, run.mock.calls.map(([command]) => command)]).toEqual([[[change]], runs]);
  expect([done.changes, done.refused]).toEqual(isAllowed ? [[change], undefined] : [[], [change]]);
});

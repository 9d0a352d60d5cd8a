import { expect, it } from 'vitest';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { namespaceTask } from '../../../operator/controllers/shoot/tasks/namespace-task.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { MemoryApiServer } from '../../kit/memory-api-server.ts';

/** What is written, in order, when a shoot of this status is worked on. */
async function written(status: { seedName?: string } | undefined, refusal?: Error): Promise<string[]> {
  const writes: string[] = [];
  const namespaces = { synced: true, get: () => undefined, onAnyChange: () => () => {} };
  const op = partOf<Operation>({
    shoot: { metadata: { name: 'one', namespace: 'team' }, status },
    values: { namespace: 'shoot--team--one', shoot: { name: 'one', namespace: 'team' } },
    deps: { gardenID: 'ours' },
    seed: {
      name: 'local',
      namespaces,
      client: new MemoryApiServer(),
      applier: { apply: async ({ kind }: { kind: string }) => void writes.push(kind) },
    },
    provider: {},
    networkPolicies: [{ kind: 'NetworkPolicy' }],
    tell: async () => {
      // As long as a write takes.
      await new Promise(setImmediate);
      if (refusal) throw refusal;
      writes.push('status');
    },
  });
  await namespaceTask(op)
    .run(new AbortController().signal)
    .catch((error: Error) => writes.push(error.message));
  return writes;
}

it('the seed is recorded before anything is created in it', async () => {
  expect(await written(undefined)).toEqual(['status', 'Namespace', 'NetworkPolicy']);
  expect(await written({ seedName: 'local' })).toEqual(['Namespace', 'NetworkPolicy']);
});

it('nothing is created in a seed that could not be recorded', async () => {
  expect(await written(undefined, new Error('no answer'))).toEqual(['no answer']);
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { scaleIn, takeAway } from '../../../operator/controllers/shoot/machines/machine-removal.ts';
import { DRAINING_ANNOTATION, type PoolScaleIn } from '../../../operator/controllers/shoot/machines/scale-in.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import type { Machine } from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';

const plan = (pool: string): PoolScaleIn =>
  partOf<PoolScaleIn>({
    pool,
    victims: [{ name: `${pool}-1`, nodeName: `${pool}-1` } as Machine],
    remaining: 1,
  });

/** Machines whose nodes have gone, of which the cloud takes some time to let one go, and refuses another. */
function testbed() {
  const gone = Promise.withResolvers<void>();
  const removed: string[] = [];
  const op = partOf<Operation>({
    provider: {
      removeMachines: async (_: unknown, pool: string) => {
        if (pool === 'refused') throw new Error('the cloud is throttled');
        await gone.promise;
        removed.push(pool);
      },
    },
    context: () => ({}),
    shoot: {},
    state: { draining: new Map(), connection: { nodes: { get: () => undefined } } },
    deps: { recordEvent: () => {} },
  });
  return { op, gone, removed };
}

it('machine removal ends only when its work for other pools has ended, and then reports the failure', async () => {
  const { op, gone, removed } = testbed();
  let isOver = false;
  const taken = takeAway(op, [plan('refused'), plan('slow')], 'ScaledIn', new AbortController().signal)
    .catch((error: Error) => error.message)
    .finally(() => {
      isOver = true;
    });
  for (let turn = 0; turn < 5; turn++) await nextTurn();
  // Whoever looks next would count a machine that is about to go.
  expect(isOver).toBe(false);
  gone.resolve();
  expect(await taken).toBe('the cloud is throttled');
  expect(removed).toEqual(['slow']);
});

it('machine removal stops once it is no longer desired', async () => {
  const { op, gone, removed } = testbed();
  gone.resolve();
  const ended = AbortSignal.abort(new Error('the cluster is being changed'));
  await expect(takeAway(op, [plan('slow')], 'ScaledIn', ended)).rejects.toThrow('being changed');
  expect(removed).toEqual([]);
});

it('a drain notices a pod that ends before its eviction is answered', async () => {
  const { op, gone, removed } = testbed();
  gone.resolve();
  const pods = new Set([{ metadata: { name: 'web', namespace: 'shop', uid: 'web' }, spec: { containers: [] } }]);
  const listeners = new Set<() => void>();
  const node = {
    metadata: { name: 'slow-1', annotations: {} },
    spec: {},
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
  Object.assign(op, {
    notice: () => {},
    shoot: { spec: { provider: {} } },
    deps: { recordEvent: () => {}, now: () => new Date(0) },
  });
  Object.assign(op.state.connection!, {
    nodes: { get: () => node },
    podsOn: () => [...pods],
    pods: {
      onAnyChange: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    client: {
      mergePatch: async () => node,
      evict: async () => {
        pods.clear();
        for (const listener of listeners) listener();
        return { outcome: 'evicted' };
      },
    },
  });
  await takeAway(op, [plan('slow')], 'ScaledIn', new AbortController().signal);
  expect(removed).toEqual(['slow']);
  expect(listeners.size).toBe(0);
});

it('a kept node is uncordoned, except a control plane machine that another drain cordoned', async () => {
  const cordoned = (name: string, pool: string) => ({
    metadata: { name, labels: { [LABELS.pool]: pool }, annotations: { [DRAINING_ANNOTATION]: '1970-01-01T00:00:00Z' } },
    spec: { unschedulable: true },
  });
  const freed: string[] = [];
  const op = partOf<Operation>({
    provider: { listMachines: async () => [{ name: 'worker-1', nodeName: 'worker-1', pool: 'worker' }] },
    context: () => ({}),
    pools: [{ name: 'worker', count: 1 }],
    controlPlanePool: { name: 'own' },
    state: {
      draining: new Map([
        ['worker-1', 'pods leave worker-1'],
        ['own-1', 'pods leave own-1'],
      ]),
      connection: {
        nodes: { list: () => [cordoned('worker-1', 'worker'), cordoned('own-1', 'own')] },
        podsOn: () => [],
        client: { mergePatch: async (_resource: unknown, name: string) => void freed.push(name) },
      },
    },
  });
  await scaleIn(op, new AbortController().signal);
  expect(freed).toEqual(['worker-1']);
  expect([...op.state.draining.keys()]).toEqual(['own-1']);
});

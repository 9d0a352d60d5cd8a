import { expect, it } from 'vitest';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { tunnelTask } from '../../../operator/controllers/shoot/tasks/tunnel-task.ts';
import { Flow, type Task } from '../../../operator/flow/graph.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane } from '../shoot/values.ts';

const done = (id: string, run: Task['run'] = async () => {}): Task => ({ id, title: id, run });

it('tunnel agents restart for more API servers only once all of these serve', async () => {
  const applied: KubeObject[] = [];
  const outside = (members: number) => ({
    ...controlPlane(members),
    machinesOutside: true,
    endpoint: { host: '203.0.113.10', port: 6443 },
  });
  const op = partOf<Operation>({
    values: outside(1),
    state: {
      ...newShootState(),
      connection: { applyAll: async (objects: KubeObject[]) => void applied.push(...objects) },
    },
    pools: [pool()],
    shoot: { metadata: { name: 'demo', namespace: 'shop' }, spec: {} },
  });
  const agents = () => applied.filter(({ kind }) => kind === 'Deployment').map(({ spec }) => spec.template);
  const run = (ready: Task) => new Flow('reconcile', [done('access'), ready, tunnelTask(op)]).run({});

  await run(done('control-plane-ready'));
  expect(agents()).toHaveLength(1);

  // As etcd's members have joined: API servers are told of them, and are rolled.
  const rolled = Promise.withResolvers<void>();
  op.values = outside(3);
  const growing = run(done('control-plane-ready', () => rolled.promise));
  await new Promise((resolve) => setImmediate(resolve));
  expect(agents()).toHaveLength(1);
  rolled.resolve();
  await growing;
  expect(agents()).toHaveLength(2);
  expect(agents()[1]).not.toEqual(agents()[0]);

  await run(done('control-plane-ready'));
  expect(agents()).toHaveLength(2);
});

import { describe, expect, it } from 'vitest';
import type { LastOperation } from '../../../operator/api/meta.ts';
import type { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { accessTasks } from '../../../operator/controllers/shoot/tasks/access-tasks.ts';
import { machineTasks } from '../../../operator/controllers/shoot/tasks/machine-tasks.ts';
import { systemComponentsTask } from '../../../operator/controllers/shoot/tasks/system-components-tasks.ts';
import { Flow, type Task } from '../../../operator/flow/graph.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, pkiOf } from '../shoot/values.ts';

const values = controlPlane();
const pki = await pkiOf(values);

/** A shoot whose API server takes every request and answers none of them; `made`: pools whose machines were asked for. */
function silent(lastOperation: Partial<LastOperation> | undefined) {
  const made: string[] = [];
  const state = {
    ...newShootState(),
    connection: { client: { create: async () => {} }, applyAll: () => new Promise<void>(() => {}) },
  };
  const op = partOf<Operation>({
    values,
    pki,
    state,
    names: [],
    pools: [pool()],
    shoot: { metadata: { name: 'demo', namespace: 'shop' }, spec: {}, status: lastOperation && { lastOperation } },
    provider: { reconcilePool: async (_: unknown, { name }: { name: string }) => void made.push(name) },
    context: () => ({}),
  });
  return { op, made };
}
const done = (id: string): Task => ({ id, title: id, run: async () => {} });
const machinesOf = (op: Operation) => machineTasks(op).filter(({ id }) => id === 'machines');
/** Runs until nothing goes on any more but what waits for the API server. */
async function run(tasks: Task[]): Promise<void> {
  const over = new AbortController();
  void new Flow('reconcile', tasks).run({ signal: over.signal });
  await new Promise((resolve) => setImmediate(resolve));
  over.abort();
}

const SERVED: [string, Partial<LastOperation>][] = [
  ['was made', { type: 'Create', state: 'Succeeded' }],
  ['is being changed', { type: 'Reconcile', state: 'Processing' }],
  ['could not be changed', { type: 'Reconcile', state: 'Error' }],
];

it.each(SERVED)("machines of a cluster that %s are created without waiting for the admin's rights", async (_, last) => {
  const { op, made } = silent(last);
  await run([done('api-server-serves'), ...accessTasks(op), ...machinesOf(op)]);
  expect(made).toEqual(['workers']);
});

it("machines of a cluster that has never served wait for the admin's rights", async () => {
  for (const last of [undefined, { type: 'Create', state: 'Error' }] as const) {
    const { op, made } = silent(last);
    await run([done('api-server-serves'), ...accessTasks(op), ...machinesOf(op)]);
    expect(made).toEqual([]);
  }
});

it.each([
  ['in the seed', undefined],
  ['on machines of its own', pool({ name: 'own' })],
])('nothing waits for it in a cluster that has served, whose control plane is %s', (_, controlPlanePool) => {
  const seed = { statefulSets: new Map(), deployments: new Map(), podsOf: () => [] };
  const op = partOf<Operation>({
    ...silent({ type: 'Reconcile', state: 'Succeeded' }).op,
    seed,
    controlPlanePool,
  });
  const tasks = strategyOf(op).reconcileTasks(op);
  const looks = tasks.filter(({ id, skip }) => id.startsWith('access') && !skip);
  expect(looks.map(({ id }) => id)).toEqual(['access-again']);
  expect(tasks.filter(({ after }) => after?.includes('access-again'))).toEqual([]);
});

describe('the role of the admin', () => {
  const rolesMadeFor = async (last: Partial<LastOperation> | undefined, refused?: KubeApiError) => {
    const { op } = silent(last);
    const asked: string[] = [];
    op.state.connection = partOf<ClusterConnection>({
      client: {
        create: async ({ metadata }: KubeObject) => {
          asked.push(`made ${metadata.name}`);
          if (refused) throw refused;
        },
      },
      applyAll: (objects: KubeObject[]) => {
        asked.push(...objects.map(({ metadata }) => `applied ${metadata.name}`));
        return new Promise<void>(() => {});
      },
    });
    await run([done('api-server-serves'), ...accessTasks(op)]);
    return asked;
  };

  it('is created by the operator, since a new API server creates it a second too late', async () =>
    expect(await rolesMadeFor(undefined)).toEqual(['made cluster-admin', 'applied coppice:admins']));
  it('stays as the API server created it, if that was earlier', async () => {
    const there = new KubeApiError('POST clusterroles', 409, { reason: 'AlreadyExists', message: 'it exists' });
    expect(await rolesMadeFor(undefined, there)).toEqual(['made cluster-admin', 'applied coppice:admins']);
  });
  it('is left alone in a cluster that has served', async () =>
    expect(await rolesMadeFor(SERVED[0]![1])).toEqual(['applied coppice:admins']));
});

const refusal = new KubeApiError('PATCH deployments/coredns', 500, {
  message: 'Internal error occurred: failed calling webhook "all.shop.example": no endpoints available',
});

/** A shoot whose webhook refuses Deployments, with the names of what was applied. */
function refusing(lastOperation: Partial<LastOperation>) {
  const { op, made } = silent(lastOperation);
  const applied: string[] = [];
  op.state.connection = partOf<ClusterConnection>({
    applyAll: async (objects: KubeObject[]) => {
      for (const { kind, metadata } of objects) {
        if (kind === 'Deployment') throw refusal;
        applied.push(`${kind} ${metadata.name}`);
      }
    },
  });
  const provider = { ...op.provider, needsBootstrapToken: true };
  return { op: { ...op, provider } as Operation, made, applied };
}
const system = (op: Operation) => [done('access'), systemComponentsTask(op, () => []), ...machinesOf(op)];

it('machines of a cluster that has served are created although its policy rejects cluster DNS, which is reported', async () => {
  const { op, made, applied } = refusing({ type: 'Reconcile', state: 'Succeeded' });
  await new Flow('reconcile', system(op)).run({});
  expect(made).toEqual(['workers']);
  expect(op.state.systemRefused).toMatch(/^Deployment kube-system\/coredns: .*calling webhook/);
  // What comes after the refused one is applied all the same, and what was refused is tried again.
  expect(applied).toContain('Service kube-dns');
  expect(op.state.systemApplied).toBeUndefined();
});

it('machines of a cluster that has never served wait for its system components', async () => {
  const { op, made } = refusing({ type: 'Create', state: 'Processing' });
  await new Flow('reconcile', system(op)).run({}).catch(() => {});
  expect(made).toEqual([]);
});

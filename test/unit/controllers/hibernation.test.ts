import { expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { ANNOTATIONS, LABELS } from '../../../operator/api/group.ts';
import { isToSleep, type Shoot } from '../../../operator/api/shoot.ts';
import type { HibernationFacts } from '../../../operator/controllers/shoot/hosted/hibernation-status.ts';
import { sleepingStatus } from '../../../operator/controllers/shoot/hosted/hibernation-status.ts';
import {
  etcdSizeAwake,
  hibernationTasks,
  isAnythingUp,
  podsLeft,
} from '../../../operator/controllers/shoot/hosted/hibernation-tasks.ts';
import { hostedShootStatus } from '../../../operator/controllers/shoot/hosted/hosted-status.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { operationTypeOf } from '../../../operator/controllers/shoot/operation-type.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { Flow } from '../../../operator/flow/graph.ts';
import type { Secret, StatefulSet } from '../../../operator/kube/resources.ts';
import { issueShootPKI, planShootPKI } from '../../../operator/shoot/pki.ts';
import { pkiSecret } from '../../../operator/shoot/pki-secret.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { controlPlane } from '../shoot/values.ts';

const NS = 'shoot--shop--demo';
const NOW = new Date('2026-11-21T00:00:00Z');

/** What runs inside of the cluster, or asks its seed for nothing that matters here. */
const ELSEWHERE = ['namespace', 'services', 'dns-records', 'api-server-serves', 'machines', 'scale-in', 'roll'];

const PARAMETERS = { apiServerAddress: '10.0.0.1', etcdAddresses: [], services: '10.0.0.0/16' };
const KEYS = pkiSecret(
  controlPlane(),
  await issueShootPKI({}, planShootPKI({}, PARAMETERS, NOW), PARAMETERS, NOW),
) as Secret;

/** A seed with all of a control plane, in which whatever is asked for is so at once, and what was done there. */
class Testbed {
  readonly did: string[] = [];
  readonly objects = new Map<string, { kind: string; replicas: number; annotations: Record<string, string> }>([
    ['kube-controller-manager', { kind: 'Deployment', replicas: 1, annotations: {} }],
    ['kube-scheduler', { kind: 'Deployment', replicas: 1, annotations: {} }],
    ['kwok', { kind: 'Deployment', replicas: 1, annotations: {} }],
    ['kube-apiserver', { kind: 'Deployment', replicas: 3, annotations: {} }],
    ['etcd-main', { kind: 'StatefulSet', replicas: 3, annotations: {} }],
  ]);
  snapshotFails = false;
  /** Machines that the provider lists. */
  machines: string[] = [];
  readonly op: Operation;

  constructor() {
    const of = (kind: string) =>
      [...this.objects]
        .filter(([, one]) => one.kind === kind)
        .map(([name, { replicas, annotations }]) => ({
          metadata: { name, namespace: NS, annotations },
          spec: { replicas, selector: { matchLabels: { app: name } }, template: {} },
        }));
    const cache = (kind: string) => ({
      get: (key: string) => of(kind).find(({ metadata }) => `${NS}/${metadata.name}` === key),
      absorb: () => {},
    });
    this.op = partOf<Operation>({
      shoot: { metadata: { name: 'demo', namespace: 'shop' } },
      values: { namespace: NS },
      names: [],
      pools: [],
      state: newShootState(),
      provider: {
        rolledByCaller: true,
        listMachines: async () => this.machines.map((name) => ({ name, pool: 'default', phase: 'Running' })),
        removeMachines: async (_: object, pool: string, names: string[], left: number) => {
          this.did.push(`remove ${pool}: ${names.join()}, ${left} stay`);
          this.machines = [];
        },
      },
      context: () => ({}),
      deps: {
        backups: {
          takeLast: async () => {
            if (this.snapshotFails) throw new Error('the bucket does not answer');
            this.did.push('snapshot');
          },
        },
      },
      seed: {
        deployments: cache('Deployment'),
        // A seed has those of thousands of shoots: nobody goes through all.
        deploymentsOf: (key: string) => (key === 'shop/demo' ? of('Deployment') : []),
        statefulSets: cache('StatefulSet'),
        pods: { synced: true, onAnyChange: () => () => {} },
        podsOf: () =>
          [...this.objects].flatMap(([app, { replicas }]) =>
            Array.from({ length: replicas }, (_, index) => ({
              metadata: { name: `${app}-${index}`, labels: { app } },
              status: { phase: 'Running' },
            })),
          ),
        secrets: { get: () => ({ ...KEYS, metadata: { ...KEYS.metadata, resourceVersion: '1' } }) },
        client: {
          mergePatch: async (
            _: object,
            name: string,
            namespace: string,
            patch: { metadata?: { annotations: Record<string, string> }; spec: { replicas: number } },
          ) => {
            expect(namespace).toBe(NS);
            this.did.push(`${name} to ${patch.spec.replicas}`);
            Object.assign(this.objects.get(name)!, patch.spec, patch.metadata);
          },
        },
      },
    });
  }

  /** Runs the graph, and stops before a task as a killed operator would. @returns what was done, and the tasks that failed */
  async run(killedBefore = ''): Promise<string[]> {
    this.did.length = 0;
    const killed = new AbortController();
    const tasks = hibernationTasks(this.op).map((task) => ({
      ...task,
      run: async (signal: AbortSignal) => {
        if (task.id === killedBefore) {
          killed.abort(new Error('killed'));
          throw new Error('killed');
        }
        if (!ELSEWHERE.includes(task.id)) return task.run(signal);
        if (task.id === 'scale-in') this.did.push('machines go');
      },
    }));
    const { failures } = await new Flow('sleep', tasks).run({ signal: killed.signal });
    return failures.map(({ taskID }) => taskID);
  }
}

const ALL = [
  'machines go',
  'kube-controller-manager to 0',
  'kube-scheduler to 0',
  'kwok to 0',
  'kube-apiserver to 0',
  'snapshot',
  'etcd-main to 0',
];

it('a shoot falls asleep in order: machines, API server clients, API server, and after a last snapshot etcd', async () => {
  const testbed = new Testbed();
  expect(await testbed.run()).toEqual([]);
  expect(testbed.did).toEqual(ALL);
  expect(isAnythingUp(testbed.op)).toBe(false);
  expect(podsLeft(testbed.op)).toEqual([]);
});

it('a shoot that falls asleep closes its connection before the API server ends, so that no outage is reported', async () => {
  const testbed = new Testbed();
  const { state } = testbed.op;
  state.usable = { ok: true, message: 'works' };
  state.connection = partOf<typeof state.connection>({ stop: async () => void testbed.did.push('line closed') });
  await testbed.run();
  expect(testbed.did.indexOf('line closed')).toBe(testbed.did.indexOf('kube-apiserver to 0') - 1);
  expect(state.usable).toBeUndefined();
});

it('a sleeping shoot causes no write and no request', async () => {
  const testbed = new Testbed();
  await testbed.run();
  expect(await testbed.run()).toEqual([]);
  expect(testbed.did).toEqual([]);
});

it.each([
  ['clients-end', ALL.slice(0)],
  ['api-server-ends', ['machines go', ...ALL.slice(4)]],
  // Without an API server no machine is asked for.
  ['last-snapshot', ALL.slice(5)],
  ['etcd-ends', ALL.slice(5)],
])('an operator that is killed before %s goes on with the rest', async (task, rest) => {
  const testbed = new Testbed();
  await testbed.run(task);
  expect(await testbed.run()).toEqual([]);
  expect(testbed.did).toEqual(rest);
  expect(isAnythingUp(testbed.op)).toBe(false);
});

it('a shoot that falls asleep withdraws machines that never started, without a connection', async () => {
  const testbed = new Testbed();
  const withdrawn: string[][] = [];
  Object.assign(testbed.op, {
    pools: [{ name: 'default', count: 0 }],
    provider: {
      ...testbed.op.provider,
      withdrawMachines: async (_: object, pools: readonly { name: string }[]) =>
        void withdrawn.push(pools.map(({ name }) => name)),
    },
  });
  const machine = { metadata: { name: 'machine', labels: { [LABELS.pool]: 'default' } }, status: { phase: 'Pending' } };
  Object.assign(testbed.op.seed, { podsOf: () => [machine] });
  // Its API server was never started, or is gone already: the seed is full.
  testbed.objects.set('kube-apiserver', { kind: 'Deployment', replicas: 0, annotations: {} });
  const ids: string[] = [];
  const tasks = hibernationTasks(testbed.op).map((task) => ({
    ...task,
    run: async (signal: AbortSignal, acts: never) => {
      ids.push(task.id);
      if (task.id === 'withdraw-machines') await task.run(signal, acts);
    },
  }));
  const { failures } = await new Flow('sleep', tasks).run({ signal: new AbortController().signal });
  expect(failures).toEqual([]);
  expect(withdrawn).toEqual([['default']]);
  // All that needs the cluster is left out.
  for (const id of ['api-server-serves', 'scale-in', 'roll']) expect(ids).not.toContain(id);
});

it('a shoot that falls asleep keeps etcd until its last snapshot', async () => {
  const testbed = new Testbed();
  testbed.snapshotFails = true;
  expect(await testbed.run()).toEqual(['last-snapshot']);
  expect(testbed.did).not.toContain('etcd-main to 0');
  testbed.snapshotFails = false;
  expect(await testbed.run()).toEqual([]);
  expect(testbed.did).toEqual(['snapshot', 'etcd-main to 0']);
});

it('a sleeping shoot removes machines that came after the API server ended', async () => {
  const testbed = new Testbed();
  await testbed.run();
  testbed.machines = ['late-1', 'late-2'];
  await testbed.run();
  expect(testbed.did).toEqual(['remove default: late-1,late-2, 0 stay']);
});

it('a shoot wakes with its previous number of etcd members, whatever is requested meanwhile', async () => {
  const testbed = new Testbed();
  const live = () => testbed.op.seed.statefulSets.get(`${NS}/etcd-main`);
  expect(etcdSizeAwake(live())).toBe(3);
  await testbed.run();
  expect(live()?.spec.replicas).toBe(0);
  expect(live()?.metadata.annotations).toEqual({ [ANNOTATIONS.sizeAwake]: '3' });
  expect(etcdSizeAwake(live())).toBe(3);
  await testbed.run();
  expect(etcdSizeAwake(live())).toBe(3);
  expect(etcdSizeAwake(undefined)).toBeUndefined();
  expect(etcdSizeAwake({ metadata: { name: 'x' }, spec: { replicas: 0 } } as StatefulSet)).toBeUndefined();
});

const shootWith = (spec: object, status?: object): Shoot =>
  buildShoot({
    metadata: { name: 'demo', namespace: 'shop', generation: 2 },
    spec: { provider: { type: 'local', workers: [] }, ...spec },
    status,
  });
const operation = (type: string, state: string) => ({ lastOperation: { type, state } });

it.each([
  ['is made first', operation('Create', 'Processing'), false, 'Create'],
  ['sleeps once it was made', operation('Create', 'Succeeded'), true, 'Hibernate'],
  ['goes on falling asleep', operation('Hibernate', 'Error'), true, 'Hibernate'],
  ['falls asleep although it is waking', operation('Wake', 'Processing'), true, 'Hibernate'],
])('a shoot that is to sleep %s', (_, status, sleeps, type) => {
  const shoot = shootWith({ hibernation: { enabled: true } }, status);
  expect(isToSleep(shoot)).toBe(sleeps);
  expect(operationTypeOf({ shoot, sleeps })).toBe(type);
});

it('a shoot keeps running after an operator that ignored the hibernation field, until the field changes', () => {
  const spec = { hibernation: { enabled: true } };
  const status = (...unacted: string[]) => ({
    ...operation('Reconcile', 'Succeeded'),
    conditions: [
      { type: 'AllFieldsActedOn', message: `these fields are stored without effect yet: ${unacted.join(', ')}` },
    ],
  });
  const old = shootWith(spec, status('hibernation', 'maintenance'));
  expect(isToSleep(old)).toBe(false);
  // What is told of it next keeps it awake as well.
  const next = hostedShootStatus(partOf<Parameters<typeof hostedShootStatus>[0]>({ ...facts(), shoot: old }), NOW);
  expect(isToSleep(shootWith(spec, { ...status(), conditions: next.conditions }))).toBe(false);
  const changed = shootWith({ hibernation: { enabled: false } }, { ...status(), conditions: next.conditions });
  const after = hostedShootStatus(partOf<Parameters<typeof hostedShootStatus>[0]>({ ...facts(), shoot: changed }), NOW);
  expect(isToSleep(shootWith(spec, { ...status(), conditions: after.conditions }))).toBe(true);
});

it.each([
  ['Hibernate', 'Succeeded', 'Wake'],
  ['Hibernate', 'Processing', 'Wake'],
  ['Wake', 'Error', 'Wake'],
  ['Wake', 'Succeeded', 'Reconcile'],
])('after %s %s comes %s', (type, state, next) => {
  expect(operationTypeOf({ shoot: shootWith({}, operation(type, state)), sleeps: false })).toBe(next);
});

it("a control plane on the cluster's own machines does not sleep, since nothing could wake it", () => {
  const workers = [{ name: 'control-plane', controlPlane: {} }];
  const spec = { hibernation: { enabled: true }, provider: { type: 'local', workers } };
  expect(isToSleep(shootWith(spec, operation('Create', 'Succeeded')))).toBe(false);
});

const facts = (changes: Partial<HibernationFacts> = {}): HibernationFacts => ({
  shoot: shootWith({ hibernation: { enabled: true } }, { kubernetesVersion: '1.35.4' }),
  technicalID: NS,
  seedName: 'local',
  version: '1.36.3',
  endpoint: 'https://10.1.0.10:6443',
  pools: [],
  operation: undefined,
  errors: [],
  observedGeneration: 2,
  usable: undefined,
  inside: undefined,
  draining: [],
  left: [],
  isAnythingUp: false,
  isServing: false,
  ...changes,
});
const told = (status: ReturnType<typeof sleepingStatus>, type: string) => {
  const { status: is, reason } = findCondition(status.conditions, type) ?? {};
  return [is, reason];
};

it('a sleeping shoot reports that, and no failed part', () => {
  const status = sleepingStatus(facts(), NOW);
  expect(told(status, 'Hibernated')).toEqual(['True', 'NoControlPlane']);
  expect(told(status, 'APIServerAvailable')).toEqual(['False', 'Hibernated']);
  expect(told(status, 'Ready')).toEqual(['False', 'Hibernated']);
  for (const type of ['ControlPlaneHealthy', 'EveryNodeReady', 'SystemComponentsHealthy'])
    expect(findCondition(status.conditions, type)).toBeUndefined();
  expect(status).toMatchObject({
    hibernated: true,
    lastErrors: [],
    nodes: { desired: 0, current: 0, ready: 0 },
    controlPlane: { desired: 0, ready: 0 },
    advertisedAddresses: [{ url: 'https://10.1.0.10:6443' }],
    // A version that was asked for meanwhile has not run: after the next wake another minor would be skipped.
    kubernetesVersion: '1.35.4',
  });
});

it.each([
  ['what is left', { left: ['a', 'b', 'c', 'd'] }, 'the cluster falls asleep; pods are left: a, b, c and 1 more'],
  ['that parts are asked for yet', { isAnythingUp: true }, 'the cluster falls asleep'],
])('says of one that falls asleep %s', (_, changes, message) => {
  const status = sleepingStatus(facts(changes), NOW);
  expect(findCondition(status.conditions, 'Hibernated')).toMatchObject({ status: 'False', message });
  expect(status.hibernated).toBeUndefined();
  expect(told(status, 'Ready')).toEqual(['False', 'FallingAsleep']);
});

it.each([
  ['answers', { ok: true, message: 'works' }, ['True', 'AdminCanWrite']],
  ['does not answer, so that no machine can be drained', { ok: false, message: 'silent' }, ['False', 'NotReachable']],
  ['was not asked yet, since the operator starts', undefined, ['True', 'AdminCanWrite']],
])('says of one that falls asleep that its API server %s', (_, usable, is) => {
  const conditions = [{ type: 'APIServerAvailable', status: 'True', reason: 'AdminCanWrite', message: 'works' }];
  const shoot = shootWith({ hibernation: { enabled: true } }, { conditions });
  expect(told(sleepingStatus(facts({ shoot, usable, isServing: true }), NOW), 'APIServerAvailable')).toEqual(is);
});

it('a shoot without an answering API server reports its nodes as last seen', () => {
  const nodes = { desired: 0, current: 2, ready: 2 };
  const shoot = shootWith({ hibernation: { enabled: true } }, { nodes });
  expect(sleepingStatus(facts({ shoot, isServing: true, isAnythingUp: true }), NOW).nodes).toEqual(nodes);
  expect(sleepingStatus(facts({ shoot }), NOW).nodes).toEqual({ desired: 0, current: 0, ready: 0 });
});

it('a shoot reports what keeps it awake', () => {
  const errors = [{ taskID: 'last-snapshot', description: 'the bucket does not answer', codes: [] }];
  const status = sleepingStatus(facts({ isAnythingUp: true, errors }), NOW);
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({
    reason: 'OperationFailed',
    message: 'the bucket does not answer',
  });
});

it('a waking shoot reports that its API server starts, not that it does not answer', () => {
  const conditions = [{ type: 'APIServerAvailable', status: 'False', reason: 'Hibernated', message: 'sleeps' }];
  const lastOperation = { type: 'Wake', state: 'Processing' };
  const shoot = shootWith({}, { conditions, lastOperation });
  const parts = { etcd: undefined, apiServer: undefined, controllerManager: undefined, scheduler: undefined };
  const waking = { ...facts(), shoot, operation: lastOperation as HibernationFacts['operation'], ...parts };
  expect(told(hostedShootStatus(waking, NOW), 'APIServerAvailable')).toEqual(['False', 'Waking']);
});

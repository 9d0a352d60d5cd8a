import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { commonFacts } from '../../../operator/controllers/shoot/status/facts.ts';
import { shootStatusOf } from '../../../operator/controllers/shoot/status/status-of.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { OPERATION_LIMIT_MS } from '../../../operator/controllers/shoot/wiring.ts';
import { Flow } from '../../../operator/flow/graph.ts';
import type { ClustersWithoutControlPlane, Machine, Provider, ProviderContext } from '../../../providers/contract.ts';
import { buildShoot } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane } from '../shoot/values.ts';

/** An operation on a shoot of which the seed has these objects. */
function operation(
  isRecorded: boolean,
  inSeed: { etcd?: boolean; apiServer?: boolean; pods?: number } = {},
): Operation {
  const has = (wanted: string, is = false) => ({
    get: (key: string) => (is && key === `shoot--shop--demo/${wanted}` ? {} : undefined),
  });
  return partOf<Operation>({
    withoutControlPlane: isRecorded ? ({} as ClustersWithoutControlPlane) : undefined,
    values: controlPlane(),
    pools: [pool()],
    names: [],
    state: newShootState(),
    provider: {},
    shoot: { metadata: { name: 'demo', namespace: 'shop' }, spec: {} },
    seed: {
      statefulSets: has('etcd-main', inSeed.etcd),
      deployments: has('kube-apiserver', inSeed.apiServer),
      podsOf: (key: string) => (key === 'shop/demo' ? Array(inSeed.pods ?? 0).fill({}) : []),
    },
  });
}
const onMachines = (provider: Partial<Provider> = {}): Operation => ({
  ...operation(false),
  controlPlanePool: pool({ name: 'own' }),
  provider: provider as Provider,
  context: () => ({}) as ProviderContext,
});
const ids = (op: Operation) =>
  strategyOf(op)
    .reconcileTasks(op)
    .map(({ id }) => id);
const deletionIds = (op: Operation) =>
  strategyOf(op)
    .deletionTasks(op)
    .map(({ id }) => id);

describe('the fields that are acted on', () => {
  it.each([
    ['in an account of a cloud', true, undefined],
    ['in the seed', undefined, 'credentialsBindingName'],
  ])('depends on where the machines are: %s', (_where, inCloud, unacted) => {
    const deps = { now: () => new Date(0) };
    const op = partOf<Operation>({ ...operation(false), deps, provider: { inCloud }, seed: { name: 'local' } });
    const shoot = buildShoot({ metadata: { name: 'demo' }, spec: { credentialsBindingName: 'keys', provider: {} } });
    const seen = { controlPlane: { desired: 1, ready: 1 }, machines: [], readyMachines: [] };
    const { conditions } = shootStatusOf(commonFacts(op, shoot, undefined), seen, [], new Date(0));
    const said = findCondition(conditions, 'AllFieldsActedOn')?.message;
    expect(said).toEqual(unacted && expect.stringContaining(unacted));
  });
});

describe('the strategy of a shoot', () => {
  it('is a hosted control plane, or a record of machines where the profile says so', () => {
    expect(ids(operation(false))).toContain('api-server');
    expect(ids(operation(true))).toEqual(['namespace', 'certificates', 'kubeconfig', 'machines', 'machines-ready']);
  });

  it.each([
    ['etcd', { etcd: true }],
    ['the API server', { apiServer: true }],
    ['a pod on its way out', { pods: 1 }],
  ])('stays a control plane as long as there is %s, whatever the profile says by now', (_what, inSeed) => {
    expect(ids(operation(true, inSeed))).toContain('api-server');
    // Its processes are waited for, or a cluster would be gone that still runs.
    expect(deletionIds(operation(true, inSeed))).toContain('processes');
  });

  it('is SelfManaged when the shoot has a control plane pool', () => {
    const found = ids(onMachines());
    expect(found).toContain('control-plane-machines');
    expect(found).not.toContain('etcd');
    // Nobody is let in before it is noted that the cluster has begun.
    const access = strategyOf(onMachines())
      .reconcileTasks(onMachines())
      .find(({ id }) => id === 'access');
    expect(access?.after).toEqual(['initialised']);
  });

  const inSeed = { controlPlaneMachines: {} } as Partial<Provider>;
  const inCloud = { controlPlaneGroup: {} } as Partial<Provider>;

  it.each<[string, Partial<Provider>, string[]]>([
    [
      'in the seed',
      inSeed,
      [
        'services: Reserving addresses, 0.06 s of 720',
        'control-plane-machines: Making the machines of the control plane, 0.05 s',
        'api-server-serves: Waiting for kubeadm to start the control plane, 30 s of 1200',
        'control-plane-size: Scaling the control plane, 1 s of 1800',
        'control-plane-ready: Waiting for the control plane, 10 s of 300',
      ],
    ],
    [
      'in a cloud',
      inCloud,
      [
        'endpoint: Making the endpoint of the API server, 300 s of 2700',
        'control-plane-machines: Making the first machine of the control plane, 60 s of 1800',
        'api-server-serves: Waiting for kubeadm to start the control plane, 240 s of 1200',
        'control-plane-size: Scaling the control plane, 60 s of 7200',
        'control-plane-ready: Waiting for the control plane, 10 s of 600',
      ],
    ],
  ])('is one graph for machines %s, but for what people read and how long it takes', (_where, provider, seen) => {
    const seconds = (ms: number) => ms / 1000;
    const tasks = strategyOf(onMachines(provider)).reconcileTasks(onMachines(provider));
    expect(tasks.map(({ id, after = [] }) => [id, ...after].join(' < '))).toEqual([
      'namespace',
      `${seen[0]!.split(':')[0]} < namespace`,
      `certificates < ${seen[0]!.split(':')[0]}`,
      'control-plane-machines < certificates',
      'api-server-serves < control-plane-machines',
      'initialised < api-server-serves',
      'access < initialised',
      'access-again < access',
      'kubeconfig < access',
      'system-components < access',
      'control-plane-size < system-components',
      'withdraw-machines < namespace',
      'machines < access',
      'scale-in < machines',
      'roll < scale-in',
      'nodes-ready < machines',
      'system-ready < nodes-ready < system-components',
      'metrics-server < access < system-ready',
      'control-plane-ready < control-plane-size',
      'secrets-encryption < control-plane-ready',
    ]);
    const told = tasks.map(({ id, title, expectedMs = 0, timeoutMs }) => {
      const bound = timeoutMs === undefined ? '' : ` of ${seconds(timeoutMs)}`;
      return `${id}: ${title}, ${seconds(expectedMs)} s${bound}`;
    });
    expect(told).toEqual(expect.arrayContaining(seen));
  });

  it('requeues soon only where a lost machine causes no event', () => {
    const minutes = (op: Operation) => strategyOf(op).longestSleepMs / 60_000;
    expect([operation(false), operation(true), onMachines(inSeed), onMachines(inCloud)].map(minutes)).toEqual([
      720, 720, 720, 5,
    ]);
  });

  it('knows control plane machines too, wherever they are', async () => {
    const named = (name: string) => ({ name }) as Machine;
    const listMachines = async () => [named('worker')];
    const observe = async () => ({ asked: 1, machines: [named('own')], volumes: [] });
    const providers = [
      { listMachines, controlPlaneMachines: { observe } },
      { listMachines, controlPlaneGroup: { list: async () => [named('own')] } },
    ] as unknown as Partial<Provider>[];
    for (const provider of providers) {
      const op = onMachines(provider);
      expect(await strategyOf(op).machines(op)).toEqual([named('worker'), named('own')]);
    }
  });

  it("deletes all of a provider's remains, also where the provider makes no such machines any more", async () => {
    const gone: string[] = [];
    const deleteAll = async () => void gone.push('workers');
    const controlPlaneMachines = { delete: async (_ctx: unknown, name: string) => void gone.push(name) };
    for (const more of [{ controlPlaneMachines }, { controlPlaneGroup: {} }, {}]) {
      const op = onMachines(partOf<Partial<Provider>>({ deleteAll, ...more }));
      const machines = strategyOf(op)
        .deletionTasks(op)
        .find(({ id }) => id === 'machines');
      await machines!.run(new AbortController().signal);
    }
    expect(gone).toEqual(['workers', 'own', 'workers', 'workers']);
  });

  it('returns a valid task graph', () => {
    for (const op of [operation(true), operation(false), onMachines(), onMachines(inSeed), onMachines(inCloud)]) {
      expect(() => new Flow('make', strategyOf(op).reconcileTasks(op))).not.toThrow();
      expect(() => new Flow('delete', strategyOf(op).deletionTasks(op))).not.toThrow();
    }
  });

  it("has no task longer than the operation's limit", () => {
    const asleep = { ...operation(false), sleeps: true };
    for (const op of [operation(true), operation(false), asleep, onMachines(inSeed), onMachines(inCloud)]) {
      const tasks = [...strategyOf(op).reconcileTasks(op), ...strategyOf(op).deletionTasks(op)];
      const tooLong = tasks.filter(({ timeoutMs = 0 }) => timeoutMs >= OPERATION_LIMIT_MS).map(({ id }) => id);
      expect(tooLong).toEqual([]);
    }
  });
});

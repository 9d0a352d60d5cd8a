import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { ANNOTATIONS, LABELS, ROLES } from '../../../operator/api/group.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import type { KubeObject, Pod } from '../../../operator/kube/resources.ts';
import { kubeadmInit } from '../../../operator/shoot/kubeadm.ts';
import { issueShootPKI, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { planEncryption } from '../../../operator/shoot/secrets-encryption.ts';
import type {
  ControlPlaneBootstrap,
  ControlPlaneGroupBootstrap,
  Machine,
  Pool,
  ProviderContext,
} from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const values = controlPlane(3);
const NOTE = `${values.namespace}/control-plane-initialised`;
const parameters = { ...pkiParameters(values), selfHosted: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);

type Told = { count: number } & Partial<ControlPlaneBootstrap & ControlPlaneGroupBootstrap>;

const MACHINE = { [LABELS.role]: ROLES.controlPlaneMachine };
const nodeOf = (version: string) => ({
  metadata: { name: version, labels: { [LABELS.pool]: 'own' } },
  status: { nodeInfo: { kubeletVersion: `v${version}` } },
});
const isOutdated = (_ctx: unknown, { spec }: Pod) => spec.containers[0]?.image === 'old';

/** A control plane of three machines that may have begun, as a note in the seed says. */
function testbed(
  where: 'seed' | 'cloud',
  note?: Record<string, string>,
  {
    machines = ['node-a'],
    members = 3,
    pods = [] as string[],
    keys = pki,
    annotations = {},
    runs = undefined as string[] | undefined,
    hasServed = false,
  } = {},
) {
  const told: Told[] = [];
  const writes: KubeObject[] = [];
  const configMaps = new Map<string, KubeObject>();
  if (note) configMaps.set(NOTE, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'n' }, data: note });
  const reconcile = async (_ctx: unknown, { count }: Pool, bootstrap: object) =>
    void told.push({ count, ...bootstrap });
  const seen = machines.map((nodeName) => ({ nodeName, phase: 'Running' }) as Machine);
  const observe = async () => ({ asked: 0, machines: seen, volumes: [{ ordinal: 0, uid: 'disk-1' }] });
  const op = partOf<Operation>({
    values: { ...values, replicas: members },
    pki: keys,
    pools: [],
    names: [],
    state: { ...newShootState(), connection: runs && { nodes: { list: () => runs.map(nodeOf) } } },
    shoot: {
      metadata: { name: 'demo', namespace: 'shop', annotations },
      spec: {},
      status: { lastOperation: { type: hasServed ? 'Reconcile' : 'Create' } },
    },
    controlPlanePool: pool({ name: 'own', count: 3 }),
    provider:
      where === 'seed'
        ? { controlPlaneMachines: { observe, reconcile, isOutdated } }
        : { controlPlaneGroup: { observe, reconcile } },
    context: () => ({}) as ProviderContext,
    seed: {
      podsOf: () =>
        pods.map((image) => ({ metadata: { name: image, labels: MACHINE }, spec: { containers: [{ image }] } })),
      services: new Map(),
      configMaps: {
        get: (key: string) => configMaps.get(key),
        absorb: (object: KubeObject) => configMaps.set(NOTE, object),
      },
      applier: {
        apply: async (object: KubeObject) => {
          writes.push(object);
          return { object, changed: true };
        },
      },
    },
  });
  const task = (wanted: string) =>
    strategyOf(op)
      .reconcileTasks(op)
      .find(({ id }) => id === wanted)!;
  const run = (wanted: string) => task(wanted).run(new AbortController().signal);
  return { told, writes, run, task };
}

describe('a control plane on its own machines begins', () => {
  it('in the seed, on one machine, whose volume is recorded', async () => {
    const { told, writes, run } = testbed('seed');
    await run('control-plane-machines');
    expect(told).toMatchObject([{ count: 1, mayInitialise: true, noted: [] }]);
    expect(loadAll(told[0]!.init!)).toEqual(JSON.parse(JSON.stringify(kubeadmInit(values, pki))));
    expect(told[0]!.keys).toHaveProperty(['ca.key']);
    await run('initialised');
    expect(writes.map(({ data }) => data)).toEqual([{ pool: 'own', 'volume-0': 'disk-1' }]);
    // Told at once: without its data this machine may only join.
    expect(told[1]).toMatchObject({ mayInitialise: false, noted: [0] });
  });

  it('in a cloud, on one machine with the keys, which is recorded', async () => {
    const { told, writes, run } = testbed('cloud');
    await run('control-plane-machines');
    expect(told).toMatchObject([{ count: 1, first: { begin: { 'ca.key': expect.any(String) } } }]);
    expect(loadAll(told[0]!.init!)).toEqual(JSON.parse(JSON.stringify(kubeadmInit(values, pki, 'cloud'))));
    await run('initialised');
    expect(writes.map(({ data }) => data)).toEqual([{ pool: 'own', members: 'node-a' }]);
  });

  it('once: with a record no machine begins again', async () => {
    const inSeed = testbed('seed', { pool: 'own', 'volume-0': 'disk-1' });
    const inCloud = testbed('cloud', { pool: 'own', members: 'node-a' });
    for (const { run } of [inSeed, inCloud]) {
      await run('control-plane-machines');
      await run('initialised');
    }
    expect(inSeed.told.map(({ mayInitialise }) => mayInitialise)).toEqual([false]);
    expect(inCloud.told).toEqual([]);
    expect([...inSeed.writes, ...inCloud.writes]).toEqual([]);
  });

  it('on no two machines, whose state could not be told apart', async () => {
    const { writes, run } = testbed('cloud', undefined, { machines: ['node-a', 'node-b'] });
    await expect(run('initialised')).rejects.toThrow('begins on one machine, and there are 2');
    expect(writes).toEqual([]);
  });
});

describe('a control plane on cloud machines is upgraded', () => {
  const waits = (runs?: string[], hasServed = true) =>
    testbed('cloud', {}, { ...(runs && { runs }), hasServed })
      .task('machines')
      .after!.includes('control-plane-size');

  it('before worker machines, which otherwise do not wait', () => {
    expect([waits(['1.36.3', '1.35.4']), waits(['1.36.3', '1.36.3'])]).toEqual([true, false]);
  });

  it('before worker machines, also by a restarted operator that has not seen them', () => {
    expect([waits(undefined), waits(undefined, false)]).toEqual([true, false]);
  });
});

describe('a control plane on seed machines is upgraded or gets other keys', () => {
  it('before worker machines, which otherwise do not wait', () => {
    expect(testbed('seed', undefined, { pods: ['new', 'old'] }).task('machines').after).toContain('control-plane-size');
    for (const pods of [[], ['new']])
      expect(testbed('seed', undefined, { pods }).task('machines').after).not.toContain('control-plane-size');
  });

  it('with addresses for machines added in place of a single one, and traffic to ready ones only', async () => {
    const serviceOf = async (pods: string[], more: Parameters<typeof testbed>[2] = {}) => {
      const { run, writes } = testbed('seed', undefined, { members: 1, pods, ...more });
      await run('services');
      const [apiServer, ...machines] = writes;
      const { publishNotReadyAddresses } = (apiServer as unknown as { spec: { publishNotReadyAddresses: boolean } })
        .spec;
      return { publishNotReadyAddresses, machines: machines.length };
    };
    expect(await serviceOf(['new'])).toEqual({ publishNotReadyAddresses: true, machines: 1 });
    expect(await serviceOf(['old'])).toEqual({ publishNotReadyAddresses: false, machines: 3 });
    // The same for another key of Secrets, which is asked for, or is on its way in.
    const annotations = { [ANNOTATIONS.operation]: 'rotate-etcd-encryption-key' };
    const first = planEncryption(pki, { isNew: true, rotate: false, now: NOW });
    const keys = planEncryption(first, { isNew: false, rotate: true, now: NOW });
    for (const more of [{ annotations, keys: first }, { keys }])
      expect(await serviceOf(['new'], more)).toEqual({ publishNotReadyAddresses: false, machines: 3 });
    expect(await serviceOf(['new', 'new', 'new'])).toMatchObject({ publishNotReadyAddresses: false });
  });
});

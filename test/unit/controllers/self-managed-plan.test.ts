import { describe, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { FINALIZER, LABELS } from '../../../operator/api/group.ts';
import { controlPlaneMembers, type Shoot, unactedFields } from '../../../operator/api/shoot.ts';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { controlPlanePoolOf, poolsOfShoot } from '../../../operator/controllers/shoot/pools.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { planWorkerCluster } from '../../../operator/controllers/workercluster/plan.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import type { Provider } from '../../../providers/contract.ts';
import { providerNamed } from '../../../providers/index.ts';
import { buildCloudProfile, buildNode, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const NOW = new Date('2026-11-21T00:00:00Z');

const profile = buildCloudProfile({
  metadata: { name: 'local' },
  spec: {
    type: 'local',
    kubernetes: { versions: [{ version: '1.36.3' }, { version: '1.35.4' }] },
    machineTypes: [
      { name: 'local', cpu: 2, gpu: 0, memory: '2Gi' },
      { name: 'large', cpu: 4, gpu: 0, memory: '4Gi' },
    ],
    regions: [{ name: 'local', zones: [{ name: 'local' }] }],
    defaults: { region: 'local', machineType: 'local' },
  },
});

const cluster = (spec: object = {}): WorkerCluster =>
  buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'default', uid: 'u', generation: 1, finalizers: [FINALIZER] },
    spec: { cloudProvider: 'local', mode: 'SelfManaged', controlPlaneNodes: 3, dataPlaneNodes: 2, ...spec },
  });

const plan = (wc: WorkerCluster, shoot?: Shoot, provider: Provider = providerNamed('local')) =>
  planWorkerCluster({ cluster: wc, profile, profileNames: ['local'], provider, shoot }, NOW);

const shootOf = (wc: WorkerCluster, status: object = {}): Shoot => {
  const { shoot } = plan(wc);
  return { ...shoot!, metadata: { ...shoot!.metadata, generation: 1 }, status } as Shoot;
};

it('a SelfManaged cluster cannot have a DNS name, which is reported before anything is created', () => {
  const { shoot, status } = plan(cluster({ dns: { domain: 'one.example.com' } }));
  expect(shoot).toBeUndefined();
  expect(findCondition(status.conditions, 'Ready')).toMatchObject({ status: 'False' });
  expect(JSON.stringify(status)).toContain('an API server on machines cannot have a name in DNS yet');
});

describe('a SelfManaged cluster', () => {
  it('is a Shoot whose control plane has a pool of its own', () => {
    const { shoot, status } = plan(cluster());
    expect(status).toMatchObject({ mode: 'SelfManaged', provider: 'local', simulated: false });
    expect(shoot?.spec.provider.workers).toMatchObject([
      { name: 'control-plane', machine: { type: 'local' }, minimum: 3, maximum: 3, controlPlane: {} },
      { name: 'default', machine: { type: 'local' }, minimum: 2, maximum: 2 },
    ]);
    expect(shoot?.spec.provider.workers?.[1]?.controlPlane).toBeUndefined();
    expect(controlPlaneMembers(shoot!.spec)).toBe(3);
    expect(unactedFields(shoot!.spec)).toEqual([]);
  });

  it('separates control plane and worker machines', () => {
    const shoot = shootOf(cluster());
    expect(poolsOfShoot(shoot).map(({ name }) => name)).toEqual(['default']);
    expect(controlPlanePoolOf(shoot)).toMatchObject({
      name: 'control-plane',
      count: 3,
      taints: [{ key: 'node-role.kubernetes.io/control-plane', effect: 'NoSchedule' }],
    });
    const hosted = { ...shoot, spec: { ...shoot.spec, provider: { type: 'local', workers: [] } } };
    expect(controlPlanePoolOf(hosted)).toBeUndefined();
  });

  it("uses the cluster's machine type", () => {
    const { shoot } = plan(cluster({ machineType: 'large' }));
    expect(shoot?.spec.provider.workers?.[0]).toMatchObject({ name: 'control-plane', machine: { type: 'large' } });
  });

  it('may have five members, for its control plane only', () => {
    const { shoot } = plan(cluster({ controlPlaneNodes: 5, dataPlaneNodes: 0 }));
    expect(shoot?.spec.provider.workers?.[0]).toMatchObject({ minimum: 5 });
  });

  it('keeps its mode, whatever the profile becomes', () => {
    const shoot = shootOf(cluster());
    expect(plan(cluster({ mode: undefined }), shoot).status.mode).toBe('SelfManaged');
  });

  const refused: [string, object, string][] = [
    ['a pool with the name of its own', { pools: [{ name: 'control-plane', minimum: 1 }] }, 'pools[0].name'],
    ['adoption', { adopt: { name: 'x' } }, 'adopt'],
    ['an older version while it runs', { kubernetes: { version: '1.35.4' } }, 'kubernetes.version'],
  ];
  it.each(refused)('refuses %s', (_what, spec, field) => {
    const before = cluster({ kubernetes: { version: '1.36.3' } });
    const shoot = field === 'kubernetes.version' ? shootOf(before, { kubernetesVersion: '1.36.3' }) : undefined;
    const { shoot: made, status } = plan(cluster(spec), shoot);
    expect(made).toBeUndefined();
    expect(findCondition(status.conditions, 'SpecAccepted')).toMatchObject({
      status: 'False',
      message: expect.stringContaining(`spec.${field}`),
      codes: ['ERR_CONFIGURATION_PROBLEM'],
    });
  });

  it('is upgraded on request only', () => {
    const running = shootOf(cluster({ kubernetes: { version: '1.35.4' } }), { kubernetesVersion: '1.35.4' });
    const asked = (spec: object) => plan(cluster(spec), running).shoot?.spec.kubernetes.version;
    expect(asked({ kubernetes: { version: '1.36.3' } })).toBe('1.36.3');
    expect(asked({})).toBe('1.35.4');
  });

  it('is refused in one line by a provider without such machines', () => {
    const { controlPlaneMachines: _, ...other } = providerNamed('local');
    const { shoot, status } = plan(cluster(), undefined, { ...other, name: 'simulated' });
    expect(shoot).toBeUndefined();
    expect(findCondition(status.conditions, 'Ready')?.message).toBe(
      'spec.mode: provider simulated cannot make machines for a control plane (local can, and aws, gcp and azure with credentials): use mode Hosted',
    );
  });

  /** As aws is: its machines, also of control planes, are in an account of the tenant. */
  const { controlPlaneMachines: _, ...local } = providerNamed('local');
  const inCloud: Provider = { ...local, name: 'aws', inCloud: true, controlPlaneGroup: {} as never };

  it('is an ordinary Shoot in a supporting cloud, and never on spot machines', () => {
    const spec = { credentialsRef: { name: 'keys' }, pools: [{ name: 'cheap', minimum: 1, spot: true }] };
    const { shoot } = plan(cluster(spec), undefined, inCloud);
    expect(shoot?.spec.provider.workers).toMatchObject([
      { name: 'control-plane', minimum: 3, maximum: 3, controlPlane: {} },
      { name: 'cheap', providerConfig: { spot: true } },
    ]);
    expect(shoot?.spec.provider.workers?.[0]?.providerConfig).toBeUndefined();
  });

  it('is upgraded in a cloud as elsewhere, and never downgraded', () => {
    const spec = (version?: string) =>
      cluster({ ...(version && { kubernetes: { version } }), credentialsRef: { name: 'keys' } });
    const running = (version: string) => {
      const { shoot: made } = plan(spec(version), undefined, inCloud);
      return {
        ...made!,
        metadata: { ...made!.metadata, generation: 1 },
        status: { kubernetesVersion: version },
      } as Shoot;
    };
    const asked = (version?: string) => plan(spec(version), running('1.35.4'), inCloud).shoot?.spec.kubernetes.version;
    expect([asked('1.36.3'), asked('1.36'), asked()]).toEqual(['1.36.3', '1.36.3', '1.35.4']);
    const { shoot, status } = plan(spec('1.35.4'), running('1.36.3'), inCloud);
    expect(shoot).toBeUndefined();
    expect(findCondition(status.conditions, 'SpecAccepted')?.message).toContain('Kubernetes cannot be downgraded');
  });

  it("names the credentials of its machines' account", () => {
    const { shoot, status } = plan(cluster(), undefined, inCloud);
    expect(shoot).toBeUndefined();
    expect(findCondition(status.conditions, 'Ready')?.message).toContain('spec.credentialsRef');
  });
});

describe('a self-hosted Shoot made by hand', () => {
  const problemOf = (
    workers: Partial<Worker>[],
    provider: Partial<Provider> = providerNamed('local'),
    {
      running,
      noted,
      machineImage,
      nodes,
      ...values
    }: {
      running?: string | undefined;
      noted?: string;
      exposure?: 'NodePort' | 'LoadBalancer' | 'ClusterIP';
      machineImage?: string;
      nodes?: Node[];
    } = {},
  ) => {
    const op = partOf<Operation>({
      provider,
      controlPlanePool: workers.some((worker) => 'controlPlane' in worker) ? { name: 'own' } : undefined,
      shoot: { spec: { provider: { workers } }, status: { kubernetesVersion: running } },
      values: { version: '1.36.3', namespace: 'ns', ...values },
      state: { connection: nodes && { nodes: { list: () => nodes } } },
      seed: { configMaps: new Map(noted ? [['ns/control-plane-initialised', { data: { pool: noted } }]] : []) },
      context: () => ({ machineImage }),
    });
    return strategyOf(op).problem(op);
  };
  const own = { name: 'own', minimum: 1, maximum: 1, controlPlane: {} };

  it.each<[string, string | undefined, object[], string?]>([
    ['one pool that has it', undefined, [own, { name: 'w', minimum: 2, maximum: 4 }]],
    ['no pool that has it', undefined, [{ name: 'w', minimum: 2, maximum: 4 }]],
    ['two of them', 'one pool of machines, not on own and two', [own, { ...own, name: 'two' }]],
    ['an even number', 'has 1, 3 or 5 machines', [{ ...own, minimum: 2, maximum: 2 }]],
    ['a range', 'has 1, 3 or 5 machines', [{ ...own, maximum: 3 }]],
    ['another version', undefined, [own], '1.35.4'],
  ])('%s', (_what, expected, workers, running) => {
    const problem = problemOf(workers, providerNamed('local'), { running });
    if (expected === undefined) expect(problem).toBeUndefined();
    else expect(problem).toContain(expected);
  });

  it('keeps the pool of its etcd, by name', () => {
    expect(problemOf([own], undefined, { noted: 'own' })).toBeUndefined();
    expect(problemOf([own], undefined, { noted: 'other' })).toContain('is on the machines of pool other');
  });

  it('is refused on a seed whose addresses may change', () => {
    expect(problemOf([own], undefined, { exposure: 'NodePort' })).toContain('exposure ClusterIP');
  });

  it('may be on any seed with cloud machines, but not on spot machines', () => {
    const { controlPlaneMachines: _, ...local } = providerNamed('local');
    const cloud = { ...local, inCloud: true, controlPlaneGroup: {} as never };
    expect(problemOf([own], cloud, { exposure: 'NodePort' })).toBeUndefined();
    expect(problemOf([{ ...own, providerConfig: { spot: true } }], cloud)).toContain('cannot be on spot machines');
  });

  it('keeps its version where the seed names the machine image', () => {
    const running = '1.35.4';
    expect(problemOf([own], undefined, { running, machineImage: 'kindest/node:v1.35.4' })).toContain('1.35.4');
  });

  it('is upgraded in a cloud, but not past a minor version that one of its machines has not reached', () => {
    const { controlPlaneMachines: _, ...local } = providerNamed('local');
    const cloud = { ...local, inCloud: true, controlPlaneGroup: {} as never };
    const node = (version: string, pool = 'own') =>
      buildNode({
        metadata: { name: 'a', labels: { [LABELS.pool]: pool } },
        status: { nodeInfo: { kubeletVersion: version } },
      });
    const running = '1.35.4';
    expect(problemOf([own], cloud, { running })).toBeUndefined();
    expect(problemOf([own], cloud, { running, nodes: [node('v1.35.4'), node('v1.34.1', 'workers')] })).toBeUndefined();
    expect(problemOf([own], cloud, { running, nodes: [node('v1.35.4'), node('v1.34.1')] })).toBe(
      'machine a of the control plane is not upgraded yet: version 1.36.3 skips a minor version after 1.34.1: go one minor at a time',
    );
  });

  it('is refused where no provider makes such machines', () => {
    expect(problemOf([own], providerNamed('simulated'))).toBe(
      'provider simulated cannot make machines for a control plane',
    );
  });
});

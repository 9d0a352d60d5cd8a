import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BurstPolicySpec } from '../../../operator/api/burstpolicy.ts';
import type { Hub } from '../../../operator/api/hub.ts';
import { burstReceiptName } from '../../../operator/api/names.ts';
import { hearHub } from '../../../operator/controllers/burst/hear-hub.ts';
import type { Reader, StatusPart } from '../../../operator/hubs/contract.ts';
import { kueueHub } from '../../../operator/hubs/kueue.ts';
import type { DispatchedWorkload } from '../../../operator/hubs/kueue-demand.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { BURSTPOLICIES, HUBS, type KubeObject } from '../../../operator/kube/resources.ts';
import { buildWorkerCluster } from '../../kit/builders/objects.ts';
import { BurstTestbed, MINUTE, policyNamed, SECOND } from '../../kit/burst/testbed.ts';
import { reader } from '../hubs/hub-members.ts';

const api = { apiVersion: 'kueue.x-k8s.io/v1beta2' };
const check = (name: string, controllerName: string) => ({
  ...api,
  kind: 'AdmissionCheck',
  metadata: { name },
  spec: { controllerName },
});

/** The hub: a ClusterQueue's jobs pass MultiKueue's check and ours. */
let hub: Record<string, KubeObject[]>;
let testbed: BurstTestbed;
/** What is written into the hub. */
let writes: string[];

const workload = (name: string, cpu: string): DispatchedWorkload => ({
  ...api,
  kind: 'Workload',
  metadata: { name, namespace: 'shop', uid: `of-${name}`, resourceVersion: '1' },
  status: {
    conditions: [{ type: 'QuotaReserved', status: 'True', reason: '', message: '', lastTransitionTime: '' }],
    admission: { podSetAssignments: [{ name: 'main', count: 3, resourceUsage: { cpu, memory: '3Gi' } }] },
    admissionChecks: ['capacity', 'production'].map((one) => ({ name: one, state: 'Pending', message: '' })),
  },
});
/** The same, with more said of its pods. */
const withPods = (name: string, cpu: string, count: number, spec: object): DispatchedWorkload => {
  const one = workload(name, cpu);
  one.status!.admission!.podSetAssignments![0] = { name: 'main', count, resourceUsage: { cpu, memory: '1Gi' } };
  const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main' }], ...spec } };
  return { ...one, spec: { podSets: [{ name: 'main', count, template }] } };
};
const apartFrom = (app: string, topologyKey = 'kubernetes.io/hostname') => ({
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app } }, topologyKey }],
    },
  },
});
const inHub = (name: string) => hub.workloads!.find(({ metadata }) => metadata.name === name) as DispatchedWorkload;
const says = (name: string) => {
  const { state, message } = inHub(name).status!.admissionChecks!.find((one) => one.name === 'capacity')!;
  return `${state}: ${message}`;
};

/** As a server-side apply: only at the version that was read, and only what it names. */
function write({ resource, object }: StatusPart): void {
  const live = hub[resource.plural]!.find(({ metadata }) => metadata.name === object.metadata.name)!;
  const { resourceVersion } = object.metadata;
  if (resourceVersion && resourceVersion !== live.metadata.resourceVersion) throw new KubeApiError('PATCH', 409, {});
  writes.push(`${resource.plural} ${object.metadata.name}`);
  const { admissionChecks: ours = [], ...more } = object.status as { admissionChecks?: { name: string }[] };
  const { admissionChecks: before = [], ...rest } = (live.status ?? {}) as { admissionChecks?: { name: string }[] };
  const admissionChecks = before.map((one) => ({ ...one, ...ours.find(({ name }) => name === one.name) }));
  live.status = { ...rest, ...more, ...(before.length > 0 && { admissionChecks }) };
  live.metadata.resourceVersion = String(Number(live.metadata.resourceVersion ?? 0) + 1);
}

const look = async (after = 10 * SECOND) => {
  testbed.demands = await kueueHub.demand!(reader(hub), { type: 'Kueue' }, 'production');
  await testbed.look(after);
};
const looks = async (during: number) => {
  for (let past = 0; past < during; past += 10 * SECOND) await look();
};
const put = (more: Partial<BurstPolicySpec> = {}) => testbed.objects.put(policyNamed('peak', more));

afterEach(() => vi.restoreAllMocks());
beforeEach(() => {
  hub = {
    multikueueconfigs: [{ ...api, kind: 'MultiKueueConfig', metadata: { name: 'production' }, spec: { clusters: [] } }],
    multikueueclusters: [],
    admissionchecks: [
      check('production', 'kueue.x-k8s.io/multikueue'),
      check('capacity', 'multi-cluster.demo.io/burst'),
    ],
    workloads: [workload('train', '3')],
  };
  writes = [];
  testbed = new BurstTestbed();
  const { metadata, ...known } = testbed.objects.find<Hub>(HUBS, 'production')!;
  testbed.objects.put({ ...known, metadata, spec: { ...known.spec, type: 'Kueue' } } as Hub);
  testbed.asked = () => kueueHub.asks!(reader(hub), { type: 'Kueue' }, 'production');
  testbed.answered = write;
});

it('a held job gets a purchase, a message, and its release when the nodes exist', async () => {
  put();
  await look();
  expect(says('train')).toMatch(/^Pending: BurstPolicy shop\/peak: it has waited since/);
  await looks(40 * SECOND);
  const [cluster, ...others] = testbed.clusters();
  expect(others).toEqual([]);
  expect(says('train')).toMatch(
    new RegExp(
      `^Pending: BurstPolicy shop/peak: WorkerCluster ${cluster!.metadata.name} was ordered for it at 2026-11-23T`,
    ),
  );
  const before = writes.length;
  await looks(2 * MINUTE);
  expect(writes).toHaveLength(before);
  testbed.join(cluster!, 0);
  await look();
  expect(says('train')).toBe(`Ready: there is room for its pods on WorkerCluster shop/${cluster!.metadata.name}`);
  // Until Kueue has placed it there, nobody else has its room.
  hub.workloads!.push(workload('later', '3'));
  await look();
  expect(says('later')).toMatch(/^Pending: /);
  expect(testbed.clusters()).toHaveLength(1);
});

it('a held job grows a pool of an existing cluster before a cluster is bought, and is released', async () => {
  const pools = [{ name: 'a', minimum: 1, maximum: 5, autoscale: 'Coppice' as const }];
  const spec = { cloudProvider: 'cloud', pools };
  const metadata = { name: 'private', namespace: 'shop', uid: 'uid-of-private', labels: { fleet: 'private' } };
  const member = buildWorkerCluster({ metadata, spec });
  testbed.objects.put(member);
  const arrive = (minimum: number, pods: number) =>
    testbed.join({ ...member, spec: { ...member.spec, pools: [{ ...pools[0]!, minimum }] } }, pods);
  arrive(1, 1);
  hub.workloads = [workload('train', '3')];
  const clusterSelector = { matchLabels: { fleet: 'private' } };
  put({ grow: [{ name: 'private', clusterSelector, maximumNodes: 4 }] });
  await looks(40 * SECOND);
  expect(says('train')).toBe('Pending: BurstPolicy shop/peak: added for it: 3 nodes of pool a of shop/private');
  expect(testbed.sizes.get('shop/private')?.get('a')?.count).toBe(4);
  await looks(MINUTE);
  expect(testbed.clusters()).toHaveLength(1);
  arrive(4, 1);
  await look();
  expect(says('train')).toBe('Ready: there is room for its pods on WorkerCluster shop/private');
});

it('a held job gives its quota back with growing backoff where the budget permits no cluster', async () => {
  put({ budget: { hourly: '0.01', currency: 'USD' } });
  await looks(40 * SECOND);
  expect(testbed.clusters()).toEqual([]);
  const told = inHub('train').status!.admissionChecks![0]!;
  expect(told).toMatchObject({ state: 'Retry', requeueAfterSeconds: 0 });
  expect(told.message).toMatch(
    /^BurstPolicy shop\/peak: nothing is bought for its 3 replicas .* of the budget of 0.01 USD are left/,
  );
  // Kueue has evicted it, and given it quota again.
  hub.workloads = [workload('train', '3')];
  Object.assign(inHub('train').status!.admissionChecks![0]!, { retryCount: 1 });
  await looks(40 * SECOND);
  expect(inHub('train').status!.admissionChecks![0]).toMatchObject({ state: 'Retry', requeueAfterSeconds: 60 });
});

it('a held job is answered by the next run after a concurrent change', async () => {
  put();
  testbed.answered = (part) => {
    inHub('train').metadata.resourceVersion = '5';
    write(part);
  };
  await look();
  expect(writes).toEqual(['admissionchecks capacity']);
  testbed.answered = write;
  await look();
  expect(says('train')).toMatch(/^Pending: BurstPolicy/);
});

it('a held job is only released, and not otherwise answered, while one of its policies cannot decide', async () => {
  put({ budget: { hourly: '0.01', currency: 'USD' } });
  testbed.objects.put(policyNamed('other'));
  testbed.objects.put({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: burstReceiptName('shop/other'), namespace: 'kube-system' },
    type: 'multi-cluster.demo.io/burst-record',
    data: { record: Buffer.from('{').toString('base64') },
  } as KubeObject);
  await looks(MINUTE);
  expect(says('train')).toBe('Pending: ');
});

it('a held job without a policy for its hub does not wait, and the reason is reported', async () => {
  await look();
  expect(writes).toEqual(['admissionchecks capacity', 'workloads train']);
  expect(says('train')).toBe('Retry: no BurstPolicy names Hub production, so nobody would buy room');
  expect(hub.admissionchecks![1]!.status).toMatchObject({ conditions: [{ status: 'False', reason: 'NoPolicy' }] });
});

it("the hub's objects are read once per run, for demand and held jobs", async () => {
  const calls: string[] = [];
  const real = reader(hub);
  const counted: Reader = {
    get: (resource, ...place) => {
      calls.push(`get ${resource.plural}`);
      return real.get(resource, ...place);
    },
    list: (resource, ...options) => {
      calls.push(`list ${resource.plural}`);
      return real.list(resource, ...options);
    },
    serves: (resource) => real.serves(resource),
  };
  const apart = [
    await kueueHub.demand!(counted, { type: 'Kueue' }, 'production'),
    (await kueueHub.asks!(counted, { type: 'Kueue' }, 'production'))!.sources,
  ];
  expect(calls.sort().filter((one) => /workloads|admissionchecks/.test(one))).toEqual([
    'list admissionchecks',
    'list admissionchecks',
    'list workloads',
    'list workloads',
  ]);
  calls.length = 0;
  const { demands, asking } = await hearHub(kueueHub, counted, { type: 'Kueue' }, 'production');
  expect([demands, asking!.sources]).toEqual(apart);
  expect(calls.sort()).toEqual([
    'get multikueueconfigs',
    'list admissionchecks',
    'list multikueueclusters',
    'list workloads',
  ]);
});

it.each([true, false])('a run waits at most 30 s for a hub, with a policy (%s) or without one', async (hasPolicy) => {
  if (hasPolicy) put();
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(AbortSignal.abort(new Error('too late')));
  testbed.asked = async (signal) => {
    signal.throwIfAborted();
    return undefined;
  };
  if (hasPolicy) {
    await testbed.look();
    expect(testbed.says('Ready')).toBe('False HubDoesNotAnswer');
  } else await expect(testbed.look()).rejects.toThrow('too late');
  expect(timeout).toHaveBeenCalledWith(30_000);
});

it('a held job is not answered while the hub does not answer, or is not ready', async () => {
  put();
  testbed.demands = new Error('connection refused');
  await testbed.look();
  testbed.objects.objects.delete(`${BURSTPOLICIES.plural}/shop/peak`);
  const known = testbed.objects.find<Hub>(HUBS, 'production')!;
  testbed.objects.put({ ...known, status: { conditions: [] } } as Hub);
  await testbed.look();
  expect(writes).toEqual([]);
});

it('a job that cannot be judged buys nothing, which the job and the policy report', async () => {
  put();
  hub.workloads = [withPods('odd', '2', 2, { schedulerName: 'other', resourceClaims: [{ name: 'fpga' }] })];
  await looks(2 * MINUTE);
  expect(testbed.clusters()).toEqual([]);
  const why = 'nothing is bought for it: it asks for devices by ResourceClaims (dynamic resource allocation)';
  expect(says('odd')).toBe(`Retry: ${why}`);
  expect(JSON.stringify(testbed.policy()!.status)).toContain(why);
});

it('a job with anti-affine pods buys that many nodes, and no cluster where they fit nowhere', async () => {
  put();
  hub.workloads = [
    withPods('apart', '500m', 2, apartFrom('apart')),
    withPods('nowhere', '500m', 2, apartFrom('nowhere', 'topology.kubernetes.io/region')),
  ];
  await looks(MINUTE);
  expect(testbed.clusters().map(({ spec }) => spec.pools![0]!.minimum)).toEqual([2]);
  expect(says('nowhere')).toMatch(/^Retry: .* it goes to one cluster as a whole/);
  testbed.join(testbed.clusters()[0]!, 0);
  await look();
  expect(says('apart')).toMatch(/^Ready: /);
});

it('a job with a taken host port is not released, although CPU is free', async () => {
  put({ maximumClusters: 1 });
  const served = { containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80 }] }] };
  hub.workloads = [withPods('first', '500m', 1, served)];
  await looks(MINUTE);
  testbed.join(testbed.clusters()[0]!, 0);
  hub.workloads.push(withPods('second', '500m', 1, served), withPods('third', '500m', 1, {}));
  await looks(MINUTE);
  expect(says('first')).toMatch(/^Ready: /);
  expect(says('second')).toMatch(/^Retry: /);
  expect(says('third')).toMatch(/^Ready: /);
});

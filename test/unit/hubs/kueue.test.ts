import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { Member } from '../../../operator/hubs/contract.ts';
import { kueueHub, NO_CLUSTER, ORIGIN } from '../../../operator/hubs/kueue.ts';
import { LOCALQUEUES, MULTIKUEUECONFIGS } from '../../../operator/hubs/kueue-kinds.ts';
import { parseUntrustedKubeconfig } from '../../../operator/kube/kubeconfig.ts';
import { type KubeObject, SECRETS } from '../../../operator/kube/resources.ts';
import { member, reader, textOf } from './hub-members.ts';

const SPEC: HubSpec = { type: 'Kueue' };
const NAME = 'shop--demo';
const api = { apiVersion: 'kueue.x-k8s.io/v1beta2' };
const config = (...clusters: string[]): KubeObject => ({
  ...api,
  kind: 'MultiKueueConfig',
  metadata: { name: 'fleet', resourceVersion: '7' },
  spec: { clusters },
});
const active = { type: 'Active', status: 'True', reason: 'Active', message: 'Connected' };
const cluster = (condition: object = active): KubeObject => ({
  ...api,
  kind: 'MultiKueueCluster',
  metadata: { name: NAME },
  status: { conditions: [condition] },
});
const queue = (name: string, stopPolicy?: string, annotations: Record<string, string> = {}): KubeObject => ({
  ...api,
  kind: 'LocalQueue',
  metadata: { name, namespace: 'shop', resourceVersion: '3', annotations },
  spec: { clusterQueue: 'all', ...(stopPolicy && { stopPolicy }) },
});
const stopped = { 'multi-cluster.demo.io/membership-stopped-for': 'fleet' };
const workload = (name: string, more: object = {}): KubeObject => ({
  ...api,
  kind: 'Workload',
  metadata: { name, namespace: 'shop' },
  ...more,
});

/** What one look brings. */
const look = (
  one: Member,
  hub: Record<string, KubeObject[]>,
  inside: Record<string, KubeObject[]> | undefined = { workloads: [] },
) => kueueHub.observe(reader(hub), inside && reader(inside), one, SPEC);
const stepsOf = async (one: Member, hub: Record<string, KubeObject[]>, inside?: Record<string, KubeObject[]>) =>
  kueueHub.join(one, SPEC, await look(one, hub, inside));
const listOf = async (one: Member, ...configs: KubeObject[]) => {
  const steps = await stepsOf(one, { multikueueclusters: [cluster()], multikueueconfigs: configs });
  const wanted = steps.flatMap(({ apply = [] }) => apply).find(({ resource }) => resource === MULTIKUEUECONFIGS);
  return wanted && { ...wanted.object.metadata, clusters: (wanted.object.spec as { clusters: string[] }).clusters };
};

describe('the placements of Kueue', () => {
  const placed = (...workloads: KubeObject[]) => kueueHub.placed!(reader({ workloads }), SPEC);

  it('are jobs on the cluster that took them, and not on those they are offered to', async () => {
    const running = workload('train', { status: { clusterName: NAME } });
    const metadata = {
      ...running.metadata,
      ownerReferences: [{ apiVersion: '', kind: 'Job', name: 'train-1', uid: '' }],
    };
    const conditions = [{ type: 'Finished', status: 'True' }];
    expect(
      await placed(
        { ...running, metadata },
        workload('offered', { status: { nominatedClusterNames: [NAME] } }),
        workload('ended', { status: { clusterName: NAME, conditions } }),
      ),
    ).toEqual([
      {
        source: 'Workload shop/train',
        members: [NAME],
        workload: { namespace: 'shop', name: 'train-1' },
        isDivided: true,
      },
    ]);
  });
});

describe('the list of a MultiKueueConfig', () => {
  it.each<[string, Member['closed'], string[] | undefined, string[] | undefined]>([
    ['has no cluster in it that is not open yet', 'Initializing', undefined, [NO_CLUSTER]],
    ['has the first one', undefined, [NO_CLUSTER], [NAME]],
    ['has a new one behind the others, which Kueue asks first', undefined, ['b', 'a'], ['b', 'a', NAME]],
    ['is not written where it is right', undefined, ['b', NAME, 'a'], undefined],
    ['is not written for one that is not in it', 'Asleep', ['a'], undefined],
    ['has none that sleeps, and runs nothing', 'Asleep', ['b', NAME, 'a'], ['b', 'a']],
    ['takes no empty list: a name stands for none', 'Asleep', [NAME], [NO_CLUSTER]],
  ])('%s', async (_, closed, before, after) => {
    const one = member(closed && { closed });
    expect((await listOf(one, ...(before ? [config(...before)] : [])))?.clusters).toEqual(after);
  });

  it('is written at the version read only: a cluster that joined meanwhile stays', async () => {
    expect(await listOf(member(), config('a'))).toMatchObject({ name: 'fleet', resourceVersion: '7' });
  });

  it('is checked after a write: a list created concurrently may lack the cluster', async () => {
    const at = async (...configs: KubeObject[]) =>
      (await stepsOf(member(), { multikueueclusters: [cluster()], multikueueconfigs: configs })).at(-1)?.waiting;
    expect(await at()).toMatch(/does not name shop--demo yet/);
    expect(await at(config('other'))).toMatch(/does not name shop--demo yet/);
    expect(await at(config('other', NAME))).toBeUndefined();
  });

  it('takes 20 clusters, and refuses the next one before it is opened', async () => {
    const full = config(...Array.from({ length: 20 }, (_, index) => `c${index}`));
    const objects = { multikueueclusters: [cluster()], multikueueconfigs: [full] };
    const steps = await stepsOf(member({ closed: 'Initializing' }), objects);
    expect(steps.at(-1)).toMatchObject({ apply: [], waiting: expect.stringContaining('has 20 clusters, the most') });
  });
});

it('keeps running jobs waiting on a sleeping cluster, and begins no new ones', async () => {
  const running = workload('train', { status: { clusterName: NAME } });
  const hub = {
    multikueueclusters: [cluster()],
    multikueueconfigs: [config(NAME)],
    localqueues: [queue('jobs')],
    workloads: [running],
  };
  const wantedOf = async (one: Member, localqueues: KubeObject[]) =>
    (await stepsOf(one, hub, { workloads: [], localqueues }))
      .at(-1)
      ?.apply?.map(({ object }) => [object.kind, object.spec]);
  expect(await wantedOf(member({ closed: 'Asleep' }), [queue('jobs')])).toEqual([
    ['LocalQueue', { stopPolicy: 'Hold' }],
  ]);
  expect(await wantedOf(member(), [queue('jobs', 'Hold', stopped)])).toEqual([['LocalQueue', {}]]);
});

describe('a cluster that joins Kueue', () => {
  it('has a kubeconfig with the key and location that Kueue reads', async () => {
    const steps = await stepsOf(member(), { multikueueclusters: [], multikueueconfigs: [] });
    const wanted = steps.flatMap(({ apply = [] }) => apply);
    const secret = wanted.find(({ resource }) => resource === SECRETS);
    expect(secret?.object.metadata).toEqual({ name: `${NAME}-kubeconfig`, namespace: 'kueue-system' });
    expect(parseUntrustedKubeconfig(textOf(secret, 'kubeconfig'))).toMatchObject({ token: 'token-of-demo' });
    const made = wanted.find(({ object }) => object.kind === 'MultiKueueCluster')?.object;
    expect(made).toMatchObject({
      metadata: { labels: { tier: 'gold' }, annotations: { 'multi-cluster.demo.io/capacity.cpu': '4' } },
      spec: { clusterSource: { kubeConfig: { locationType: 'Secret', location: `${NAME}-kubeconfig` } } },
    });
  });

  it.each<[string, KubeObject[], Record<string, KubeObject[]>, string]>([
    ['Kueue has to be in it', [cluster()], {}, 'serves no workloads.kueue.x-k8s.io/v1beta2: install Kueue in it'],
    ['Kueue has to look', [], { workloads: [] }, 'has not looked at MultiKueueCluster shop--demo'],
    [
      'Kueue has to reach it',
      [cluster({ ...active, status: 'False', reason: 'ClientConnectionFailed', message: 'i/o timeout' })],
      { workloads: [] },
      'is not Active: i/o timeout',
    ],
  ])('%s', async (_, clusters, inside, said) => {
    const objects = { multikueueclusters: clusters, multikueueconfigs: [] };
    const [, , registered] = await stepsOf(member({ closed: 'Initializing' }), objects, inside);
    expect(registered?.waiting).toContain(said);
  });

  it('has queues reopened that an unfinished leave stopped', async () => {
    const queues = [queue('ours', 'HoldAndDrain', stopped), queue('theirs', 'Hold')];
    const hub = { multikueueclusters: [cluster()], multikueueconfigs: [config('a')], localqueues: queues };
    const steps = await stepsOf(member({ closed: 'Initializing' }), hub, { workloads: [], localqueues: queues });
    const wanted = steps.flatMap(({ apply = [] }) => apply).filter(({ resource }) => resource === LOCALQUEUES);
    expect(wanted.map(({ object }) => [object.metadata.name, object.spec])).toEqual([['ours', {}]]);
  });
});

describe('a cluster that leaves Kueue', () => {
  const leaving = member({ closed: 'Leaving' });
  const running = workload('train', { status: { clusterName: NAME } });
  const queues = [
    queue('open'),
    queue('held', 'Hold', stopped),
    queue('theirs', 'Hold'),
    queue('drained', 'HoldAndDrain', stopped),
  ];
  const hub = { multikueueconfigs: [config(NAME)], workloads: [running], localqueues: queues };
  const inside = { localqueues: [...queues, queue('local')], workloads: [] };
  const policies = (wanted: readonly { object: KubeObject }[]) =>
    Object.fromEntries(
      wanted.map(({ object }) => [object.metadata.name, (object.spec as { stopPolicy?: string }).stopPolicy]),
    );

  it('counts jobs running there, and none that ended or run elsewhere', async () => {
    const finished = { clusterName: NAME, conditions: [{ type: 'Finished', status: 'True' }] };
    const workloads = [
      running,
      workload('done', { status: finished }),
      workload('elsewhere', { status: { clusterName: 'other' } }),
      workload('pending', { status: { nominatedClusterNames: [NAME] } }),
    ];
    expect(kueueHub.placements!(leaving, await look(leaving, { ...hub, workloads }))).toEqual(['Workload shop/train']);
  });

  it("has the hub's queues stopped, except those already stopped", async () => {
    const seen = await look(leaving, hub, inside);
    expect(policies(kueueHub.cordon!(leaving, SPEC, seen))).toEqual({ open: 'Hold' });
    expect(kueueHub.drain!(leaving, SPEC, seen)).toEqual([]);
    const evicting = { ...SPEC, kueue: { evicts: true } };
    expect(policies(kueueHub.drain!(leaving, evicting, seen))).toEqual({ open: 'HoldAndDrain', held: 'HoldAndDrain' });
  });

  it('moves jobs only where the Hub permits it', async () => {
    const seen = await look(leaving, hub, inside);
    expect(kueueHub.drains(SPEC, seen)).toBe('Waits');
    expect(kueueHub.drains({ ...SPEC, kueue: { evicts: true } }, seen)).toBe('Moves');
  });

  it('waits for a list that names it, while it answers', async () => {
    expect(kueueHub.leave(leaving, SPEC, await look(leaving, hub, inside))[1]?.waiting).toContain(
      'Workload shop/train',
    );
    const dead = { ...leaving, answers: false };
    expect(kueueHub.leave(dead, SPEC, await look(dead, hub, undefined))[1]?.waiting).toBeUndefined();
  });

  it("has the hub's jobs of any kind deleted before their Workloads", async () => {
    const owner = { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', name: 'train-job', uid: 'one' };
    const theirs = { labels: { [ORIGIN]: 'multikueue' }, ownerReferences: [owner] };
    const left = workload('train');
    const seen = await look(
      leaving,
      { ...hub, multikueueconfigs: [config('other')] },
      {
        workloads: [{ ...left, metadata: { ...left.metadata, ...theirs } }],
      },
    );
    const sweep = kueueHub.leave(leaving, SPEC, seen).flatMap(({ sweep: some = [] }) => some);
    expect(sweep.map(({ resource, name }) => [resource.group, resource.plural, name])).toEqual([
      ['kubeflow.org', 'pytorchjobs', 'train-job'],
      ['kueue.x-k8s.io', 'workloads', 'train'],
    ]);
    expect(sweep[0]?.labels).toEqual({ [ORIGIN]: 'multikueue' });
  });
});

describe('the jobs that no cluster takes', () => {
  const SINCE = '2026-11-23T12:00:00Z';
  const reserved = {
    type: 'QuotaReserved',
    status: 'True',
    reason: 'QuotaReserved',
    message: '',
    lastTransitionTime: '',
  };
  const pending = (name = 'fleet', state = 'Pending') => [{ name, state, message: '', lastTransitionTime: SINCE }];
  const waiting = {
    conditions: [reserved],
    admission: {
      podSetAssignments: [
        { name: 'leader', count: 1, resourceUsage: { cpu: '1', memory: '2Gi' } },
        { name: 'worker', count: 3, resourceUsage: { cpu: '7', memory: '12Gi', 'nvidia.com/gpu': '6', pods: '3' } },
      ],
    },
    admissionChecks: pending(),
    nominatedClusterNames: [NAME],
  };
  const job = (status: object = waiting, { metadata, ...more }: { metadata?: object; spec?: object } = {}) => {
    const one = workload('train', { status, ...more });
    return { ...one, metadata: { ...one.metadata, uid: 'of-workload', ...metadata } };
  };
  const demand = (one: KubeObject, clusters = [cluster()], spec = SPEC) =>
    kueueHub.demand!(
      reader({
        multikueueconfigs: [config(NAME), { ...config(NAME), metadata: { name: 'other' } }],
        multikueueclusters: clusters,
        workloads: [one],
      }),
      spec,
      'fleet',
    );

  it("are demand: the remaining pods of each set, in Kueue's size", async () => {
    const controller = { apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'of-job', controller: true };
    const found = await demand(
      job(
        { ...waiting, reclaimablePods: [{ name: 'worker', count: 1 }] },
        { metadata: { ownerReferences: [controller] } },
      ),
    );
    const common = {
      source: 'Workload shop/train',
      uid: 'of-job',
      namespace: 'shop',
      since: SINCE,
      inOneCluster: true,
    };
    expect(found).toEqual([
      { ...common, count: 1, each: { cpu: '1', memory: '2Gi' } },
      { ...common, count: 2, each: { cpu: '2334m', memory: '4Gi', gpu: '2' } },
    ]);
  });

  it('have the priority that Kueue resolved', async () => {
    expect((await demand(job(waiting, { spec: { priority: -5 } }))).map(({ priority }) => priority)).toEqual([-5, -5]);
  });

  it("have their template's node rules, with devices that quota ignores", async () => {
    const resources = { requests: { cpu: '7', 'example.com/fpga': '1', 'nvidia.com/gpu': '2' } };
    const rules = { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }] };
    const required = {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'arch', operator: 'In', values: ['amd64'] }] }],
    };
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required }, podAffinity: {} };
    const containers = [{ name: 'work', resources }];
    const podSets = [{ name: 'worker', template: { spec: { containers, ...rules, affinity } } }];
    const [leader, worker] = await demand(job(waiting, { spec: { podSets } }));
    expect(leader).not.toHaveProperty('template');
    expect(worker).toMatchObject({ each: { gpu: '2' }, others: { 'example.com/fpga': '1' } });
    const { podAffinity: _, ...ofNodes } = affinity;
    expect(worker!.template!.spec).toMatchObject({ ...rules, containers: [{ resources }] });
    expect(worker!.template!.spec.affinity).toEqual(ofNodes);
    expect(Object.keys(worker!.others!)).toEqual(['example.com/fpga']);
  });

  it("are those of this hub's list only", async () => {
    const theirs = job({ ...waiting, admissionChecks: pending('other') });
    expect(await demand(theirs)).toEqual([]);
    expect(await demand(theirs, [cluster()], { ...SPEC, kueue: { config: 'other' } })).toHaveLength(2);
  });

  it.each<[string, KubeObject]>([
    [
      'waits for quota of the hub, which is a limit',
      job({ ...waiting, conditions: [{ ...reserved, status: 'False' }] }),
    ],
    ['runs', job({ ...waiting, clusterName: NAME })],
    ['was taken', job({ ...waiting, admissionChecks: pending('fleet', 'Ready') })],
    ['has ended', job({ ...waiting, conditions: [reserved, { ...reserved, type: 'Finished' }] })],
    ['is being stopped', job({ ...waiting, conditions: [reserved, { ...reserved, type: 'Evicted' }] })],
    ['is stopped by a person', job(waiting, { spec: { active: false } })],
    ['is being deleted', job(waiting, { metadata: { deletionTimestamp: SINCE } })],
    ['not every cluster was asked for', job({ ...waiting, nominatedClusterNames: [] })],
    [
      'asks for what nobody can read',
      job({ ...waiting, admission: { podSetAssignments: [{ name: 'a', count: 1, resourceUsage: { cpu: 'many' } }] } }),
    ],
    [
      'has no pods',
      job({ ...waiting, admission: { podSetAssignments: [{ name: 'a', count: 0, resourceUsage: { cpu: '0' } }] } }),
    ],
  ])('do not count where one %s', async (_, one) => expect(await demand(one)).toEqual([]));

  it('keep waiting when a new cluster was not offered yet; new jobs wait for the offer', async () => {
    const at = (name: string, minutes: number) => ({
      ...cluster({ ...active, lastTransitionTime: new Date(Date.parse(SINCE) + minutes * 60_000).toISOString() }),
      metadata: { name },
    });
    const told = async (nominatedClusterNames: string[], ...clusters: KubeObject[]) =>
      (
        await kueueHub.demand!(
          reader({
            multikueueconfigs: [{ ...config(NAME), spec: { clusters: [NAME, 'second'] } }],
            multikueueclusters: clusters,
            workloads: [job({ ...waiting, nominatedClusterNames })],
          }),
          SPEC,
          'fleet',
        )
      ).length;
    expect(await told([NAME], at(NAME, -60), at('second', 5))).toBe(2);
    expect(await told([NAME], at(NAME, -60), at('second', -5))).toBe(0);
    // When the first cluster comes, Kueue asks at once.
    expect(await told([], at(NAME, 5))).toBe(0);
  });

  it('do not wait for a cluster that Kueue does not reach', async () => {
    const lost = cluster({ ...active, status: 'False', reason: 'ClientConnectionFailed', message: 'i/o timeout' });
    expect(await demand(job({ ...waiting, nominatedClusterNames: [] }), [lost])).toHaveLength(2);
  });

  describe('while Kueue reaches no cluster', () => {
    const LATER = '2026-11-23T12:05:00Z';
    const stopped = (reason = 'AdmissionCheckInactive') => ({
      conditions: [{ type: 'Active', status: 'False', reason, message: '', lastTransitionTime: LATER }],
    });
    const flavors = [
      {
        name: 'a',
        resources: [
          { name: 'cpu', nominalQuota: '8' },
          { name: 'memory', nominalQuota: '9Gi' },
        ],
      },
    ];
    const queue = (more: object = {}, status = stopped()): KubeObject => ({
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind: 'ClusterQueue',
      metadata: { name: 'all' },
      spec: {
        admissionChecksStrategy: { admissionChecks: [{ name: 'fleet' }] },
        resourceGroups: [{ flavors }],
        ...more,
      },
      status,
    });
    const check = (name: string, is: string): KubeObject => ({
      apiVersion: 'kueue.x-k8s.io/v1beta2',
      kind: 'AdmissionCheck',
      metadata: { name },
      status: { conditions: [{ type: 'Active', status: is }] },
    });
    const local = {
      apiVersion: '',
      kind: '',
      metadata: { name: 'jobs', namespace: 'shop' },
      spec: { clusterQueue: 'all' },
    };
    const container = { name: 'main', resources: { requests: { cpu: '2', memory: '1Gi' } } };
    const podSets = [{ name: 'main', count: 3, template: { spec: { containers: [container] } } }];
    const waits = (name: string, created = SINCE, spec: object = {}, status: object = {}): KubeObject => {
      const metadata = { name, namespace: 'shop', uid: `of-${name}`, creationTimestamp: created };
      return { ...workload(name, { spec: { queueName: 'jobs', podSets, ...spec }, status }), metadata };
    };
    const found = (workloads: KubeObject[], cluster = queue(), checks = [check('fleet', 'False')], list = NO_CLUSTER) =>
      kueueHub.demand!(
        reader({
          multikueueconfigs: [config(list)],
          multikueueclusters: [],
          workloads,
          admissionchecks: checks,
          localqueues: [local],
          clusterqueues: [cluster],
        }),
        SPEC,
        'fleet',
      );

    it("have their template's node rules, with devices that quota ignores", async () => {
      const { resources } = container;
      const devices = { requests: { ...resources.requests, 'example.com/fpga': '2' } };
      const template = { spec: { nodeSelector: { disk: 'ssd' }, containers: [{ ...container, resources: devices }] } };
      const [one] = await found([waits('fpga', SINCE, { podSets: [{ name: 'main', count: 1, template }] })]);
      expect(one).toMatchObject({
        others: { 'example.com/fpga': '2' },
        template: { spec: { nodeSelector: { disk: 'ssd' } } },
      });
    });

    it('that cannot be read do not keep others from being first, and are reported', async () => {
      const template = { spec: { schedulerName: 'other', containers: [container] } };
      const told = await found([
        waits('young', '2026-11-23T12:01:00Z'),
        waits('odd', SINCE, { podSets: [{ name: 'main', count: 1, template }] }),
      ]);
      expect(told.map(({ source, problem }) => `${source}: ${problem}`)).toEqual([
        'Workload shop/odd: it names a scheduler other than default-scheduler, whose rules are not known',
        'Workload shop/young: undefined',
      ]);
    });

    it('with negative requests give no room to others', async () => {
      const resources = { requests: { cpu: '1', memory: '-64Gi' } };
      const template = { spec: { containers: [{ ...container, resources }] } };
      const [told] = await found([waits('odd', SINCE, { podSets: [{ name: 'main', count: 1, template }] })]);
      expect(told).toMatchObject({ problem: 'it asks for an amount that cannot be read' });
    });

    it('count as the oldest only, since quota is blocked until the first cluster', async () => {
      const one = {
        source: 'Workload shop/old',
        uid: 'of-old',
        namespace: 'shop',
        count: 3,
        each: { cpu: '2', memory: '1Gi' },
        since: LATER,
        inOneCluster: true,
        template: { labels: {}, spec: { containers: [{ ...container, name: 'work' }] } },
      };
      expect(await found([waits('young', '2026-11-23T12:01:00Z'), waits('old')])).toEqual([one]);
      const urgent = waits('young', '2026-11-23T12:01:00Z', { priority: 5 });
      expect(await found([urgent, waits('old')])).toMatchObject([{ source: 'Workload shop/young', priority: 5 }]);
    });

    it.each<[string, Promise<unknown>]>([
      ['exceeds the quota of its queue', found([waits('large', SINCE, { podSets: [{ ...podSets[0], count: 5 }] })])],
      ['is stopped by a person', found([waits('off', SINCE, { active: false })])],
      ['is in a queue that is stopped as well', found([waits('one')], queue({}, stopped('Stopped')))],
      [
        'is in a queue of another hub',
        found([waits('one')], queue({ admissionChecksStrategy: { admissionChecks: [] } })),
      ],
      [
        'waits for another check too, which no cluster would change',
        found(
          [waits('one')],
          queue({ admissionChecksStrategy: { admissionChecks: [{ name: 'fleet' }, { name: 'other' }] } }),
          [check('fleet', 'False'), check('other', 'False')],
        ),
      ],
      [
        'asks for what nobody can read',
        found([
          waits('odd', SINCE, {
            podSets: [{ template: { spec: { containers: [{ resources: { requests: { cpu: 'many' } } }] } } }],
          }),
        ]),
      ],
    ])('do not count where one %s', async (_, demands) => expect(await demands).toEqual([]));

    it('may borrow from a cohort', async () => {
      const large = waits('large', SINCE, { podSets: [{ ...podSets[0], count: 5 }] });
      expect(await found([large], queue({ cohortName: 'fleet' }))).toHaveLength(1);
    });
  });
});

import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { KarmadaCluster } from '../../../operator/hubs/karmada/cluster.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { member as memberOf, reader } from './hub-members.ts';

const GROUP = 'multi-cluster.demo.io';
const spec: HubSpec = { type: 'Karmada' };
const member = memberOf({ nodeSizes: [{ cpu: '2', memory: '2Gi' }] });

const own = { affinityName: 'own', labelSelector: { matchLabels: { tier: 'own' } } };
const gold = { affinityName: 'gold', labelSelector: { matchLabels: { tier: 'gold' } } };
const CREATED = '2026-11-22T12:00:00Z';
const PLACED = '2026-11-22T13:00:00Z';

const cluster = (more: { offered?: string; closed?: boolean; cpu?: string } = {}): KarmadaCluster => ({
  apiVersion: 'cluster.karmada.io/v1alpha1',
  kind: 'Cluster',
  metadata: {
    name: 'shop--demo',
    labels: { tier: 'gold', [`${GROUP}/membership`]: 'uid', [`${GROUP}/offered`]: more.offered ?? 'cpu-2.memory-2Gi' },
  },
  spec: {
    id: member.id,
    provider: 'aws',
    zones: ['a', 'b'],
    taints: more.closed ? [{ key: `${GROUP}/initializing`, effect: 'NoSchedule' }] : [],
  },
  status: { resourceSummary: { allocatable: { cpu: more.cpu ?? '4', memory: '4Gi' } } },
});

/** One that was placed once, and has found no room since, without having changed. */
const binding = (
  placement: object,
  more: { reason?: string; status?: object; spec?: object; at?: string } = {},
): KubeObject => ({
  apiVersion: 'work.karmada.io/v1alpha2',
  kind: 'ResourceBinding',
  metadata: { name: 'web', namespace: 'shop', uid: 'uid-of-web', generation: 4, creationTimestamp: CREATED },
  spec: { placement, ...more.spec },
  status: {
    schedulerObservedGeneration: 4,
    lastScheduledTime: PLACED,
    conditions: [
      {
        type: 'Scheduled',
        status: 'False',
        reason: more.reason ?? 'Unschedulable',
        lastTransitionTime: more.at ?? PLACED,
      },
    ],
    ...more.status,
  },
});

const touched = async (bindings: KubeObject[], live = cluster(), one = member) => {
  const hub = reader({ clusters: [live], resourcebindings: bindings, clusterresourcebindings: [] });
  const seen = await karmadaHub.observe(hub, undefined, one, spec);
  return karmadaHub.requeue!(one, spec, seen);
};
const overflow = { clusterAffinities: [{ ...own, overflowAffinities: [gold] }] };

describe('the bindings that Karmada overlooks when a cluster grows', () => {
  it.each<[string, KubeObject, number]>([
    ['one that overflows onto it', binding(overflow), 1],
    ['one of whose list it is a later entry', binding({ clusterAffinities: [own, gold] }), 1],
    ['not one that Karmada compares itself', binding({ clusterAffinities: [gold, own] }), 0],
    ['not one with a single affinity, which Karmada compares', binding({ clusterAffinity: gold }), 0],
    [
      'not one whose entry it was before',
      binding({ clusterAffinities: [gold, own] }, { status: { schedulerObservingAffinityName: 'own' } }),
      0,
    ],
    ['not one that may not come here', binding({ clusterAffinities: [own, { ...gold, exclude: ['shop--demo'] }] }), 0],
    ['not one that asks for another zone', binding({ clusterAffinities: [own, zone('c')] }), 0],
    ['one that asks for its zone', binding({ clusterAffinities: [own, zone('b')] }), 1],
    [
      'not one that is placed',
      binding(overflow, { status: { conditions: [{ type: 'Scheduled', status: 'True' }] } }),
      0,
    ],
    [
      'not one that has changed, at which Karmada looks in any case',
      binding(overflow, { status: { schedulerObservedGeneration: 3 } }),
      0,
    ],
    ['not one that is over a quota', binding(overflow, { reason: 'QuotaExceeded' }), 0],
    ['not one that somebody holds', binding(overflow, { spec: { suspension: { scheduling: true } } }), 0],
  ])('%s', async (_, one, count) => expect(await touched([one])).toHaveLength(count));

  it.each<[string, KarmadaCluster, Partial<typeof member>, number]>([
    ['grown', cluster(), {}, 1],
    ['opened', cluster({ closed: true, offered: 'cpu-4.memory-4Gi' }), {}, 1],
    ['told of already', cluster({ offered: 'cpu-4.memory-4Gi' }), {}, 0],
    ['shrunk', cluster({ cpu: '1', offered: 'cpu-2.memory-4Gi' }), {}, 0],
    ['closed', cluster(), { closed: 'Asleep' }, 0],
  ])('are touched for a cluster that is %s: once', async (_, live, more, count) =>
    expect(await touched([binding(overflow)], live, { ...member, ...more })).toHaveLength(count),
  );

  it('are touched with a changing time that redivides no running replicas', async () => {
    const at = async (given: object, status: object = {}) => {
      const [touch] = await touched([binding(overflow, { spec: given, status })]);
      expect(touch).toMatchObject({ name: 'web', namespace: 'shop', uid: 'uid-of-web' });
      return (touch!.patch.spec as { rescheduleTriggeredAt: string }).rescheduleTriggeredAt;
    };
    expect(await at({})).toBe(PLACED);
    expect(await at({ rescheduleTriggeredAt: PLACED })).toBe('2026-11-22T12:59:59Z');
    expect(await at({ rescheduleTriggeredAt: '2026-11-22T12:59:59Z' })).toBe(PLACED);
    expect(await at({}, { lastScheduledTime: undefined })).toBe(CREATED);
    // Somebody has asked for a new division, and still gets it.
    expect(await at({ rescheduleTriggeredAt: '2026-11-22T14:00:00Z' })).toBe('2026-11-22T14:00:01Z');
  });

  it('are limited to a hundred, the longest waiting first', async () => {
    const waiting = Array.from({ length: 150 }, (_, at) => {
      const since = new Date(Date.parse(PLACED) + (150 - at) * 1000).toISOString();
      const one = binding(overflow, { at: since });
      return { ...one, metadata: { ...one.metadata, name: `web-${at}` } };
    });
    const names = (await touched(waiting)).map(({ name }) => name);
    expect(names).toHaveLength(100);
    expect([names[0], names.at(-1)]).toEqual(['web-149', 'web-50']);
  });
});

function zone(value: string) {
  return {
    affinityName: 'zone',
    fieldSelector: { matchExpressions: [{ key: 'zone', operator: 'In', values: [value] }] },
  };
}

describe('the demand of Karmada', () => {
  const demand = (bindings: KubeObject[]) =>
    karmadaHub.demand!(reader({ resourcebindings: bindings, clusterresourcebindings: [] }), spec, 'fleet');
  const wants = {
    replicas: 6,
    replicaRequirements: { resourceRequest: { cpu: '1500m', memory: '64Mi', 'nvidia.com/gpu': '1', pods: '1' } },
  };
  const each = { cpu: '1500m', memory: '64Mi', gpu: '1' };
  const refused = (reason: string, message: string) => ({
    // Its observed generation is that of its last success, so it says nothing here.
    schedulerObservedGeneration: undefined,
    conditions: [{ type: 'Scheduled', status: 'False', reason, message, lastTransitionTime: PLACED }],
  });
  const dynamic = {
    replicaSchedulingType: 'Divided',
    replicaDivisionPreference: 'Weighted',
    weightPreference: { dynamicWeight: 'AvailableReplicas' },
  };
  const one = (reason: string, message = '', more: object = wants, replicaScheduling: object = dynamic) =>
    demand([binding({ replicaScheduling }, { spec: more, status: refused(reason, message) })]);
  const source = 'ResourceBinding shop/web';

  it('is the whole unplaced division, or the rest of one that grew', async () => {
    expect(await one('Unschedulable')).toMatchObject([{ source, namespace: 'shop', count: 6, each, since: PLACED }]);
    const placed = { ...wants, clusters: [{ name: 'own', replicas: 4 }] };
    expect(await one('Unschedulable', '', placed)).toMatchObject([{ source, count: 2, each, since: PLACED }]);
  });

  it('has the priority of its PriorityClass, else of the binding, else none', async () => {
    const classes = [
      { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'low' }, value: -5 },
    ];
    const hub = (priorityClassName: string | undefined, more: object) => {
      const requirements = { ...wants.replicaRequirements, ...(priorityClassName && { priorityClassName }) };
      const waits = { ...wants, replicaRequirements: requirements, ...more };
      const bindings = [binding({ replicaScheduling: dynamic }, { spec: waits, status: refused('Unschedulable', '') })];
      return reader({ resourcebindings: bindings, clusterresourcebindings: [], priorityclasses: classes });
    };
    const priority = async (name?: string, more: object = {}, one = hub(name, more)) => {
      const [found] = await karmadaHub.demand!(one, spec, 'fleet');
      expect(found).not.toHaveProperty('priorityClassName');
      return found!.priority;
    };
    expect(await priority('low')).toBe(-5);
    expect(await priority('system-node-critical')).toBe(2_000_001_000);
    expect(await priority('gone', { schedulePriority: { priority: 7 } })).toBe(7);
    expect(await priority('gone')).toBeUndefined();
    expect(await priority()).toBeUndefined();
    // Work is heard of though the operator may not read classes.
    const closed = hub('low', {});
    const list: typeof closed.list = async (resource, options) => {
      if (resource.plural === 'priorityclasses')
        throw new KubeApiError('GET', 403, { reason: 'Forbidden', message: '' });
      return closed.list(resource, options);
    };
    expect(await priority('low', {}, { ...closed, list })).toBeUndefined();
  });

  describe('of a custom kind', () => {
    const resource = { apiVersion: 'batch.volcano.sh/v1alpha1', kind: 'Job', namespace: 'shop', name: 'train' };
    const asked = (message: string, more: object) =>
      binding(
        { replicaScheduling: dynamic },
        { spec: { ...wants, ...more }, status: refused('NoClusterFit', message) },
      );
    const lacks = '0/1 clusters are available: 1 cluster(s) did not have the API resource.';
    const cluster = (name: string, kind: string) => ({
      apiVersion: 'cluster.karmada.io/v1alpha1',
      kind: 'Cluster',
      metadata: { name },
      status: { apiEnablements: [{ groupVersion: 'batch.volcano.sh/v1alpha1', resources: [{ kind }] }] },
    });
    const definition = (plural: string, kind: string, served = true) => ({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.batch.volcano.sh` },
      spec: { names: { kind }, versions: [{ name: 'v1alpha1', served }] },
    });
    const propagated = (plural: string, tier: string) => ({
      ...binding({ clusterAffinity: { labelSelector: { matchLabels: { tier } } } }),
      kind: 'ClusterResourceBinding',
      metadata: { name: plural },
      spec: {
        placement: { clusterAffinity: { labelSelector: { matchLabels: { tier } } } },
        resource: {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          name: `${plural}.batch.volcano.sh`,
        },
      },
    });
    const objects = {
      resourcebindings: [asked(lacks, { resource })],
      clusters: [cluster('has', 'Job'), cluster('has-not', 'Queue')],
      clusterresourcebindings: [propagated('jobs', 'gold'), propagated('queues', 'own')],
      customresourcedefinitions: [definition('jobs', 'Job'), definition('queues', 'Queue')],
    };
    const told = async (more: object = {}) => {
      const [found] = await karmadaHub.demand!(reader({ ...objects, ...more }), spec, 'fleet');
      const brought = (tier: string) => found!.customKind!.isBroughtTo({ name: 'new', labels: { tier }, zones: [] });
      return { found, brought: ['gold', 'own'].filter(brought) };
    };

    it('names members that serve it, and where Karmada would propagate it', async () => {
      const { found, brought } = await told();
      expect(found).toMatchObject({ count: 6, customKind: { kind: 'batch.volcano.sh/v1alpha1 Job' } });
      expect([...found!.customKind!.servedBy]).toEqual(['has']);
      expect(brought).toEqual(['gold']);
    });

    it('is sent to no member when its version is not served or its CRD cannot be read', async () => {
      const unserved = { customresourcedefinitions: [definition('jobs', 'Job', false)] };
      expect((await told(unserved)).brought).toEqual([]);
      const closed = reader(objects);
      const get: typeof closed.get = async () => {
        throw new KubeApiError('GET', 403, { reason: 'Forbidden', message: '' });
      };
      const [found] = await karmadaHub.demand!({ ...closed, get }, spec, 'fleet');
      expect(found!.customKind!.isBroughtTo({ name: 'new', labels: { tier: 'gold' }, zones: [] })).toBe(false);
    });

    it('is looked up only for waiting work and kinds outside Kubernetes', async () => {
      const own = { resource: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' } };
      const closed = reader({ resourcebindings: [asked('0/0 clusters are available: no cluster exists.', own)] });
      const list: typeof closed.list = async (kind, options) => {
        expect(kind.plural).not.toBe('clusters');
        return closed.list(kind, options);
      };
      const [found] = await karmadaHub.demand!({ ...closed, list }, spec, 'fleet');
      expect(found).not.toHaveProperty('customKind');
      // That no cluster serves a Deployment is an error, which no cluster more would mend.
      expect(await demand([asked(lacks, own)])).toEqual([]);
    });
  });

  it('is limited to clusters permitted by any of its affinities', async () => {
    const accepted = async (placement: object, labels: Record<string, string>, zones: string[] = []) => {
      const [found] = await demand([binding(placement, { spec: wants, status: refused('Unschedulable', '') })]);
      return found!.accepts!({ name: 'new', labels, zones });
    };
    const overflow = { ...own, overflowAffinities: [gold] };
    expect(await accepted({}, {})).toBe(true);
    expect(await accepted({ clusterAffinity: { labelSelector: own.labelSelector } }, { tier: 'own' })).toBe(true);
    expect(await accepted({ clusterAffinity: { labelSelector: own.labelSelector } }, { tier: 'gold' })).toBe(false);
    expect(await accepted({ clusterAffinities: [own, zone('a')] }, {}, ['a', 'b'])).toBe(true);
    expect(await accepted({ clusterAffinities: [overflow] }, { tier: 'gold' })).toBe(true);
    expect(await accepted({ clusterAffinities: [overflow] }, {})).toBe(false);
  });

  it.each<[string, string, number]>([
    ['SchedulerError', 'failed to select clusters: no enough resource when selecting 2 clusters', 1],
    ['SchedulerError', 'the number of feasible clusters is less than spreadConstraint.MinGroups', 1],
    ['SchedulerError', 'the number of feasible region is less than spreadConstraint.MinGroups', 1],
    ['SchedulerError', 'the server could not find the requested resource', 0],
    ['NoClusterFit', '0/0 clusters are available: no cluster exists.', 1],
    [
      'NoClusterFit',
      '0/3 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint, 2 cluster(s) had untolerated taint {multi-cluster.demo.io/initializing:NoSchedule}.',
      1,
    ],
    ['NoClusterFit', '0/1 clusters are available: 1 cluster(s) did not have the API resource.', 0],
    [
      'NoClusterFit',
      '0/1 clusters are available: 1 cluster(s) had untolerated taint {cluster.karmada.io/not-ready:NoSchedule}.',
      0,
    ],
    ['NoClusterFit', '', 0],
    ['QuotaExceeded', 'FederatedResourceQuota exceeded', 0],
    ['Success', '', 0],
  ])('%s "%s" counts or not', async (reason, message, count) => expect(await one(reason, message)).toHaveLength(count));

  it.each<[string, object | undefined, number]>([
    [
      'divided onto the fewest clusters',
      { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Aggregated' },
      1,
    ],
    ['duplicated', { replicaSchedulingType: 'Duplicated' }, 0],
    ['divided by equal weights', { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted' }, 0],
    [
      'divided by static weights',
      {
        replicaSchedulingType: 'Divided',
        replicaDivisionPreference: 'Weighted',
        weightPreference: { staticWeightList: [{ targetCluster: {}, weight: 1 }] },
      },
      0,
    ],
  ])('of what is %s, and has too few clusters to be spread over, counts or not', async (_, scheduling, count) => {
    const message = 'the number of feasible clusters is less than spreadConstraint.MinGroups';
    expect(await one('SchedulerError', message, wants, scheduling)).toHaveLength(count);
  });

  it('excludes duplicated work, which goes to any cluster', async () => {
    const message = '0/0 clusters are available: no cluster exists.';
    expect(await one('NoClusterFit', message, wants, { replicaSchedulingType: 'Duplicated' })).toEqual([]);
  });

  it('carries further requests and node rules', async () => {
    const terms = { nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] }] };
    const tolerations = [{ key: 'team', operator: 'Exists' }];
    const nodeClaim = { nodeSelector: { tier: 'db' }, hardNodeAffinity: terms, tolerations };
    const resourceRequest = { cpu: '1', 'hugepages-2Mi': '4Mi', pods: '1' };
    const [found] = await one('Unschedulable', '', {
      replicas: 1,
      replicaRequirements: { resourceRequest, nodeClaim },
    });
    expect(found).toMatchObject({ each: { cpu: '1' }, others: { 'hugepages-2Mi': '4Mi' } });
    expect(found!.others).not.toHaveProperty('pods');
    expect(found!.nodes).toEqual({
      nodeSelector: { tier: 'db' },
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
      tolerations,
    });
    const [plain] = await one('Unschedulable');
    expect(plain).not.toHaveProperty('nodes');
    expect(plain).not.toHaveProperty('others');
  });

  it('is for one cluster where the placement requires one, and for that cluster once replicas run there', async () => {
    const spreadConstraints = [{ spreadByField: 'cluster', minGroups: 1, maxGroups: 1 }];
    const placed = { clusters: [{ name: 'shop--private', replicas: 3 }] };
    const whole = { replicas: 5, placement: { spreadConstraints } };
    const [fresh] = await one('Unschedulable', '', whole);
    expect(fresh).toMatchObject({ count: 5, inOneCluster: true });
    const cluster = (name: string) => ({ name, labels: {}, zones: [] });
    expect(['shop--private', 'shop--new'].map((name) => fresh!.accepts!(cluster(name)))).toEqual([true, true]);
    const [grown] = await one('Unschedulable', '', { ...whole, ...placed });
    expect(grown).toMatchObject({ count: 2 });
    expect(grown).not.toHaveProperty('inOneCluster');
    expect(['shop--private', 'shop--new'].map((name) => grown!.accepts!(cluster(name)))).toEqual([true, false]);
    const spread = {
      ...whole,
      ...placed,
      placement: { spreadConstraints: [{ ...spreadConstraints[0], maxGroups: 2 }] },
    };
    const [divided] = await one('Unschedulable', '', spread);
    expect(divided).toMatchObject({ count: 2 });
    expect(divided!.accepts!(cluster('shop--new'))).toBe(true);
  });

  it('contains each component of work with several', async () => {
    const components = [
      { name: 'manager', replicas: 1, replicaRequirements: { resourceRequest: { cpu: '1' } } },
      { name: 'worker', replicas: 3, replicaRequirements: { resourceRequest: { cpu: '2' } } },
    ];
    expect(await one('Unschedulable', '', { components })).toMatchObject([
      { source, count: 1, each: { cpu: '1' }, since: PLACED, inOneCluster: true },
      { source, count: 3, each: { cpu: '2' }, since: PLACED, inOneCluster: true },
    ]);
    // It is divided as a whole, by no weights.
    const message = 'failed to select clusters: no enough resource when selecting 1 clusters';
    expect(await one('SchedulerError', message, { components }, { replicaSchedulingType: 'Divided' })).toHaveLength(2);
  });
});

import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { CLUSTER_ID, CLUSTERNET_CLUSTERS, clusternetHub, SUBSCRIPTION_UID } from '../../../operator/hubs/clusternet.ts';
import type { Member } from '../../../operator/hubs/contract.ts';
import { type KubeObject, NAMESPACES, SECRETS } from '../../../operator/kube/resources.ts';
import { member, reader, textOf } from './hub-members.ts';

const SPEC: HubSpec = { type: 'Clusternet' };
const NAMESPACE = 'clusternet-shop--demo';
const ID = '01234567-89ab-cdef-0123-456789abcdef';
const ours = { [CLUSTER_ID]: ID, 'multi-cluster.demo.io/membership': 'uid' };
const namespace = (labels: Record<string, string> = ours): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: NAMESPACE, labels },
});
const cluster = (more: object = {}): KubeObject => ({
  apiVersion: 'clusters.clusternet.io/v1beta1',
  kind: 'ManagedCluster',
  metadata: {
    name: 'shop--demo',
    namespace: NAMESPACE,
    labels: { tier: 'silver' },
    creationTimestamp: '2026-11-22T12:00:00Z',
  },
  ...more,
});
const subscription = (name: string, ...bindingClusters: string[]): KubeObject => ({
  apiVersion: 'apps.clusternet.io/v1alpha1',
  kind: 'Subscription',
  metadata: { name, namespace: 'shop', uid: `uid-of-${name}` },
  status: { bindingClusters },
});
const inside = (kind: string, name: string): KubeObject => ({
  apiVersion: 'apps.clusternet.io/v1alpha1',
  kind,
  metadata: { name, namespace: NAMESPACE, labels: { [CLUSTER_ID]: ID, [SUBSCRIPTION_UID]: 'uid-of-web' } },
});

type Objects = Record<string, KubeObject[]>;
const look = (one: Member, objects: Objects) => clusternetHub.observe(reader(objects), undefined, one, SPEC);
const joined = async (one: Member, objects: Objects = {}) =>
  clusternetHub.join(one, SPEC, await look(one, objects)).flatMap(({ apply = [] }) => apply);
const managed = async (one: Member, objects: Objects = {}) =>
  (await joined(one, objects)).find(({ resource }) => resource === CLUSTERNET_CLUSTERS);
const taintsOf = (object: KubeObject | undefined) =>
  (object?.spec as { taints: { key: string }[] } | undefined)?.taints.map(({ key }) => key);
const taint = (key: string) => ({ key, effect: 'NoSchedule' });

describe('a cluster that joins Clusternet', () => {
  it('has a namespace, a deployer Secret and a ManagedCluster, with one shared id', async () => {
    const wanted = await joined(member());
    expect(wanted.map(({ resource }) => resource)).toEqual([NAMESPACES, SECRETS, CLUSTERNET_CLUSTERS]);
    const ids = wanted.map(({ object }) => object.metadata.labels?.[CLUSTER_ID]);
    expect(new Set([...ids, (wanted[2]?.object.spec as { clusterId?: string } | undefined)?.clusterId]).size).toBe(1);
    expect(wanted[0]?.object.metadata.labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    expect(ids[0]).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
    expect(textOf(wanted[1], 'apiserver-advertise-url')).toBe('https://demo.example.com:6443');
    expect(textOf(wanted[1], 'token')).toBe('token-of-demo');
  });

  it('keeps its id while its namespace exists, whatever its token is', async () => {
    const renewed = member({ credentials: { access: { token: 'another' } } });
    const wanted = await joined(renewed, { namespaces: [namespace()] });
    expect(wanted.map(({ object }) => object.metadata.labels?.[CLUSTER_ID])).toEqual([ID, ID, ID]);
    const [first] = await joined(member());
    const [again] = await joined(renewed);
    expect(again?.object.metadata.labels?.[CLUSTER_ID]).not.toBe(first?.object.metadata.labels?.[CLUSTER_ID]);
  });

  it.each<[string, Partial<Member>, string[], string[], string]>([
    ['is closed from the first', { closed: 'Initializing' }, [], ['multi-cluster.demo.io/initializing'], 'True'],
    ['is opened', {}, ['multi-cluster.demo.io/initializing'], [], 'True'],
    [
      'keeps what Clusternet and people have set',
      {},
      ['theirs', 'multi-cluster.demo.io/initializing'],
      ['theirs'],
      'True',
    ],
    ['is not Ready while it sleeps, and has no taint that would delete', { closed: 'Asleep' }, [], [], 'False'],
    ['is not Ready while it does not answer', { answers: false }, [], [], 'False'],
  ])('%s', async (_, more, before, after, ready) => {
    const live = cluster({ spec: { taints: before.map(taint) } });
    const wanted = await managed(member(more), { managedclusters: [live] });
    expect(taintsOf(wanted?.object)).toEqual(after);
    expect(wanted?.status?.conditions).toMatchObject([{ type: 'Ready', status: ready }]);
  });

  it("needs no heartbeat for years, and keeps Clusternet's conditions", async () => {
    const init = {
      type: 'ClusterInit',
      status: 'True',
      reason: 'x',
      message: '',
      lastTransitionTime: '2026-11-22T12:00:00Z',
    };
    const live = cluster({ status: { conditions: [init, { type: 'Ready', status: 'False' }] } });
    const wanted = await managed(member({ capacity: { cpu: '4', gpu: '2' } }), { managedclusters: [live] });
    expect(wanted?.status).toMatchObject({
      lastObservedTime: '2026-11-22T12:00:00Z',
      allocatable: { cpu: '4', 'nvidia.com/gpu': '2' },
      conditions: [{ type: 'ClusterInit' }, { type: 'Ready', status: 'True' }],
    });
  });
});

describe('a cluster that leaves Clusternet', () => {
  const leaving = member({ closed: 'Leaving' });
  const objects: Objects = {
    namespaces: [namespace()],
    managedclusters: [cluster()],
    subscriptions: [subscription('web', `${NAMESPACE}/shop--demo`, 'b/b'), subscription('other', 'b/b')],
    bases: [inside('Base', 'web-1')],
    descriptions: [inside('Description', 'web-1-generic')],
    helmreleases: [inside('HelmRelease', 'web-1-chart')],
  };
  const dividing = {
    ...subscription('web', `${NAMESPACE}/shop--demo`),
    spec: { schedulingStrategy: 'Dividing' },
  };
  const allowed: HubSpec = { ...SPEC, drain: { allowDelete: true } };

  it('is tainted only when that deletes nothing, or deletion is allowed', async () => {
    const placed = await look(leaving, objects);
    expect(clusternetHub.placements!(leaving, placed)).toEqual(['Subscription shop/web']);
    expect(clusternetHub.cordon!(leaving, SPEC, placed)).toEqual([]);
    for (const [spec, seen] of [
      [allowed, placed],
      [SPEC, await look(leaving, { ...objects, subscriptions: [] })],
    ] as const)
      expect(taintsOf(clusternetHub.cordon!(leaving, spec, seen)[0]?.object)).toEqual([
        'multi-cluster.demo.io/leaving',
      ]);
  });

  it("keeps the labels that Subscriptions selected, whatever the cluster's labels are now", async () => {
    const [wanted] = clusternetHub.cordon!(leaving, allowed, await look(leaving, objects));
    expect(wanted?.object.metadata.labels).toMatchObject({ tier: 'silver' });
    expect(wanted?.status).toBeUndefined();
  });

  it.each<[string, Objects, boolean]>([
    ['waits with its ManagedCluster until Clusternet has taken all out of it', objects, true],
    ['does not wait for what stays bound to it', { ...objects, subscriptions: [dividing] }, false],
    ['has nothing to wait for', { ...objects, descriptions: [] }, false],
  ])('%s', async (_, there, waits) => {
    const [, last] = clusternetHub.leave(leaving, allowed, await look(leaving, there));
    expect(last?.places.map(({ name }) => name)).toEqual(['shop--demo']);
    expect(last?.waiting?.includes('Description web-1-generic') ?? false).toBe(waits);
  });

  it('is not waited for when dead, and hanging objects are forced out of its namespace', async () => {
    const dead = { ...leaving, answers: false };
    const removals = clusternetHub.leave(dead, SPEC, await look(dead, objects));
    expect(removals[1]?.waiting).toBeUndefined();
    expect(removals.at(-1)?.force?.map((one) => `${one.resource.plural} ${'name' in one && one.name}`)).toEqual([
      'helmreleases web-1-chart',
      'descriptions web-1-generic',
      'bases web-1',
    ]);
  });

  it('deletes nothing in a foreign namespace of its name', async () => {
    const theirs = { ...objects, namespaces: [namespace({ [CLUSTER_ID]: ID })] };
    const removals = clusternetHub.leave(leaving, SPEC, await look(leaving, theirs));
    expect(
      removals.flatMap(({ places, force = [] }) => [...places, ...force]).map((one) => 'name' in one && one.name),
    ).not.toContain('web-1');
  });
});

it('the Clusternet hub reports that it reaches no cluster through a proxy', async () => {
  const spec: HubSpec = { ...SPEC, member: { proxyURL: 'http://proxy.example.com:3128' } };
  expect(await clusternetHub.validate(reader({}), spec)).toEqual([expect.stringContaining('by no proxy')]);
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  ADDONS,
  KLUSTERLETS,
  MANAGEDCLUSTERS,
  MANIFESTWORKS,
  type ManagedCluster,
} from '../../operator/hubs/managed-cluster.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CONFIGMAPS,
  CSRS,
  DEPLOYMENTS,
  type KubeObject,
  NAMESPACES,
  RBAC_ROLES,
  type Resource,
  ROLEBINDINGS,
  SECRETS,
  SERVICEACCOUNTS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import type { TestApiserver } from '../kit/apiserver.ts';
import { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { programs } from '../kit/hubs/programs.ts';
import { RealOpenClusterManagement } from '../kit/hubs/real-open-cluster-management.ts';

const PATIENCE_MS = 240_000;
const IDLE_MS = 12_000;
const OCM = 'open-cluster-management.io';
const kind = (group: string, version: string, plural: string, name: string): Resource => ({
  group: `${group}.${OCM}`,
  version,
  plural,
  kind: name,
  namespaced: true,
});
const BINDINGS = kind('cluster', 'v1beta2', 'managedclustersetbindings', 'ManagedClusterSetBinding');
const PLACEMENTS = kind('cluster', 'v1beta1', 'placements', 'Placement');
const DECISIONS = kind('cluster', 'v1beta1', 'placementdecisions', 'PlacementDecision');
const REPLICASETS = kind('work', 'v1alpha1', 'manifestworkreplicasets', 'ManifestWorkReplicaSet');

describe.skipIf(!programs)('the real Open Cluster Management', () => {
  let hub: RealOpenClusterManagement;
  let testbed: HubTestbed;
  let second: TestApiserver;
  let third: TestApiserver;
  const began = Date.now();
  const saw = (what: string) => console.log(`ocm ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);
  beforeAll(async () => {
    hub = await RealOpenClusterManagement.start(programs!);
    saw('Open Cluster Management runs');
    const spec = { type: 'OpenClusterManagement' as const, member: { agentImage: 'registration-operator' } };
    testbed = await HubTestbed.start(spec, [], 'admin', hub.apiserver);
    second = await testbed.addMember('small', '2', '2Gi');
    third = await testbed.addMember('third', '8', '16Gi');
    for (const [name, member] of Object.entries({ demo: testbed.member, small: second, third })) {
      await member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
      await hub.controllersOf(member, name);
    }
    await testbed.startOperator();
    saw('three clusters and the operator run');
  });
  afterAll(async () => {
    await hub?.stop();
    await testbed?.stop();
  });

  const make = (resource: Resource, name: string, namespace: string, spec: object) =>
    testbed.garden.client.apply(
      { apiVersion: `${resource.group}/${resource.version}`, kind: resource.kind, metadata: { name, namespace }, spec },
      { resource },
    );
  /** Without those to the Hub, whose counts follow at a pace of their own. */
  const writesSince = (length: number) =>
    testbed.line.writes.slice(length).filter((write) => !write.includes('/hubs/'));
  const cluster = async (name: string) =>
    (await testbed.garden.client.getOrUndefined(MANAGEDCLUSTERS, name)) as ManagedCluster | undefined;
  const decided = async () => {
    const { items } = await testbed.garden.client.list(DECISIONS, { namespace: 'shop' });
    return items.flatMap(({ status }) => (status?.decisions ?? []).map((one: any) => one.clusterName)).sort();
  };
  const deployed = ({ client }: TestApiserver, name: string) => client.getOrUndefined(CONFIGMAPS, name, 'default');
  /** What on this API server names the cluster or its agents, except what the operator keeps of it in the garden. */
  const leftovers = async ({ client }: TestApiserver, name: string, more: readonly Resource[] = []) => {
    const rights = [CLUSTERROLES, CLUSTERROLEBINDINGS, RBAC_ROLES, ROLEBINDINGS, SERVICEACCOUNTS, SECRETS];
    const lists = await Promise.all([NAMESPACES, ...rights, ...more].map((one) => client.list(one)));
    return lists
      .flatMap(({ items }) => items.map((one) => `${one.kind} ${one.metadata.namespace ?? ''}/${one.metadata.name}`))
      .filter((text) => new RegExp(`shop-+${name}`).test(text));
  };
  const OF_HUB = [MANAGEDCLUSTERS, KLUSTERLETS, MANIFESTWORKS, ADDONS, CSRS, DEPLOYMENTS];

  it('accepts two clusters, signs their agents, and opens them when they report capacity', async () => {
    const made = Date.now();
    await testbed.makeHub();
    for (const name of ['demo', 'small']) {
      await testbed.makeCluster({}, name);
      testbed.open([], name);
    }
    for (const name of ['demo', 'small'])
      await testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    saw(`both have joined ${Date.now() - made} ms after they were made`);
    const { metadata, spec, status } = (await cluster('shop--small'))!;
    saw(JSON.stringify({ labels: metadata.labels, taints: spec?.taints, allocatable: status?.allocatable }));
    const conditions = (status?.conditions ?? []).map(({ type, status: is }) => `${type}=${is}`);
    saw(JSON.stringify(conditions));
    const accepted = ['HubAcceptedManagedCluster', 'ManagedClusterJoined', 'ManagedClusterConditionAvailable'];
    expect(conditions).toEqual(expect.arrayContaining(accepted.map((type) => `${type}=True`)));
    expect(spec?.taints ?? []).toEqual([]);
    expect(status?.allocatable).toMatchObject({ cpu: '2', memory: '2Gi' });
    const requests = (await testbed.garden.client.list(CSRS)).items;
    const approvals = requests.map((one) => [one.spec.username, one.status?.conditions?.map((c: any) => c.reason)]);
    saw(JSON.stringify(approvals));
    for (const name of ['demo', 'small'])
      expect(approvals).toContainEqual([`system:serviceaccount:kube-system:coppice-shop--${name}`, ['CoppiceJoin']]);
    expect(requests.every((one) => one.status?.certificate)).toBe(true);
    await testbed.quiet();
    saw(`writes for both joins: ${writesSince(0).length}`);
  });

  it("places work by Coppice's labels, and its agents apply it", async () => {
    await make(BINDINGS, 'default', 'shop', { clusterSet: 'default' });
    const labelSelector = { matchLabels: { 'multi-cluster.demo.io/provider': 'local' } };
    await make(PLACEMENTS, 'local', 'shop', { predicates: [{ requiredClusterSelector: { labelSelector } }] });
    await expect.poll(decided, { timeout: PATIENCE_MS }).toEqual(['shop--demo', 'shop--small']);
    saw('the Placement has chosen both');
    await make(REPLICASETS, 'web', 'shop', {
      manifestWorkTemplate: { workload: { manifests: [configMap('web')] } },
      placementRefs: [{ name: 'local', rolloutStrategy: { type: 'All' } }],
    });
    for (const member of [testbed.member, second])
      await expect.poll(() => deployed(member, 'web'), { timeout: PATIENCE_MS }).toBeDefined();
    saw('what the ManifestWorkReplicaSet says is in both');
    await make(MANIFESTWORKS, 'db', 'shop--demo', { workload: { manifests: [configMap('db')] } });
    await expect.poll(() => deployed(testbed.member, 'db'), { timeout: PATIENCE_MS }).toBeDefined();
    saw('a ManifestWork is applied');
  });

  it('adds a third cluster, to which the Placement then brings the work of the two', async () => {
    await testbed.quiet();
    const { length } = testbed.line.writes;
    const made = Date.now();
    await testbed.makeCluster({}, 'third');
    testbed.open([], 'third');
    await testbed.until('third to join', () => testbed.state('test', 'third') === 'Joined', PATIENCE_MS);
    saw(`the third has joined ${Date.now() - made} ms after it was usable`);
    await expect.poll(() => deployed(third, 'web'), { timeout: PATIENCE_MS }).toBeDefined();
    saw(`the ConfigMap is in it ${Date.now() - made} ms after it was usable`);
    expect(await decided()).toEqual(['shop--demo', 'shop--small', 'shop--third']);
    await testbed.quiet();
    saw(`writes for its join: ${writesSince(length).length}`);
  });

  it('gets no writes without changes, though agents report', async () => {
    await testbed.quiet();
    const { length } = testbed.line.writes;
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    const writes = testbed.line.writes.slice(length);
    saw(`writes in ${IDLE_MS} ms: ${JSON.stringify(writes)}`);
    expect(writes).toEqual([]);
  });

  it('moves work away from a leaving cluster, and then keeps nothing of it', async () => {
    const { length } = testbed.line.writes;
    const left = Date.now();
    const { client } = testbed.garden;
    await client.delete(WORKERCLUSTERS, 'small', 'shop');
    await expect.poll(decided, { timeout: PATIENCE_MS }).toEqual(['shop--demo', 'shop--third']);
    saw(`the Placement has dropped it after ${Date.now() - left} ms`);
    await testbed.until('small to have left', () => !testbed.membership('test', 'small'), PATIENCE_MS);
    saw(`left after ${Date.now() - left} ms, with ${writesSince(length).length} writes`);
    expect(await deployed(second, 'web')).toBeUndefined();
    expect(await deployed(testbed.member, 'web')).toBeDefined();
    expect(await leftovers(testbed.garden, 'small', OF_HUB)).toEqual([]);
    // Of ours there is the account by which the hub came in: it would have gone with the cluster.
    const inMember = () => leftovers(second, 'small');
    await expect.poll(inMember, { timeout: PATIENCE_MS }).toEqual([]);
    saw('nothing of it is left in the hub, nor of the hub in it');
  });

  it('releases a dead cluster by force, and keeps nothing of it', async () => {
    await testbed.makeHub('test', { drain: { timeout: '5s', force: true } });
    await testbed.member.kill();
    await testbed.silence();
    const left = Date.now();
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('demo to have left', () => !testbed.membership(), PATIENCE_MS);
    saw(`left by force after ${Date.now() - left} ms`);
    const inHub = () => leftovers(testbed.garden, 'demo', OF_HUB);
    await expect.poll(inHub, { timeout: PATIENCE_MS }).toEqual([]);
    saw('nothing of it is left in the hub');
  });
});

const configMap = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { key: 'value' },
});

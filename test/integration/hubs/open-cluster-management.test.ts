import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ADDONS,
  KLUSTERLETS,
  MANAGEDCLUSTERS,
  MANIFESTWORKS,
  type ManagedCluster,
  TAINT,
} from '../../../operator/hubs/managed-cluster.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  CONFIGMAPS,
  CSRS,
  type KubeObject,
  NAMESPACES,
  RBAC_ROLES,
  ROLEBINDINGS,
  SECRETS,
  SERVICEACCOUNTS,
} from '../../../operator/kube/resources.ts';
import { keepsMembers } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import {
  CLUSTER_FINALIZERS,
  OpenClusterManagement,
  WORK_FINALIZER,
} from '../../kit/hubs/open-cluster-management-stand-in.ts';

async function open(): Promise<{ testbed: HubTestbed; standIn: OpenClusterManagement }> {
  const testbed = await HubTestbed.start({ type: 'OpenClusterManagement' }, ['open-cluster-management']);
  const { client } = testbed.garden;
  for (const one of [client, testbed.member.client])
    await one.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
  const namespace = 'open-cluster-management';
  await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  await client.apply(operator(namespace));
  const standIn = new OpenClusterManagement(client);
  await standIn.start();
  testbed.onStop(() => standIn.stop());
  return { testbed, standIn };
}

keepsMembers({
  costs: { join: 28, leave: 16 },
  type: 'OpenClusterManagement',
  open: async () => (await open()).testbed,
  kinds: [MANAGEDCLUSTERS, KLUSTERLETS, SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS, NAMESPACES],
  shows: '/managedclusters/shop--demo',
  taken: {
    resource: MANAGEDCLUSTERS,
    object: {
      apiVersion: 'cluster.open-cluster-management.io/v1',
      kind: 'ManagedCluster',
      // Before it joins, so that the hub has nothing more to write.
      metadata: { name: 'shop--demo', finalizers: [...CLUSTER_FINALIZERS] },
      spec: { hubAcceptsClient: false },
    },
  },
  theirs: ({ id }) => {
    const object: KubeObject = {
      apiVersion: 'cluster.open-cluster-management.io/v1',
      kind: 'ManagedCluster',
      metadata: { name: 'theirs' },
      spec: { hubAcceptsClient: false },
      status: { conditions: [], version: {}, clusterClaims: [{ name: 'id.k8s.io', value: id }] },
    };
    const whyNot = "ManagedCluster theirs of the hub has an agent of somebody else's";
    return { name: 'theirs', objects: [{ resource: MANAGEDCLUSTERS, object }], whyNot };
  },
});

const NAME = 'shop--demo';

describe('a cluster in Open Cluster Management', () => {
  let testbed: HubTestbed;
  let standIn: OpenClusterManagement;
  beforeAll(async () => {
    ({ testbed, standIn } = await open());
    await testbed.startOperator();
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    await testbed.makeHub();
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  });

  const cluster = async () =>
    (await testbed.garden.client.getOrUndefined(MANAGEDCLUSTERS, NAME)) as ManagedCluster | undefined;
  const taint = async () => (await cluster())?.spec?.taints?.find(({ key }) => key === TAINT);
  const waiting = () => testbed.membership()?.status?.waiting ?? '';
  const leave = (more: Parameters<HubTestbed['makeHub']>[1] = {}) =>
    testbed.makeHub('test', { ...more, clusterSelector: { matchLabels: { fleet: 'other' } } });
  const left = () => testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
  const write = (labels: Record<string, string> = {}) =>
    testbed.garden.client.create(manifestWork(labels), { resource: MANIFESTWORKS });
  const deployed = () => testbed.member.client.getOrUndefined(CONFIGMAPS, 'web', 'default');
  /** What is in the hub that names the cluster or its agents, except what the operator keeps of it. */
  const leftovers = async () => {
    const kinds = [MANAGEDCLUSTERS, KLUSTERLETS, NAMESPACES, CSRS, SECRETS, SERVICEACCOUNTS, MANIFESTWORKS, ADDONS];
    const rights = [CLUSTERROLES, CLUSTERROLEBINDINGS, RBAC_ROLES, ROLEBINDINGS];
    const lists = await Promise.all([...kinds, ...rights].map((kind) => testbed.garden.client.list(kind)));
    return lists
      .flatMap(({ items }) =>
        items.map(({ kind, metadata: { namespace = '', name } }) => `${kind} ${namespace}/${name}`),
      )
      .filter((text) => /shop-+demo/.test(text));
  };

  it('gets its ManifestWorks, is cordoned before it is drained, and leaves nothing', async () => {
    expect((await cluster())?.spec).toMatchObject({ hubAcceptsClient: true });
    expect(await taint()).toBeUndefined();
    await write({ 'work.open-cluster-management.io/manifestworkreplicaset': 'shop.web' });
    await expect.poll(deployed).toBeDefined();
    await leave();
    await testbed.until('it to be said', () => waiting().includes('the hub moves ManifestWork shop--demo/web'));
    await expect.poll(taint).toMatchObject({ value: 'Leaving', effect: 'NoSelect' });
    expect((await cluster())?.metadata.deletionTimestamp).toBeUndefined();
    // Nothing of the Placement is there any more, and so its ManifestWork goes.
    await testbed.garden.client.delete(MANIFESTWORKS, 'web', NAME);
    await left();
    expect(await deployed()).toBeUndefined();
    expect(await leftovers()).toEqual([]);
  });

  it('stays while a ManifestWork on it has no other place', async () => {
    await write();
    await leave();
    await testbed.until('it to be said', () => waiting().includes('would be deleted with the membership'));
    expect(await cluster()).toBeDefined();
    await expect.poll(deployed).toBeDefined();
    await leave({ drain: { allowDelete: true } });
    await left();
    expect(await deployed()).toBeUndefined();
    expect(await leftovers()).toEqual([]);
  });

  it('is released by force when dead, though nothing deletes its ManifestWorks', async () => {
    await write();
    await expect.poll(deployed).toBeDefined();
    await testbed.garden.client.create(addon, { resource: ADDONS });
    standIn.answers = false;
    await leave({ drain: { timeout: '1s', force: true } });
    await left();
    expect(await leftovers()).toEqual([]);
    standIn.answers = true;
    await testbed.member.client.delete(CONFIGMAPS, 'web', 'default');
  });

  it('is released by force from a hub whose controllers are down', async () => {
    await write();
    standIn.runs = false;
    standIn.answers = false;
    await leave({ drain: { timeout: '1s', force: true } });
    await left();
    expect(await leftovers()).toEqual([]);
    standIn.runs = true;
    standIn.answers = true;
  });
});

const operator = (namespace: string): KubeObject => {
  const labels = { app: 'klusterlet' };
  const containers = [{ name: 'klusterlet', image: 'registration-operator:test' }];
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'klusterlet', namespace },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  };
};

const manifestWork = (labels: Record<string, string>): KubeObject => ({
  apiVersion: 'work.open-cluster-management.io/v1',
  kind: 'ManifestWork',
  metadata: { name: 'web', namespace: NAME, labels, finalizers: [WORK_FINALIZER] },
  spec: {
    workload: {
      manifests: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'web', namespace: 'default' } }],
    },
  },
});

const addon: KubeObject = {
  apiVersion: 'addon.open-cluster-management.io/v1alpha1',
  kind: 'ManagedClusterAddOn',
  metadata: { name: 'proxy', namespace: NAME, finalizers: ['addon.open-cluster-management.io/addon-pre-delete'] },
  spec: {},
};

import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { ANNOTATIONS, LABELS } from '../../../operator/api/group.ts';
import { SERVICEEXPORTS, SERVICEIMPORTS } from '../../../operator/controllers/membership/exports.ts';
import { readerOf } from '../../../operator/controllers/membership/two-sides.ts';
import { CLUSTER_INVENTORY } from '../../../operator/garden/daemon/inventory.ts';
import { CLUSTERPROFILES } from '../../../operator/hubs/cluster-profile.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import {
  CLUSTERROLES,
  HUBS,
  type KubeObject,
  MEMBERSHIPS,
  NAMESPACES,
  type Pod,
  type Resource,
  SECRETS,
  SERVICEACCOUNTS,
  SERVICES,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { sweepMember } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import { applyFolder } from '../../kit/hubs/serve-kinds.ts';
import { type CommandResult, runCoppice } from '../../kit/run.ts';

const SPEC = {
  type: 'ClusterProfile',
  kubeconfigRef: { name: 'hub' },
  clusterProfile: { namespace: 'fleet' },
  drain: { timeout: '1s', force: true },
} as const;

const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'shop' },
  spec: { nodeName: 'one', containers: [{ name: 'web' }] },
} as Pod;

/** A garden, a cluster of it, and a hub that is another API server. */
describe('an audited hub, or a cluster that leaves it,', () => {
  let testbed: HubTestbed;
  let hub: TestApiserver;
  beforeAll(async () => {
    [testbed, hub] = await Promise.all([HubTestbed.start(SPEC, []), startApiserver()]);
    testbed.onStop(() => hub.stop());
    await applyFolder(hub.client, CLUSTER_INVENTORY);
    await hub.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fleet' } });
    await secret('kube-system', 'hub', hub.kubeconfig);
    await testbed.startOperator();
  });
  afterAll(() => testbed?.stop());

  const secret = (namespace: string, name: string, kubeconfig: string) =>
    testbed.garden.client.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace },
      data: { value: Buffer.from(kubeconfig).toString('base64') },
    });
  const joined = async (pods: readonly Pod[] = []) => {
    await testbed.makeHub();
    await testbed.makeCluster();
    await secret('shop', 'demo-kubeconfig', testbed.member.kubeconfig);
    testbed.open(pods);
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  };
  const audit = async (...more: string[]): Promise<CommandResult & { lines: string[] }> => {
    const { directory, kubeconfig } = testbed.garden;
    const file = join(directory, 'admin.kubeconfig');
    await writeFile(file, kubeconfig);
    const home = join(directory, 'home');
    const result = await runCoppice(['hubs', 'audit', ...more, '--kubeconfig', file], { home, tools: home });
    return { ...result, lines: result.stdout.trim().split('\n').slice(1).sort() };
  };
  const inHub = async () => {
    const found = await Promise.all(
      [CLUSTERPROFILES, SECRETS].map((kind) => hub.client.list(kind, { labelSelector: LABELS.membership })),
    );
    return found
      .flatMap(({ items }) => items)
      .map(({ kind, metadata }) => `${kind} ${metadata.namespace}/${metadata.name}`);
  };
  const gone = async () => {
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
    await destroyed();
  };
  /** What the rest of the operator does. */
  const destroyed = async () => {
    await testbed.garden.client
      .mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } })
      .catch(() => {});
    await sweepMember(testbed);
  };

  it('has no findings in the normal state', async () => {
    await joined();
    expect(await audit()).toMatchObject({ code: 0, stdout: '' });
  });

  it('does not use the kubeconfig of an attached cluster to which the operator has not connected yet', async () => {
    const say = (status: object) =>
      testbed.garden.client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { status }, { subresource: 'status' });
    await say({ mode: 'Attached', endpoint: 'https://demo.example.com' });
    const refused = await audit();
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain(
      `could not check: cluster shop/demo: its kubeconfig points to ${testbed.member.url}`,
    );
    await say({ endpoint: testbed.member.url, clusterIdentity: 'another' });
    expect((await audit()).stderr).toContain(
      'could not check: cluster shop/demo: its kubeconfig points to another cluster',
    );
    await say({ mode: null, endpoint: null, clusterIdentity: null });
  });

  it('finds remains of a forced leave while the hub was away, and deletes them when it is back', async () => {
    await hub.kill();
    await gone();
    const away = await audit();
    expect(away.code).toBe(1);
    expect(away.stderr).toContain('could not check: Hub test');

    await hub.start();
    const [profile] = (await hub.client.list(CLUSTERPROFILES)).items;
    const others = {
      // Of another garden, and of an operator before gardens were said.
      theirs: { ...profile!.metadata.labels, [LABELS.garden]: 'another' },
      unknown: { [LABELS.membership]: 'somebody' },
    };
    for (const [name, labels] of Object.entries(others))
      await hub.client.apply({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'fleet', labels } });

    const found = await audit();
    expect(found.code).toBe(1);
    expect(found.lines).toEqual([
      expect.stringMatching(
        /^ClusterProfile fleet\/shop--demo +Hub test +cluster shop\/demo in Hub test; the cluster is gone +"coppice hubs audit --clean" removes it$/,
      ),
      expect.stringMatching(/^Secret fleet\/shop--demo +Hub test /),
      expect.stringMatching(
        /^Secret fleet\/unknown +Hub test .* it does not say +if it is of this garden: kubectl label /,
      ),
    ]);
    expect(await inHub()).toHaveLength(4);

    // It is in the way of the next cluster of this name.
    await testbed.makeCluster();
    const waiting = () => testbed.membership()?.status?.waiting ?? '';
    await testbed.until('it to be said', () => waiting().includes('was not made for this membership'));

    const cleaned = await audit('--clean');
    expect(cleaned.stderr).toContain(
      'Removing from Hub test what the membership of cluster shop/demo in Hub test left behind',
    );
    // Nobody knows whose the one is that says no garden.
    expect(cleaned.code).toBe(1);
    const { name, namespace } = testbed.membership()!.metadata;
    await testbed.garden.client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { labels: { look: 'now' } } });
    await testbed.until('the next one to join', () => testbed.state() === 'Joined');
    await gone();
    expect((await inHub()).sort()).toEqual(['Secret fleet/theirs', 'Secret fleet/unknown']);

    await hub.client.delete(SECRETS, 'unknown', 'fleet');
    expect(await audit()).toMatchObject({ code: 0, stdout: '' });
    expect(await inHub()).toEqual(['Secret fleet/theirs']);
  });

  it('finds in a cluster the remains of a hub that released it', async () => {
    await joined();
    await testbed.makeHub('test', { orphan: true });
    await testbed.garden.client.delete(HUBS, 'test');
    await testbed.until('the hub to be gone', () => testbed.hubs.size === 0);
    const found = await audit('-o', 'json');
    expect(found.code).toBe(1);
    const { leftOvers } = JSON.parse(found.stdout) as { leftOvers: { kind: string; where: string; cause: string }[] };
    const inMember = leftOvers.filter(({ where }) => where === 'cluster shop/demo');
    expect(inMember.map(({ kind, cause }) => `${kind} ${cause}`).sort()).toEqual([
      'ClusterRole HubGone',
      'ClusterRoleBinding HubGone',
      'ServiceAccount HubGone',
    ]);
    expect((await audit('--clean')).code).toBe(0);
    const left = await Promise.all(
      [SERVICEACCOUNTS, CLUSTERROLES].map((kind) =>
        testbed.member.client.list(kind, { labelSelector: LABELS.membership }),
      ),
    );
    expect(left.flatMap(({ items }) => items)).toEqual([]);
  });

  it('accepts objects of an operator without garden ID, and the next reconciliation adds it', async () => {
    await hub.client.deleteCollection(CLUSTERPROFILES, { namespace: 'fleet' });
    await hub.client.deleteCollection(SECRETS, { namespace: 'fleet' });
    await joined();
    await testbed.quiet();
    await testbed.stopOperator();
    const garden = (await testbed.garden.client.get(NAMESPACES, 'kube-system')).metadata.uid;
    const profile = async () => (await hub.client.list<KubeObject>(CLUSTERPROFILES)).items[0]!.metadata;
    const { name, namespace } = await profile();
    const older = [LABELS.garden, LABELS.hub, LABELS.member, LABELS.memberNamespace, LABELS.memberUID];
    const labels = Object.fromEntries(older.map((label) => [label, null]));
    await hub.client.mergePatch(CLUSTERPROFILES, name, namespace, { metadata: { labels } });
    expect(await audit()).toMatchObject({ code: 0, stdout: '' });
    await testbed.startOperator();
    testbed.open();
    await expect
      .poll(async () => (await profile()).labels)
      .toMatchObject({ [LABELS.garden]: garden, [LABELS.hub]: 'test' });
  });

  it('is not destroyed while it runs work that no hub placed, if the Hub says so, or else reports it', async () => {
    const pods: Pod[] = [POD];
    await joined(pods);
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'default' } };
    await testbed.member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
    await testbed.member.client.apply({ ...service, spec: { type: 'LoadBalancer', ports: [{ port: 80 }] } });
    await testbed.makeHub('test', { drain: { timeout: '5m', otherWork: 'Hold' } });
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    const waiting = () => testbed.membership()?.status?.waiting ?? '';
    await testbed.until('it to be said', () => waiting().includes('no hub placed Pod shop/web, Service default/web'));
    expect(testbed.isHeld).toBe(true);
    expect(findCondition(testbed.membership()?.status?.conditions, 'OwnWorkGone')?.status).toBe('False');
    pods.pop();
    await testbed.until('it to be said', () => waiting().includes('no hub placed Service default/web'));
    await testbed.makeHub('test', { drain: { timeout: '5m' } });
    await gone();
    expect(
      testbed.events.some((text) =>
        text.includes('EndsWithCluster: deleting the cluster also deletes what is in it: Service default/web'),
      ),
    ).toBe(true);
    await testbed.member.client.delete(SERVICES, 'web', 'default');
  });

  describe('with exported Services', () => {
    const MEMBER = 'shop--demo';
    const waiting = () => testbed.membership()?.status?.waiting ?? '';
    const imported = (cluster: string) =>
      hub.client.mergePatch(
        SERVICEIMPORTS,
        'web',
        'fleet',
        { status: { clusters: cluster ? [{ cluster }] : [] } },
        { subresource: 'status' },
      );
    beforeAll(async () => {
      await applyFolder(testbed.member.client, 'mcs');
      await applyFolder(hub.client, 'mcs');
      const serves = (client: KubeClient, kind: Resource) =>
        vi.waitFor(async () => expect(await readerOf(client, AbortSignal.timeout(20_000)).serves(kind)).toBe(true), {
          timeout: 20_000,
        });
      await serves(testbed.member.client, SERVICEEXPORTS);
      await serves(hub.client, SERVICEIMPORTS);
      await testbed.member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'web' } });
      await hub.client.apply(
        {
          apiVersion: 'multicluster.x-k8s.io/v1alpha1',
          kind: 'ServiceImport',
          metadata: { name: 'web', namespace: 'fleet' },
          spec: { type: 'ClusterSetIP', ports: [{ port: 80 }] },
        },
        { resource: SERVICEIMPORTS },
      );
      await gone();
    });
    const exported = async () => {
      await joined();
      const object = {
        apiVersion: 'multicluster.x-k8s.io/v1alpha1',
        kind: 'ServiceExport',
        metadata: { name: 'web', namespace: 'web' },
      };
      await testbed.member.client.apply(object, { resource: SERVICEEXPORTS });
      await imported(MEMBER);
    };
    const exports = async () => (await testbed.member.client.list(SERVICEEXPORTS)).items.length;

    it('is not destroyed before the hub shows them deleted', async () => {
      await exported();
      await testbed.makeHub('test', { drain: { timeout: '5m' } });
      await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await testbed.until('it to be said', () =>
        waiting().includes('traffic to it through ServiceImport fleet/web of the hub'),
      );
      expect(await exports()).toBe(0);
      expect(testbed.isHeld).toBe(true);
      expect(await inHub()).toContain(`ClusterProfile fleet/${MEMBER}`);
      expect(findCondition(testbed.membership()?.status?.conditions, 'ExportsWithdrawn')?.status).toBe('False');
      // That it is another cluster's is nothing to wait for.
      await imported('other');
      await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
      await destroyed();
    });

    it('is destroyed by force after the timeout, with an Event', async () => {
      await exported();
      await testbed.makeHub('test', { drain: { timeout: '1s' } });
      await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
      await testbed.until('the time to be over', () =>
        waiting().includes('the drain deadline has passed, and other clusters'),
      );
      const { name, namespace } = testbed.membership()!.metadata;
      const annotations = { [ANNOTATIONS.forceLeave]: 'true' };
      await testbed.garden.client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { annotations } });
      await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
      expect(
        testbed.events.some((text) =>
          text.includes('although other clusters still send traffic to it through ServiceImport'),
        ),
      ).toBe(true);
    });

    it('keeps them if it stays and only leaves the hub', async () => {
      await destroyed();
      await exported();
      await testbed.makeHub('test', { clusterSelector: { matchLabels: { fleet: 'other' } } });
      await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
      expect(await exports()).toBe(1);
    });
  });
});

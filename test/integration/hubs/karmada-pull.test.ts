import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { CLUSTERS, type KarmadaCluster } from '../../../operator/hubs/karmada/cluster.ts';
import { WORKS } from '../../../operator/hubs/karmada/seen.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import {
  CLUSTERROLEBINDINGS,
  CLUSTERROLES,
  DEPLOYMENTS,
  HUBS,
  type KubeObject,
  LEASES,
  MEMBERSHIPS,
  NAMESPACES,
  RBAC_ROLES,
  ROLEBINDINGS,
  SECRETS,
  SERVICEACCOUNTS,
} from '../../../operator/kube/resources.ts';
import { keepsMembers } from '../../kit/conformance/hubs.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';
import { accessOf, agentRun } from '../../kit/hubs/karmada-agent.ts';
import { KarmadaStandIn } from '../../kit/hubs/karmada-stand-in.ts';

const SPEC: HubSpec = {
  type: 'Karmada',
  karmada: { syncMode: 'Pull' },
  member: { agentImage: 'registry.example.com/karmada-agent:v1.19.0' },
};
const IN_HUB = [CLUSTERS, SERVICEACCOUNTS, CLUSTERROLES, CLUSTERROLEBINDINGS, RBAC_ROLES, ROLEBINDINGS];
const NAME = 'shop--demo';
const NAMESPACE = `karmada-es-${NAME}`;

async function open(): Promise<{ testbed: HubTestbed; standIn: KarmadaStandIn }> {
  const testbed = await HubTestbed.start(SPEC, ['karmada']);
  const standIn = new KarmadaStandIn(testbed.garden.client, testbed.member.client);
  await standIn.start();
  testbed.onStop(() => standIn.stop());
  return { testbed, standIn };
}

keepsMembers({
  costs: { join: 26, leave: 14 },
  type: 'Karmada',
  open: async () => (await open()).testbed,
  kinds: IN_HUB,
  inMember: [DEPLOYMENTS],
  shows: '/clusters/shop--demo',
  taken: {
    resource: CLUSTERS,
    object: {
      apiVersion: 'cluster.karmada.io/v1alpha1',
      kind: 'Cluster',
      metadata: { name: NAME },
      spec: { syncMode: 'Pull' },
    },
  },
});

describe('a cluster in pull mode of Karmada', () => {
  let testbed: HubTestbed;
  let standIn: KarmadaStandIn;
  beforeAll(async () => {
    ({ testbed, standIn } = await open());
    await testbed.startOperator();
  });
  afterAll(() => testbed?.stop());

  const cluster = async () =>
    (await testbed.garden.client.getOrUndefined(CLUSTERS, NAME)) as KarmadaCluster | undefined;
  const join = async () => {
    await testbed.makeHub();
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  };
  /** It stays what it is, and is selected no more. */
  const leave = async () => {
    await testbed.makeHub('test', { clusterSelector: { matchLabels: { fleet: 'other' } } });
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
  };
  const makeWork = () => testbed.garden.client.apply(work, { resource: WORKS });
  const left = () =>
    testbed.made({ hub: [...IN_HUB, SECRETS], member: [SERVICEACCOUNTS, CLUSTERROLES, SECRETS, DEPLOYMENTS] });

  it('runs an agent with the least permissions in the hub', async () => {
    await join();
    expect((await cluster())?.spec).toMatchObject({ syncMode: 'Pull', id: expect.any(String) });
    // It has reported, by the rights of its token.
    expect(await testbed.garden.client.getOrUndefined(LEASES, NAME, 'karmada-cluster')).toBeDefined();
    const agent = KubeClient.fromKubeconfig(accessOf((await agentRun(testbed.member.client))!));
    try {
      const live = (await agent.get(CLUSTERS, NAME)) as KarmadaCluster;
      const forbidden = { status: 403 };
      const role = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata: { name: 'x' },
        rules: [],
      };
      await expect(
        agent.update({ ...live, spec: { ...live.spec, taints: [] } }, { resource: CLUSTERS }),
      ).rejects.toMatchObject(forbidden);
      await expect(agent.delete(CLUSTERS, NAME)).rejects.toMatchObject(forbidden);
      await expect(agent.list(SECRETS, { namespace: 'karmada-cluster' })).rejects.toMatchObject(forbidden);
      await expect(agent.list(SECRETS, { namespace: 'kube-system' })).rejects.toMatchObject(forbidden);
      await expect(agent.list(WORKS, { namespace: 'karmada-es-other' })).rejects.toMatchObject(forbidden);
      await expect(agent.get(LEASES, 'other', 'karmada-cluster')).rejects.toMatchObject(forbidden);
      await expect(agent.get(LEASES, 'karmada-scheduler', 'karmada-system')).rejects.toMatchObject(forbidden);
      await expect(agent.create(role)).rejects.toMatchObject(forbidden);
    } finally {
      await agent.close();
    }
    // Nothing that leads into the member is in the hub.
    expect((await left()).filter((one) => one.startsWith('Secret'))).toEqual([
      'Secret kube-system/coppice-hub-test-agent',
    ]);
    expect(
      await testbed.garden.client.getOrUndefined(SECRETS, 'coppice-hub-test-agent', 'kube-system'),
    ).toBeUndefined();
  });

  it('gives the agent a new token before the old one expires, without a restart', async () => {
    const { now } = testbed;
    const secret = async () => (await agentRun(testbed.member.client))!.files.token!;
    const generation = async () =>
      (await testbed.member.client.get(DEPLOYMENTS, 'coppice-hub-test-agent', 'kube-system')).metadata.generation;
    const [before, old] = [await generation(), await secret()];
    try {
      testbed.now = () => new Date(+now() + 20 * 3_600_000);
      const { name, namespace } = testbed.membership()!.metadata;
      await testbed.garden.client.mergePatch(MEMBERSHIPS, name, namespace, { metadata: { labels: { look: 'now' } } });
      await expect.poll(secret).not.toBe(old);
      expect(await generation()).toBe(before);
      const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: old } };
      const { status } = await testbed.garden.client.request('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
        body,
      });
      expect(status.user.username).toBe(`system:serviceaccount:kube-system:coppice-agent-${NAME}`);
    } finally {
      testbed.now = now;
    }
  });

  it('has its Works deleted by its agent before that loses permission, and leaves nothing', async () => {
    await makeWork();
    await leave();
    expect(await testbed.garden.client.getOrUndefined(WORKS, 'web', NAMESPACE)).toBeUndefined();
    expect(await left()).toEqual([]);
    expect(await testbed.garden.client.getOrUndefined(NAMESPACES, NAMESPACE)).toBeUndefined();
    expect(await testbed.member.client.getOrUndefined(NAMESPACES, 'karmada-cluster')).toBeUndefined();
  });

  it('leaves without force when its agent is dead, as Karmada drops the Works', async () => {
    await join();
    await makeWork();
    standIn.agentIsDown = true;
    standIn.wake();
    await expect.poll(async () => (await cluster())?.status?.conditions?.[0]?.status).toBe('Unknown');
    await leave();
    expect(await cluster()).toBeUndefined();
    expect(await testbed.garden.client.getOrUndefined(WORKS, 'web', NAMESPACE)).toBeUndefined();
    expect(await left()).toEqual([]);
    standIn.agentIsDown = false;
  });

  it('stays in pull mode for the lifetime of its Hub, with the agent that the Hub names', async () => {
    const patch = (spec: object) => testbed.garden.client.mergePatch(HUBS, 'test', undefined, { spec });
    await expect(patch({ karmada: { syncMode: 'Push' } })).rejects.toThrow(/syncMode cannot be changed/);
    await expect(patch({ karmada: null })).rejects.toThrow(/syncMode cannot be changed/);
    await expect(patch({ member: null })).rejects.toThrow(/member.agentImage/);
  });
});

const work: KubeObject = {
  apiVersion: 'work.karmada.io/v1alpha1',
  kind: 'Work',
  metadata: {
    name: 'web',
    namespace: NAMESPACE,
    labels: { 'work.karmada.io/permanent-id': 'one' },
    finalizers: ['karmada.io/execution-controller'],
  },
  spec: { workload: {} },
};

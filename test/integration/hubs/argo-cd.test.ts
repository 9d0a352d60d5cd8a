import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { APPLICATIONS } from '../../../operator/hubs/argo-cd.ts';
import { CONFIGMAPS, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { ArgoCD, application, RESOURCES } from '../../kit/hubs/argo-cd.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';

const NAME = 'shop--demo';
const base64 = (text: string) => Buffer.from(text).toString('base64');
const standIns: ArgoCD[] = [];

/** A hub with a generator for clusters that are labelled so, and a Hub that labels each. */
async function open(spec: Partial<HubSpec> = {}): Promise<HubTestbed> {
  const testbed = await HubTestbed.start({ type: 'ArgoCD', clusterLabels: { deploy: 'web' }, ...spec }, ['argo-cd']);
  await testbed.garden.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'argocd' } });
  await testbed.member.client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } });
  const argo = new ArgoCD(testbed.garden.client);
  argo.generators.set('web', { deploy: 'web' });
  await argo.start();
  standIns.push(argo);
  return testbed;
}
afterAll(() => Promise.all(standIns.map((argo) => argo.stop())));

keepsMembers({
  type: 'ArgoCD',
  open: () => open({ drain: { allowDelete: true } }),
  kinds: [],
  shows: `/secrets/${NAME}`,
  taken: {
    resource: SECRETS,
    object: { apiVersion: 'v1', kind: 'Secret', metadata: { name: NAME, namespace: 'argocd' } },
  },
  theirs: ({ server }) => {
    const labels = { 'argocd.argoproj.io/secret-type': 'cluster' };
    const data = { name: base64('theirs'), server: base64(server), config: base64('{}') };
    const object = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'theirs', namespace: 'argocd', labels },
      data,
    };
    return { name: 'theirs', objects: [{ resource: SECRETS, object }] };
  },
});

describe('Argo CD and its clusters', () => {
  let testbed: HubTestbed;
  let argo: ArgoCD;
  beforeAll(async () => {
    testbed = await open();
    argo = standIns.at(-1)!;
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    await testbed.makeHub();
    await testbed.startOperator();
  });
  afterEach(async () => {
    argo.deployed.answers = true;
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    const { client } = testbed.garden;
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await testbed.stopOperator();
    await sweepMember(testbed);
  });

  const joined = async () => {
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  };
  const secret = () => testbed.garden.client.getOrUndefined(SECRETS, NAME, 'argocd');
  const deployed = async () =>
    (await testbed.member.client.getOrUndefined(CONFIGMAPS, `${NAME}-web`, 'default')) !== undefined;
  const waiting = () => testbed.membership()?.status?.waiting ?? '';

  it('has its generators deploy to a cluster that joins, with the given token', async () => {
    await joined();
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
    expect((await secret())?.metadata.annotations).toMatchObject({
      'multi-cluster.demo.io/capacity.cpu': '4',
      'multi-cluster.demo.io/capacity.memory': '8Gi',
    });
  });

  it('deletes all that it deployed before its Secret is deleted', async () => {
    await joined();
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
    // Without the Secret it would have forgotten it, and left it there.
    expect(await deployed()).toBe(false);
    expect(await argo.list(APPLICATIONS)).toEqual([]);
  });

  it('keeps what is in a leaving cluster until the Hub permits deletion, and completes deletions by people', async () => {
    await joined();
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('it to be said', () => waiting().includes('drain.allowDelete'));
    expect(waiting()).toContain(`Application argocd/${NAME}-web`);
    const cordoned = await secret();
    expect(cordoned?.metadata.labels).toMatchObject({ deploy: 'web' });
    expect(cordoned?.metadata.annotations).toMatchObject({ 'argocd.argoproj.io/skip-reconcile': 'true' });
    expect(await deployed()).toBe(true);

    // While the cluster is skipped no Application of it would end.
    argo.generators.clear();
    argo.look();
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
    argo.generators.set('web', { deploy: 'web' });
    expect(await deployed()).toBe(false);
  });

  it('waits for an Application that a person made, and names its owner', async () => {
    await joined();
    const { client } = testbed.garden;
    const theirs = application('theirs', { server: testbed.member.url });
    await client.create(theirs, { resource: APPLICATIONS });
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('it to be said', () => waiting().includes('Application argocd/theirs is still to be deleted'));
    expect((await client.get(APPLICATIONS, 'theirs', 'argocd')).metadata.finalizers).toEqual([RESOURCES]);
    await client.delete(APPLICATIONS, 'theirs', 'argocd');
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
  });

  it('releases a dead cluster by force without hanging Applications', async () => {
    await joined();
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
    argo.deployed.answers = false;
    await testbed.silence();
    await testbed.makeHub('test', { drain: { timeout: '1s', force: true } });
    await testbed.garden.client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('the membership to be gone', () => testbed.memberships.size === 0);
    await expect.poll(() => argo.list(APPLICATIONS), { timeout: 20_000 }).toEqual([]);
    await testbed.member.client.delete(CONFIGMAPS, `${NAME}-web`, 'default');
  });

  it('refuses a second cluster with the URL of another one until that has left', async () => {
    const { client } = testbed.garden;
    const metadata = { name: 'theirs', namespace: 'argocd', labels: { 'argocd.argoproj.io/secret-type': 'cluster' } };
    // With a slash at its end it is the same to Argo CD.
    const stringData = { name: 'theirs', server: `${testbed.member.url}/`, config: '{}' };
    await client.apply({ apiVersion: 'v1', kind: 'Secret', metadata, stringData });
    await testbed.makeCluster();
    testbed.open();
    await testbed.until('it to be said', () =>
      waiting().includes('Secret argocd/theirs of the hub is a cluster with URL'),
    );
    expect(await secret()).toBeUndefined();
    await client.delete(SECRETS, 'theirs', 'argocd');
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
  });
});

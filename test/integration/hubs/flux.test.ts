import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { KUSTOMIZATIONS } from '../../../operator/hubs/flux.ts';
import { CONFIGMAPS, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { Flux, kustomization } from '../../kit/hubs/flux.ts';
import { HubTestbed } from '../../kit/hubs/hub-testbed.ts';

const SECRET = 'shop--demo-kubeconfig';
const standIns: Flux[] = [];

async function open(spec: Partial<HubSpec> = {}): Promise<HubTestbed> {
  const testbed = await HubTestbed.start({ type: 'Flux', ...spec }, ['flux']);
  for (const { client } of [testbed.garden, testbed.member])
    for (const name of ['default', 'shop'])
      await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const flux = new Flux(testbed.garden.client);
  await flux.start();
  standIns.push(flux);
  return testbed;
}
afterAll(() => Promise.all(standIns.map((flux) => flux.stop())));

keepsMembers({
  costs: { join: 9, leave: 6 },
  type: 'Flux',
  open,
  kinds: [],
  shows: `/secrets/${SECRET}`,
  taken: {
    resource: SECRETS,
    object: { apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace: 'shop' } },
  },
  theirs: ({ access }) => {
    const data = { value: Buffer.from(access).toString('base64') };
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: SECRET, namespace: 'shop' }, data };
    return { name: 'shop--demo', objects: [{ resource: SECRETS, object }] };
  },
});

describe('Flux and its clusters', () => {
  let testbed: HubTestbed;
  let flux: Flux;
  beforeAll(async () => {
    testbed = await open();
    flux = standIns.at(-1)!;
  });
  afterAll(() => testbed?.stop());
  beforeEach(async () => {
    await testbed.makeHub();
    await testbed.startOperator();
    await testbed.makeCluster();
    await testbed.garden.client.create(kustomization('web', 'shop', SECRET), { resource: KUSTOMIZATIONS });
    testbed.open();
    await testbed.until('the cluster to join', () => testbed.state() === 'Joined');
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
  });
  afterEach(async () => {
    flux.deployed.answers = true;
    const { client } = testbed.garden;
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await client.delete(KUSTOMIZATIONS, 'web', 'shop').catch(() => {});
    await testbed.until('the cluster to have left', () => testbed.memberships.size === 0);
    await expect.poll(() => flux.list(KUSTOMIZATIONS), { timeout: 20_000 }).toEqual([]);
    await testbed.member.client.delete(CONFIGMAPS, 'web', 'default').catch(() => {});
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await testbed.stopOperator();
    await sweepMember(testbed);
  });
  const deployed = async () => (await testbed.member.client.getOrUndefined(CONFIGMAPS, 'web', 'default')) !== undefined;
  const waiting = () => testbed.membership()?.status?.waiting ?? '';
  const gone = () => testbed.until('the membership to be gone', () => testbed.memberships.size === 0);

  it('keeps a cluster until nothing deploys to it, and completes deletions with its Secret', async () => {
    const { client } = testbed.garden;
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('it to be said', () => waiting().includes('Kustomization shop/web is placed'));
    expect(waiting()).toContain('drain.allowDelete');
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await gone();
    // Without the Secret it would have been left there.
    expect(await deployed()).toBe(false);
  });

  it('keeps the Secret for a Kustomization being deleted, even if the Hub permits deletion', async () => {
    const { client } = testbed.garden;
    flux.deployed.answers = false;
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await testbed.until('it to be said', () => waiting().includes(`is being deleted, and needs Secret ${SECRET}`));
    flux.deployed.answers = true;
    flux.look();
    await gone();
    expect(await deployed()).toBe(false);
  });

  it('releases a cluster under a remaining Kustomization if the Hub permits it', async () => {
    const { client } = testbed.garden;
    await testbed.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    expect(await client.getOrUndefined(KUSTOMIZATIONS, 'web', 'shop')).toBeDefined();
  });

  it('releases a dead cluster by force without hanging Kustomizations', async () => {
    const { client } = testbed.garden;
    flux.deployed.answers = false;
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await testbed.silence();
    await testbed.makeHub('test', { drain: { timeout: '1s', force: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    await expect.poll(() => flux.list(KUSTOMIZATIONS), { timeout: 20_000 }).toEqual([]);
  });
});

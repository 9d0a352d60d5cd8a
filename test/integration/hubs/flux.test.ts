import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { KUSTOMIZATIONS } from '../../../operator/hubs/flux.ts';
import { CONFIGMAPS, SECRETS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { keepsMembers, sweepMember } from '../../kit/conformance/hubs.ts';
import { Flux, kustomization } from '../../kit/hubs/flux.ts';
import { HubScene } from '../../kit/hubs/hub-scene.ts';
import { turnOf } from '../../kit/hubs/turns.ts';
import { rotates } from '../../kit/rotation.ts';

const SECRET = 'shop--demo-kubeconfig';
const standIns: Flux[] = [];

async function open(spec: Partial<HubSpec> = {}): Promise<HubScene> {
  const scene = await HubScene.start({ type: 'Flux', ...spec }, ['flux']);
  for (const { client } of [scene.garden, scene.member])
    for (const name of ['default', 'shop'])
      await client.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const flux = new Flux(scene.garden.client);
  await flux.start();
  standIns.push(flux);
  return scene;
}
afterAll(() => Promise.all(standIns.map((flux) => flux.stop())));

const TURN = turnOf('Flux');

keepsMembers({
  turn: TURN,
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

rotates(describe, TURN)('Flux and its clusters', () => {
  let scene: HubScene;
  let flux: Flux;
  beforeAll(async () => {
    scene = await open();
    flux = standIns.at(-1)!;
  });
  afterAll(() => scene?.stop());
  beforeEach(async () => {
    await scene.makeHub();
    await scene.startOperator();
    await scene.makeCluster();
    await scene.garden.client.create(kustomization('web', 'shop', SECRET), { resource: KUSTOMIZATIONS });
    scene.open();
    await scene.until('the cluster to join', () => scene.state() === 'Joined');
    await expect.poll(deployed, { timeout: 20_000 }).toBe(true);
  });
  afterEach(async () => {
    flux.deployed.answers = true;
    const { client } = scene.garden;
    await scene.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop').catch(() => {});
    await client.delete(KUSTOMIZATIONS, 'web', 'shop').catch(() => {});
    await scene.until('the cluster to have left', () => scene.memberships.size === 0);
    await expect.poll(() => flux.list(KUSTOMIZATIONS), { timeout: 20_000 }).toEqual([]);
    await scene.member.client.delete(CONFIGMAPS, 'web', 'default').catch(() => {});
    await client.mergePatch(WORKERCLUSTERS, 'demo', 'shop', { metadata: { finalizers: null } }).catch(() => {});
    await scene.stopOperator();
    await sweepMember(scene);
  });
  const deployed = async () => (await scene.member.client.getOrUndefined(CONFIGMAPS, 'web', 'default')) !== undefined;
  const waiting = () => scene.membership()?.status?.waiting ?? '';
  const gone = () => scene.until('the membership to be gone', () => scene.memberships.size === 0);

  it('keeps a cluster until nobody deploys to it any more, and ends with its Secret what is deleted', async () => {
    const { client } = scene.garden;
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await scene.until('it to be said', () => waiting().includes('Kustomization shop/web is placed'));
    expect(waiting()).toContain('drain.allowDelete');
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await gone();
    // Without the Secret it would have been left there.
    expect(await deployed()).toBe(false);
  });

  it('waits with its Secret for a Kustomization that is being deleted, also where the Hub allows to delete', async () => {
    const { client } = scene.garden;
    flux.deployed.answers = false;
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await scene.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await scene.until('it to be said', () => waiting().includes(`is being deleted, and needs Secret ${SECRET}`));
    flux.deployed.answers = true;
    flux.look();
    await gone();
    expect(await deployed()).toBe(false);
  });

  it('has a cluster leave under a Kustomization that nobody deletes, where the Hub allows it; that one ends when it is deleted', async () => {
    const { client } = scene.garden;
    await scene.makeHub('test', { drain: { allowDelete: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    expect(await client.getOrUndefined(KUSTOMIZATIONS, 'web', 'shop')).toBeDefined();
  });

  it('lets go of a dead cluster that is forced out, and no Kustomization hangs', async () => {
    const { client } = scene.garden;
    flux.deployed.answers = false;
    await client.delete(KUSTOMIZATIONS, 'web', 'shop');
    await scene.silence();
    await scene.makeHub('test', { drain: { timeout: '1s', force: true } });
    await client.delete(WORKERCLUSTERS, 'demo', 'shop');
    await gone();
    await expect.poll(() => flux.list(KUSTOMIZATIONS), { timeout: 20_000 }).toEqual([]);
  });
});

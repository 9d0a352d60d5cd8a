import { afterAll, beforeAll, expect, it } from 'vitest';
import { Members, Watched } from '../../../examples/burst/watched.ts';
import { CLUSTERPROFILES } from '../../../operator/hubs/cluster-profile.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { type KubeObject, NODES, PODS } from '../../../operator/kube/resources.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

const FLEET = '/namespaces/fleet';
const PROFILE = `/apis/multicluster.x-k8s.io/v1alpha1${FLEET}/clusterprofiles/demo`;
let hub: SmallApiServer;
let member: SmallApiServer;
let other: SmallApiServer;
let watched: Watched;
let members: Members;
let news = 0;
/** Does something, and waits until it was heard of. */
const heard = async (happens: () => void) => {
  const before = news;
  happens();
  await expect.poll(() => news, { timeout: 10_000 }).toBeGreaterThan(before);
};

const access = (server: SmallApiServer) =>
  hub.put(`/api/v1${FLEET}/secrets/demo`, {
    metadata: { name: 'demo', namespace: 'fleet' },
    data: { kubeconfig: Buffer.from(server.kubeconfig).toString('base64') },
  } as never);
const extension = { name: 'demo', namespace: 'fleet', key: 'kubeconfig' };
const accessProviders = [{ name: 'kubeconfig-secretreader', cluster: { extensions: [{ extension }] } }];
const profile: KubeObject = {
  apiVersion: 'multicluster.x-k8s.io/v1alpha1',
  kind: 'ClusterProfile',
  metadata: { name: 'demo', namespace: 'fleet' },
  status: { accessProviders },
};

beforeAll(async () => {
  hub = await SmallApiServer.start('hub');
  member = await SmallApiServer.start('member');
  other = await SmallApiServer.start('other');
  const client = KubeClient.fromKubeconfig(hub.kubeconfig);
  watched = new Watched(client, [CLUSTERPROFILES], () => news++, 'fleet');
  members = new Members(client, () => news++);
  access(member);
});
afterAll(async () => {
  await members.keep([]);
  await watched.close();
  await Promise.all([hub, member, other].map((server) => server.stop()));
});

it('the example scheduler runs when a cluster joins its hub, and when something changes in it', async () => {
  await heard(() => hub.put(PROFILE, profile as never));
  expect((await watched.list(CLUSTERPROFILES)).map(({ metadata }) => metadata.name)).toEqual(['demo']);
  const line = await members.of(profile);
  expect(await line.list(PODS)).toEqual([]);
  await heard(() => member.put('/api/v1/namespaces/shop/pods/web', { metadata: { name: 'web', namespace: 'shop' } }));
  expect(await line.list(PODS)).toHaveLength(1);
  expect(await members.of(profile)).toBe(line);
});

it('the example scheduler follows a member by its present Secret, and stops for a removed member', async () => {
  const before = await members.of(profile);
  access(other);
  other.put('/api/v1/nodes/one', { metadata: { name: 'one' } });
  const line = await members.of(profile);
  expect(line).not.toBe(before);
  expect(await line.list(NODES)).toHaveLength(1);
  await members.keep([]);
  expect(await members.of(profile)).not.toBe(line);
});

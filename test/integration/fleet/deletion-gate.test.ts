import { afterAll, beforeAll, expect, it } from 'vitest';
import { findCondition } from '../../../operator/api/conditions.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { SECRETS, SEEDS, SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { RecordedGarden } from '../../kit/recorded-garden.ts';

let garden: RecordedGarden;
beforeAll(async () => {
  garden = await RecordedGarden.start();
});
afterAll(() => garden?.stop());

const until: RecordedGarden['until'] = (what, predicate) => garden.until(what, predicate);
const deleting = (name: string) => findCondition(garden.cluster(name)?.status?.conditions, 'Deleting');

const seedOn = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'Seed',
  metadata: { name: `on-${name}` },
  spec: {
    provider: { type: 'local', region: 'local' },
    networks: { pods: '10.4.0.0/16', services: '10.5.0.0/16' },
    kubeconfigRef: { name: `${name}-kubeconfig`, namespace: 'default' },
  },
});

it('a cluster that is a Seed is deleted only after its Seed, even after a kill of the operator', async () => {
  const { client } = garden.server;
  await garden.made('host');
  await client.apply(seedOn('host'));
  await client.delete(WORKERCLUSTERS, 'host', 'default');
  await until('the deletion to be held', () => deleting('host')?.reason === 'Held');
  expect(deleting('host')?.message).toContain('Seed on-host holds the cluster');

  await garden.stopOperator();
  await garden.startOperator();
  // Whoever goes around the WorkerCluster meets the same gate. By now a policy lets the operator alone do that.
  await (await garden.server.asOperator()).delete(SHOOTS, 'host', 'default');
  const held = () =>
    findCondition(garden.shoots.get('default/host')?.status?.conditions, 'Deleting')?.reason === 'Held';
  await until('the Shoot to be held', held);
  expect(await client.getOrUndefined(SECRETS, 'host-kubeconfig', 'default')).toBeDefined();
  expect(await client.getOrUndefined(SHOOTS, 'host', 'default')).toBeDefined();

  await client.delete(SEEDS, 'on-host');
  await until(
    'the cluster to be gone',
    () => garden.cluster('host') === undefined && garden.shoots.get('default/host') === undefined,
  );
  expect(await client.getOrUndefined(SECRETS, 'host-kubeconfig', 'default')).toBeUndefined();
});

it('a manual deletion of a Shoot is refused with the object to delete instead', async () => {
  const { client } = garden.server;
  await garden.made('hand');
  await expect(client.delete(SHOOTS, 'hand', 'default')).rejects.toThrow(
    /Shoot hand belongs to a cluster, which goes with its WorkerCluster: kubectl delete workercluster hand --namespace default/,
  );
  await client.delete(WORKERCLUSTERS, 'hand', 'default');
  await until(
    'the cluster to be gone',
    () => garden.cluster('hand') === undefined && !garden.shoots.get('default/hand'),
  );
});

it('a Shoot deleted by hand earlier keeps running, is updated, and goes with its WorkerCluster', async () => {
  const { client } = garden.server;
  await garden.made('before');
  await (await garden.server.asOperator()).delete(SHOOTS, 'before', 'default');
  const told = () => findCondition(garden.cluster('before')?.status?.conditions, 'ShootDeleted')?.message;
  await until('people to be told', () => told() !== undefined);
  expect(told()).toBe(
    'Shoot default/before was deleted by hand, and the cluster runs on. Delete WorkerCluster before to have it taken apart',
  );
  const { uid } = garden.shoots.get('default/before')!.metadata;
  await client.mergePatch(WORKERCLUSTERS, 'before', 'default', { spec: { dataPlaneNodes: 3 } });
  await until('it to have three nodes', () => garden.cluster('before')?.status?.nodes?.ready === 3);
  await until('it to be Ready', () => garden.cluster('before')?.status?.phase === 'Ready');
  expect(garden.shoots.get('default/before')!.metadata.uid).toBe(uid);

  await garden.stopOperator();
  await garden.startOperator();
  await client.delete(WORKERCLUSTERS, 'before', 'default');
  await until('all of it to be gone', () => !garden.cluster('before') && !garden.shoots.get('default/before'));
});

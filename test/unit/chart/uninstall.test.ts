import { expect, test } from 'vitest';
import { clustersLeft, whyNotUninstalled } from '../../../operator/chart/uninstall.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { Resource } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

const object = (name: string, uid: string, owner?: string) => ({
  metadata: { name, namespace: 'shop', uid, ...(owner && { ownerReferences: [{ uid: owner }] }) },
});
const client = (objects: Record<string, object[] | Error>) =>
  partOf<KubeClient>({
    list: async ({ plural }: Resource) => {
      const items = objects[plural]!;
      if (items instanceof Error) throw items;
      return { items };
    },
  });

test('clustersLeft names WorkerClusters, and Shoots without a WorkerCluster', async () => {
  const there = {
    workerclusters: [object('blue', 'u1')],
    shoots: [object('blue', 'u2', 'u1'), object('by-hand', 'u3')],
  };
  expect(await clustersLeft(client(there))).toEqual(['WorkerCluster shop/blue', 'Shoot shop/by-hand']);
});

test('whyNotUninstalled names the remaining clusters and both ways to proceed', () => {
  expect(whyNotUninstalled([])).toBeUndefined();
  const text = whyNotUninstalled(['WorkerCluster shop/blue']);
  expect(text).toMatch(/^1 cluster is left: WorkerCluster shop\/blue\. Delete .* --no-hooks/);
  expect(text).not.toContain('\n');
  expect(whyNotUninstalled(Array.from({ length: 8 }, (_, i) => `Shoot a/${i}`))).toMatch(/^8 clusters.* and 3 more\./);
});

test('clustersLeft is empty without the kinds, and does not take a failure for that', async () => {
  const error = (status: number) => new KubeApiError('GET x', status, 'no');
  const gone = error(404);
  expect(await clustersLeft(client({ workerclusters: gone, shoots: gone }))).toEqual([]);
  await expect(clustersLeft(client({ workerclusters: error(500), shoots: [] }))).rejects.toThrow();
});

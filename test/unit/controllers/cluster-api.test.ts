import { expect, it } from 'vitest';
import type { WorkerCluster } from '../../../operator/api/workercluster.ts';
import { type CapiView, judgeCapi, wireClusterAPI } from '../../../operator/controllers/attached/cluster-api.ts';
import type { Core } from '../../../operator/controllers/core.ts';
import { clusterGoes } from '../../../operator/controllers/membership/leave.ts';
import { KubeClient } from '../../../operator/kube/client.ts';
import { runController } from '../../../operator/kube/controller.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { silent } from '../../../operator/kube/log.ts';
import { type KubeObject, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { WorkQueue } from '../../../operator/kube/workqueue.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

const capi = (labels: Record<string, string> = { fleet: 'a', 'topology.x/y': 'z' }, more: object = {}): KubeObject => ({
  apiVersion: 'cluster.x-k8s.io/v1beta2',
  kind: 'Cluster',
  metadata: { name: 'demo', namespace: 'shop', uid: 'capi', labels, ...more },
});
const step = (view: Partial<CapiView>) => judgeCapi({ capi: capi(), hasKubeconfig: true, cluster: undefined, ...view });
const made = (view: Partial<CapiView> = {}): WorkerCluster => {
  const taken = step(view);
  if (taken?.do !== 'apply') throw new Error('nothing is made');
  return taken.object;
};
const DELETED = { deletionTimestamp: '2026-11-22T12:00:00Z' };

it('a Cluster of Cluster API is attached by its kubeconfig, with its labels', () => {
  expect(made()).toMatchObject({
    metadata: {
      name: 'demo',
      namespace: 'shop',
      labels: { fleet: 'a', 'cluster.x-k8s.io/cluster-name': 'demo', 'app.kubernetes.io/managed-by': 'coppice' },
      ownerReferences: [{ kind: 'Cluster', name: 'demo', uid: 'capi' }],
    },
    spec: { mode: 'Attached', attached: { kubeconfigSecretRef: { name: 'demo-kubeconfig', key: 'value' } } },
  });
  expect(made().metadata.labels).not.toHaveProperty('topology.x/y');
});

it('a Cluster of Cluster API is attached once its kubeconfig exists', () => {
  expect(step({ hasKubeconfig: false })).toBeUndefined();
});

it('an attached Cluster of Cluster API causes no write without a change, and its labels follow', () => {
  const cluster = made();
  expect(step({ cluster })).toBeUndefined();
  // A kubeconfig that has gone is told by the attached cluster itself.
  expect(step({ cluster, hasKubeconfig: false })).toBeUndefined();
  expect(step({ cluster, capi: capi({ fleet: 'b' }) })).toMatchObject({ do: 'apply' });
  expect(step({ cluster, capi: capi({}) })).toMatchObject({ do: 'apply' });
});

it('a Cluster of Cluster API is released when it is no longer selected, or is deleted', () => {
  const cluster = made();
  expect(step({ cluster, capi: undefined })).toEqual({ do: 'delete', destroyed: false });
  expect(step({ cluster, capi: capi({}, DELETED) })).toEqual({ do: 'delete', destroyed: true });
  expect(
    step({ cluster: { ...cluster, metadata: { ...cluster.metadata, ...DELETED } }, capi: undefined }),
  ).toBeUndefined();
  expect(step({ cluster: undefined, capi: capi({}, DELETED) })).toBeUndefined();
});

it("an object of a person under a Cluster's name is left alone", () => {
  const theirs = { ...made(), metadata: { name: 'demo', namespace: 'shop', labels: {} } };
  expect(step({ cluster: theirs })).toBeUndefined();
  expect(step({ cluster: theirs, capi: undefined })).toBeUndefined();
  const named = { ...theirs, metadata: { ...theirs.metadata, labels: { 'app.kubernetes.io/managed-by': 'coppice' } } };
  expect(step({ cluster: named, capi: undefined })).toBeUndefined();
});

it('a deleted Cluster is not cleaned up, since it may be dead', () => {
  const cluster = made();
  const going = (annotations: Record<string, string>) =>
    clusterGoes({ ...cluster, metadata: { ...cluster.metadata, ...DELETED, annotations } });
  expect(going({})).toBe(false);
  expect(going({ 'multi-cluster.demo.io/destroyed': 'true' })).toBe(true);
});

it('Clusters of the selector, and no others, are followed from their first kubeconfig to their end', async () => {
  const garden = await SmallApiServer.start('garden');
  const client = KubeClient.fromKubeconfig(garden.kubeconfig);
  const clusters = new Informer<WorkerCluster>(client, WORKERCLUSTERS);
  clusters.start();
  const at = (name: string) => `/apis/cluster.x-k8s.io/v1beta2/namespaces/shop/clusters/${name}`;
  const attached = (name: string) =>
    garden.objects.get(`/apis/multi-cluster.demo.io/v1/namespaces/shop/workerclusters/${name}`);
  const keep = (name: string) =>
    garden.put(`/api/v1/namespaces/shop/secrets/${name}-kubeconfig`, {
      type: 'cluster.x-k8s.io/secret',
      metadata: { name: `${name}-kubeconfig`, namespace: 'shop', labels: { 'cluster.x-k8s.io/cluster-name': name } },
    });
  const core = { garden: client, log: silent, clusters, clusterAPI: 'fleet=a', queue: () => new WorkQueue() };
  const part = wireClusterAPI(core as unknown as Core);
  const controllers = part.controllers.map((controller) => runController(controller));
  await part.prepare?.(AbortSignal.timeout(60_000));
  const until = (predicate: () => boolean) => expect.poll(predicate, { interval: 10 }).toBe(true);

  for (const name of ['demo', 'late']) garden.put(at(name), capi({ fleet: 'a' }, { name, uid: name }));
  garden.put(at('other'), capi({ fleet: 'b' }, { name: 'other', uid: 'other' }));
  for (const name of ['demo', 'other']) keep(name);
  await until(() => attached('demo') !== undefined);
  expect([attached('late'), attached('other')]).toEqual([undefined, undefined]);
  keep('late');
  await until(() => attached('late') !== undefined);

  garden.remove(at('late'));
  await until(() => attached('late') === undefined);
  expect(attached('demo')).toBeDefined();
  await Promise.all(controllers.map((controller) => controller.stop(0)));
  await Promise.all([part.close?.(), clusters.stop()]);
  await client.close();
  await garden.stop();
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { endPods, podsGone } from '../../../operator/controllers/shoot/deletion/end-pods.ts';
import { Informer } from '../../../operator/kube/informer.ts';
import { PODS, type Pod } from '../../../operator/kube/resources.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

/** It needs tenths of one. */
const PATIENCE_MS = 30_000;

let api: SharedApiserver;
let pods: Informer<Pod>;
beforeAll(async () => {
  api = await sharedApiserver();
  pods = new Informer<Pod>(api.client, PODS, { namespace: api.namespace });
  pods.start();
  await pods.whenSynced(AbortSignal.timeout(PATIENCE_MS));
});
afterAll(async () => {
  await pods?.stop();
  await api?.leave();
});

/** A pod that a node runs, of which no kubelet will ever say that it may go. */
async function running(name: string, namespace = api.namespace): Promise<void> {
  await api.client.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name, namespace },
  });
  await api.client.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      nodeName: 'one',
      serviceAccountName: name,
      automountServiceAccountToken: false,
      containers: [{ name: 'main', image: 'none' }],
    },
  });
}
const says = (name: string, phase: string) =>
  api.client.mergePatch(PODS, name, api.namespace, { status: { phase } }, { subresource: 'status' });
const isThere = async (name: string) => (await api.client.getOrUndefined(PODS, name, api.namespace)) !== undefined;

it('pods being deleted are gone only when their kubelet reports that their processes have ended', async () => {
  for (const name of ['etcd', 'server', 'finished']) {
    await running(name);
    await says(name, 'Running');
  }
  const seed = { name: 'one', client: api.client, pods };
  const gone = podsGone(seed, api.namespace, PATIENCE_MS, AbortSignal.timeout(2 * PATIENCE_MS));
  for (const name of ['etcd', 'server']) await api.client.delete(PODS, name, api.namespace, { gracePeriodSeconds: 60 });
  // Nobody told this one to end.
  await says('finished', 'Succeeded');
  await says('etcd', 'Failed');
  await expect.poll(() => isThere('etcd'), { timeout: PATIENCE_MS }).toBe(false);
  expect([await isThere('server'), await isThere('finished')]).toEqual([true, true]);

  await api.client.delete(PODS, 'finished', api.namespace, { gracePeriodSeconds: 60 });
  await says('server', 'Succeeded');
  await gone;
  expect([await isThere('server'), await isThere('finished')]).toEqual([false, false]);
});

it('all pods of a namespace get a grace period of one second, even those in no cache', async () => {
  const namespace = await api.newNamespace();
  const names = ['known', 'unknown'];
  for (const name of names) await running(name, namespace);
  const known = await api.client.get<Pod>(PODS, 'known', namespace);
  const cache = { list: () => [known] } as unknown as Informer<Pod>;
  await endPods({ client: api.client, pods: cache }, namespace, AbortSignal.timeout(PATIENCE_MS));
  for (const name of names) {
    const { metadata } = await api.client.get(PODS, name, namespace);
    expect([name, metadata.deletionGracePeriodSeconds]).toEqual([name, 1]);
  }
});

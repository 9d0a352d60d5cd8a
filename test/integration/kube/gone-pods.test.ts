import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { gonePods } from '../../../operator/kube/gone-pods.ts';
import { silent } from '../../../operator/kube/log.ts';
import { PODS } from '../../../operator/kube/resources.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let api: SharedApiserver;
beforeAll(async () => {
  api = await sharedApiserver();
  // There is no controller manager that would make it.
  await api.client.create({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { name: 'default', namespace: api.namespace },
  });
});
afterAll(() => api?.leave());

describe('gonePods', () => {
  const isGone = (host: string) =>
    gonePods({ client: api.client, namespace: api.namespace, ours: () => ['operator-a', 'operator-b'], log: silent })(
      host,
    );
  const pod = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: api.namespace },
    spec: { containers: [{ name: 'operator', image: 'coppice' }] },
  });

  it('returns true only when the Pod object is missing or has ended', async () => {
    await api.client.create(pod('operator-a'));
    expect(await isGone('operator-a')).toBe(false);
    const { metadata } = await api.client.get(PODS, 'operator-a', api.namespace);
    await api.client.update({ ...pod('operator-a'), metadata, status: { phase: 'Failed' } }, { subresource: 'status' });
    expect(await isGone('operator-a')).toBe(true);
    await api.client.delete(PODS, 'operator-a', api.namespace);
    expect(await isGone('operator-a')).toBe(true);
    expect(await isGone('operator-b')).toBe(true);
  });

  it('returns false for a host that is not one of our pods', async () => {
    expect(await isGone('laptop-of-ann')).toBe(false);
  });

  it('returns false when the API server cannot be asked', async () => {
    const broken = { getOrUndefined: () => Promise.reject(new Error('connection refused')) };
    const ask = gonePods({
      client: broken as unknown as SharedApiserver['client'],
      namespace: api.namespace,
      ours: () => ['operator-a'],
      log: silent,
    });
    expect(await ask('operator-a')).toBe(false);
  });
});

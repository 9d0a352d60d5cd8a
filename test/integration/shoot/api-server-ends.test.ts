import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NAMESPACES } from '../../../operator/kube/resources.ts';
import { apiServerArguments } from '../../../operator/shoot/kube-apiserver.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { controlPlane } from '../../unit/shoot/values.ts';

/** It needs little more than one. Who waits for an etcd that has ended, or for a watch to end, is there for a minute. */
const PATIENCE_MS = 50_000;

let api: TestApiserver;
beforeAll(async () => {
  const flags = apiServerArguments(controlPlane()).filter((flag) => /^--(shutdown|feature-gates)/.test(flag));
  api = await startApiserver({ flags });
});
afterAll(() => api?.stop());

it('an API server ends on request, even if its etcd ends too and watches are open', async () => {
  const { metadata } = await api.client.list(NAMESPACES);
  const options = { resourceVersion: metadata.resourceVersion ?? '0' };
  const watched = new Promise<void>((resolve) => {
    void api.client.watch(NAMESPACES, options, () => resolve()).catch(() => {});
  });
  await api.client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'seen' } });
  await watched;
  const ended = await Promise.race([api.terminate(), delay(PATIENCE_MS, 'goes on', { ref: false })]);
  expect(ended).toBe(0);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import { silent } from '../../../operator/kube/log.ts';
import { CONFIGMAPS, type KubeObject } from '../../../operator/kube/resources.ts';
import { type FlakyProxy, startFlakyProxy } from '../../kit/flaky-proxy.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let api: SharedApiserver;
let proxy: FlakyProxy;
let connection: ClusterConnection;
/** What the line said, and who waits for it. */
const told: boolean[] = [];
let heard = Promise.withResolvers<boolean>();

beforeAll(async () => {
  api = await sharedApiserver();
  proxy = await startFlakyProxy(api.url);
  const client = api.connect({ server: proxy.url, liveness: { pingMs: 500, silenceMs: 900 } });
  const onHealth = (answers: boolean) => {
    told.push(answers);
    heard.resolve(answers);
    heard = Promise.withResolvers();
  };
  connection = new ClusterConnection(
    client,
    { server: proxy.url, tenant: 'shop' },
    new Date(8.64e15),
    silent,
    () => {},
    onHealth,
  );
  await connection.start(AbortSignal.timeout(60_000));
});
afterAll(async () => {
  await connection?.stop();
  await proxy?.close();
  await api?.leave();
});

it.each<[string, () => unknown]>([
  ['is stopped, so that nothing comes back and nothing is closed', () => proxy.freeze()],
  ['is gone, so that connections are refused', () => proxy.cut()],
])('a connection reports that its API server %s, and that it answers again', async (_, fail) => {
  const before = told.length;
  const { broken } = connection.health;
  const silence = heard.promise;
  await fail();
  expect(await silence).toBe(false);
  expect(connection.health.answers).toBe(false);
  expect(broken.aborted).toBe(true);
  const voice = heard.promise;
  await proxy.restore();
  expect(await voice).toBe(true);
  expect(connection.health.broken.aborted).toBe(false);
  // Once each.
  expect(told.slice(before)).toEqual([false, true]);
});

it('a connection that is cut and restored at once reports nothing', async () => {
  const before = told.length;
  await proxy.cut();
  await proxy.restore();
  const note: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'after', namespace: api.namespace },
  };
  await expect.poll(() => connection.client.create(note).catch(() => undefined)).toBeDefined();
  expect(await connection.client.get(CONFIGMAPS, 'after', api.namespace)).toBeDefined();
  expect(connection.health.answers).toBe(true);
  expect(told.length).toBe(before);
});

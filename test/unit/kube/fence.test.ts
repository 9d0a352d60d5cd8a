import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { setFence } from '../../../operator/kube/http/fence.ts';
import { NAMESPACES, SECRETS } from '../../../operator/kube/resources.ts';
import { sendPatiently } from '../../../providers/cloud-http.ts';
import { WorkerProcess } from '../../../providers/pulumi/worker-process.ts';
import { startFlakyProxy } from '../../kit/flaky-proxy.ts';
import { SmallApiServer } from '../../kit/small-api-server.ts';

const SECRET = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'one', namespace: 'default' } };

let server: SmallApiServer;
let client: KubeClient;
beforeEach(async () => {
  server = await SmallApiServer.start('u1');
  client = KubeClient.fromKubeconfig(server.kubeconfig);
});
afterEach(async () => {
  setFence(undefined);
  await client.close();
  await server.stop();
});

it('a process that does not lead sends reads, but no writes by any client', async () => {
  setFence(() => 'this operator does not lead');
  await client.get(NAMESPACES, 'kube-system');
  const writes = [
    client.create(SECRET),
    client.apply(SECRET),
    client.mergePatch(SECRETS, 'one', 'default', {}),
    client.delete(SECRETS, 'one', 'default'),
  ];
  for (const write of writes) await expect(write).rejects.toThrow('this operator does not lead');
  expect(server.requests).toEqual(['GET /api/v1/namespaces/kube-system']);
  setFence(undefined);
  await client.apply(SECRET);
  expect(server.objects.has('/api/v1/namespaces/default/secrets/one')).toBe(true);
});

it('a write that waits for a connection is not sent once the Lease has run out', async () => {
  let isOver = false;
  setFence(() => (isOver ? 'the Lease ran out' : undefined));
  const proxy = await startFlakyProxy(server.url);
  const behind = new KubeClient({ server: proxy.url, ca: server.ca, token: 't' });
  try {
    const write = behind.create(SECRET);
    const refused = expect(write).rejects.toThrow('the Lease ran out');
    isOver = true;
    await refused;
    expect(server.requests).toEqual([]);
  } finally {
    await behind.close();
    await proxy.close();
  }
});

it('without the Lease no cloud is changed, and no Pulumi worker starts', async () => {
  setFence(() => 'this operator does not lead');
  const answer = { status: 200, headers: {} };
  const { signal } = new AbortController();
  await expect(sendPatiently('GET', signal, async () => answer)).resolves.toBe(answer);
  await expect(sendPatiently('PUT', signal, async () => answer)).rejects.toThrow('this operator does not lead');
  await expect(WorkerProcess.start({}, '/')).rejects.toThrow('this operator does not lead');
});

it('a write over HTTP/1.1 is not sent without the Lease', async () => {
  const plain = createServer();
  let heard = 0;
  plain.on('connection', () => heard++);
  plain.listen(0, '127.0.0.1');
  await once(plain, 'listening');
  const old = new KubeClient({ server: `http://127.0.0.1:${(plain.address() as { port: number }).port}` });
  setFence(() => 'this operator does not lead');
  await expect(old.create(SECRET)).rejects.toThrow('this operator does not lead');
  expect(heard).toBe(0);
  await old.close();
  plain.close();
});

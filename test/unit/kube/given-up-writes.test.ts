import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';

const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' } });
const asked: string[] = [];
let client: KubeClient;
let stopServer: () => void;
/** What the server does once it has seen a write, before it answers. */
let onWrite = () => {};

beforeAll(async () => {
  const ca = await createCA({ commonName: 'test', days: 1 });
  const { key, cert } = await issue(ca, { commonName: 's', days: 1, usages: ['server'], ipAddresses: ['127.0.0.1'] });
  const server = createSecureServer({ key, cert });
  const sessions: ServerHttp2Session[] = [];
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {});
    const path = headers[':path']!;
    asked.push(path);
    onWrite();
    if (path.includes('silent')) return;
    setTimeout(() => {
      stream.respond({ ':status': 201, 'content-type': 'application/json' });
      stream.end(JSON.stringify(configMap('made')));
    }, 50);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  client = new KubeClient({ server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca: ca.cert });
  stopServer = () => {
    for (const session of sessions) session.destroy();
    server.close();
  };
});
afterAll(async () => {
  await client?.close();
  stopServer?.();
});

it('an aborted write that was already sent is awaited, because it may take effect', async () => {
  const stop = new AbortController();
  onWrite = () => stop.abort(new Error('given up'));
  const made = await client.create(configMap('a'), { signal: stop.signal });
  expect(made.metadata.name).toBe('made');
});

it('an aborted write is awaited for two seconds at most', async () => {
  const stop = new AbortController();
  onWrite = () => stop.abort(new Error('given up'));
  await expect(client.request('POST', '/silent', { body: {}, signal: stop.signal })).rejects.toThrow('given up');
});

it('an aborted write that was not sent stays unsent, and an aborted read is not awaited', async () => {
  asked.length = 0;
  const signal = AbortSignal.abort(new Error('given up'));
  await expect(client.create(configMap('a'), { signal })).rejects.toThrow('given up');
  expect(asked).toEqual([]);

  const stop = new AbortController();
  onWrite = () => asked.length === 2 && stop.abort(new Error('given up'));
  const [write, read] = (['POST', 'GET'] as const).map((method) =>
    client.request(method, '/silent', { signal: stop.signal }).catch((error: Error) => `${method} ${error.message}`),
  );
  expect(await Promise.race([write, read])).toBe('GET given up');
  expect(await write).toBe('POST given up');
});

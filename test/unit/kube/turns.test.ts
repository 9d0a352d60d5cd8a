import { once } from 'node:events';
import { createSecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KubeClient } from '../../../operator/kube/client.ts';
import { TENANT_LIMITS } from '../../../operator/kube/http/answer-limits.ts';
import { Turns, tenantTurns } from '../../../operator/kube/http/turns.ts';
import { NODES } from '../../../operator/kube/resources.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';

const LONG = 'x'.repeat(1_000_000);
const SERVERS = 8;

it('Turns give pieces of work some milliseconds of each turn of the event loop, in order of arrival', async () => {
  let now = 0;
  const turns = new Turns(() => now);
  const done: string[] = [];
  const piece = (name: string) =>
    turns.take(() => {
      now += 2;
      done.push(name);
    });
  const pieces = ['a', 'b', 'c', 'd', 'e'].map(piece);
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toEqual(['a', 'b', 'c']);
  await Promise.all(pieces);
  expect(done).toEqual(['a', 'b', 'c', 'd', 'e']);
  await expect(turns.take(() => JSON.parse('{'))).rejects.toThrow(SyntaxError);
  await piece('f');
});

describe("informers of tenants' API servers that send without pause", () => {
  const clients: KubeClient[] = [];
  let stopServer: () => void;

  const inTurns = vi.spyOn(tenantTurns, 'take');

  beforeAll(async () => {
    const ca = await createCA({ commonName: 'test', days: 1 });
    const { key, cert } = await issue(ca, { commonName: 's', days: 1, usages: ['server'], ipAddresses: ['127.0.0.1'] });
    const server = createSecureServer({ key, cert });
    const sessions: ServerHttp2Session[] = [];
    const event = `${JSON.stringify({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '2' } } })}\n`;
    server.on('session', (session) => sessions.push(session));
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      stream.respond({ ':status': 200, 'content-type': 'application/json' });
      if (!headers[':path']!.includes('watch')) return stream.end(JSON.stringify({ text: LONG }));
      const pour = () => {
        while (!stream.destroyed && stream.write(event.repeat(100)));
      };
      stream.on('drain', pour);
      pour();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const where = { server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, ca: ca.cert };
    for (let i = 0; i < SERVERS; i++) clients.push(new KubeClient({ ...where, limits: TENANT_LIMITS }));
    stopServer = () => {
      for (const session of sessions) session.destroy();
      server.close();
    };
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    stopServer?.();
  });

  it('all sync, and other work goes on', async () => {
    const stop = new AbortController();
    const heard = new Set<number>();
    const watching = clients.map((client, i) =>
      client.watch(NODES, { resourceVersion: '1', signal: stop.signal }, () => heard.add(i)).catch(() => {}),
    );
    for (let turns = 0; turns < 200 || heard.size < SERVERS; turns++)
      await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    await Promise.all(watching);
    expect(inTurns.mock.calls.length).toBeGreaterThan(SERVERS);
  });

  it('read their lists to the end', async () => {
    const asked = clients.flatMap((client) => [1, 2, 3].map(() => client.request<{ text: string }>('GET', '/long')));
    for (const { text } of await Promise.all(asked)) expect(text === LONG).toBe(true);
  });
});

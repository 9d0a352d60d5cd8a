import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect, it } from 'vitest';
import { Http2Pool } from '../../../operator/kube/http/http2-pool.ts';

it('Http2Pool survives being closed while a connection opens', async () => {
  // It says nothing, so what is thrown here is not of the server's session.
  const server = createServer((accepted) => accepted.on('error', () => {}).resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const { promise: dialled, resolve } = Promise.withResolvers<TLSSocket>();
  const pool = new Http2Pool({ dial: () => dialled, origin: `http://127.0.0.1:${port}`, pingMs: 60_000 });
  const exchange = { method: 'GET', path: '/', headers: {}, headersTimeoutMs: 1000, bodyTimeoutMs: 1000 };
  const answer = pool.request(exchange).catch((error: Error) => error);
  const closed = dialled.then(() => pool.close());
  const faults: unknown[] = [];
  const note = (fault: unknown) => faults.push(fault);
  process.prependListener('uncaughtException', note);
  resolve(socket as TLSSocket);
  await closed;
  expect(await answer).toBeInstanceOf(Error);
  await new Promise((done) => setImmediate(done));
  process.off('uncaughtException', note);
  server.close();
  expect(faults).toEqual([]);
});

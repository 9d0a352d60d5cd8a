import { connect, createServer, type Server, type Socket } from 'node:net';
import { expect, it } from 'vitest';
import { listenInNamespace } from '../../../operator/garden/host/listeners.ts';
import { freePorts } from '../../kit/apiserver.ts';

/** A namespace that is there for sure. To enter it, even so, takes root. */
const OWN = ['nsenter', '--net=/proc/self/ns/net'];
const isRoot = process.getuid?.() === 0;
const closed = (server: Server) => new Promise((resolve) => server.close(resolve));

const says = (host: string, port: number) =>
  new Promise<string>((resolve) => {
    const socket = connect(port, host);
    socket.on('data', (data) => resolve(String(data)));
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.on('close', () => resolve('closed without a word'));
  });

it.skipIf(!isRoot)('listenInNamespace hands over a socket for each address by one process', async () => {
  const [port] = await freePorts(1);
  const servers = await listenInNamespace(OWN, ['127.0.0.1', '127.0.0.2'], port!);
  for (const [i, server] of servers.entries()) server.on('connection', (socket: Socket) => socket.end(`this is ${i}`));
  expect(await says('127.0.0.1', port!)).toBe('this is 0');
  expect(await says('127.0.0.2', port!)).toBe('this is 1');
  await Promise.all(servers.map(closed));
});

it.skipIf(!isRoot)('listenInNamespace loses no connection made during the hand-over', async () => {
  const hosts = ['127.0.0.1', '127.0.0.2'];
  for (let round = 0; round < 3; round++) {
    const [port] = await freePorts(1);
    const servers = await listenInNamespace(OWN, hosts, port!);
    for (const server of servers) server.on('connection', (socket: Socket) => socket.end('here'));
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => says(hosts[i % 2]!, port!)));
    expect(new Set(answers)).toEqual(new Set(['here']));
    await Promise.all(servers.map(closed));
  }
});

it.skipIf(!isRoot)('listenInNamespace fails for an address in use, and leaves no other socket open', async () => {
  const [port] = await freePorts(1);
  const other = createServer().listen(port, '127.0.0.2');
  await new Promise((resolve) => other.once('listening', resolve));
  await expect(listenInNamespace(OWN, ['127.0.0.1', '127.0.0.2', '127.0.0.3'], port!)).rejects.toThrow(
    /cannot listen on port \d+ of 127.0.0.1, 127.0.0.2, 127.0.0.3 in the seed: .*EADDRINUSE/,
  );
  await expect.poll(() => says('127.0.0.1', port!)).toBe('ECONNREFUSED');
  await closed(other);
});

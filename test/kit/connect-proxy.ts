import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { KeyPair } from '../../operator/pki/certificates.ts';

/** A name that only a proxy knows: no name server has it. */
export const ELSEWHERE = 'api.elsewhere.test';

export interface ConnectProxy {
  /** By name where it speaks TLS, as its certificate has none of addresses. */
  url: string;
  /** What it was asked to connect to. */
  asked: string[];
  /** Header Proxy-Authorization of these. */
  logins: (string | undefined)[];
  /** Connections that it has open for others. */
  open: () => number;
  /** Cuts all of them, and takes no more. */
  close: () => Promise<void>;
  /** Works again after that, at the same URL. */
  start: () => Promise<void>;
}

/**
 * A forward proxy (CONNECT) on loopback.
 * @param names where the hosts are that only it knows, by `host:port`: a port of loopback, or the line that it answers, `502 Bad Gateway`
 * @param pair to be reached by TLS
 */
export async function startProxy(names: Record<string, number | string>, pair?: KeyPair): Promise<ConnectProxy> {
  const asked: string[] = [];
  const logins: ConnectProxy['logins'] = [];
  const sockets = new Set<Socket>();
  const server = pair ? createTlsServer({ ...pair }) : createServer();
  server.on('request', (_, response) => void response.writeHead(501).end());
  server.on('connect', ({ url = '', headers }, client: Socket, head) => {
    asked.push(url);
    logins.push(headers['proxy-authorization']);
    sockets.add(client);
    client.once('close', () => sockets.delete(client)).on('error', () => {});
    const led = names[url] ?? '403 Forbidden';
    if (typeof led === 'string') return void client.end(`HTTP/1.1 ${led}\r\n\r\n`);
    const far = connect(led, '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      far.write(head);
      client.pipe(far).pipe(client);
    });
    far.on('error', () => {}).once('close', () => client.destroy());
    client.once('close', () => far.destroy());
  });
  const listening = (at: number) => new Promise<void>((resolve) => server.listen(at, '127.0.0.1', () => resolve()));
  await listening(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: pair ? `https://localhost:${port}` : `http://127.0.0.1:${port}`,
    asked,
    logins,
    open: () => sockets.size,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        for (const socket of sockets) socket.destroy();
      }),
    start: () => listening(port),
  };
}

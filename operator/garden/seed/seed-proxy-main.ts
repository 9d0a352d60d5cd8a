import { rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { joinSockets } from './apiserver-relay.ts';

const LONGEST_HEAD_BYTES = 4096;

/**
 * Serves CONNECT, like an HTTP proxy, at a Unix socket accessible to its user only. It runs in a network namespace:
 * clients of the socket reach that namespace and nothing else.
 */
async function serve(socketFile: string): Promise<void> {
  await rm(socketFile, { force: true });
  process.umask(0o177);
  const open = new Set<Socket>();
  const server = createServer({ maxHeaderSize: LONGEST_HEAD_BYTES }, (_, response) => response.writeHead(405).end());
  server.on('connect', ({ url = '' }, near: Socket, head: Buffer) => {
    const at = url.lastIndexOf(':');
    const far = connect({ host: url.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(url.slice(at + 1)) || 0 });
    const refuse = () => near.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
    near.on('error', () => far.destroy());
    far.once('error', refuse);
    far.once('connect', () => {
      far.off('error', refuse);
      near.write('HTTP/1.1 200 OK\r\n\r\n');
      if (head.length > 0) far.write(head);
      joinSockets(near, far, open);
    });
  });
  server.listen(socketFile);
}

await serve(process.argv[2]!);

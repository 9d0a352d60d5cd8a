import { connect, type Socket } from 'node:net';
import { listenInNamespace } from '../host/listeners.ts';

export interface Relay {
  close(): void;
}

/**
 * Makes a port of the host's 127.0.0.1 reachable in a namespace, at the same port of each of `addresses`. The API
 * server listens on the host's loopback only; TLS passes through unchanged.
 */
export async function relayIntoNamespace(
  enter: readonly string[],
  addresses: readonly string[],
  port: number,
): Promise<Relay> {
  const sockets = new Set<Socket>();
  const servers = await listenInNamespace(enter, addresses, port);
  const close = () => {
    for (const server of servers) server.close();
    for (const socket of sockets) socket.destroy();
  };
  for (const server of servers) {
    server.on('connection', (near: Socket) => joinSockets(near, connect({ host: '127.0.0.1', port }), sockets));
  }
  return { close };
}

/** Connects two sockets in both directions; each ends with the other. `open` holds both until then. */
export function joinSockets(near: Socket, far: Socket, open: Set<Socket>): void {
  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const) {
    open.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => other.destroy());
    socket.on('close', () => {
      open.delete(socket);
      other.destroySoon();
    });
  }
  near.pipe(far).pipe(near);
}

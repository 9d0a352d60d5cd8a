import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface FlakyProxy {
  /** The URL behind it with this proxy's port. */
  url: string;
  connections(): number;
  /** From now on nothing gets through and nothing is closed: what a vanished host looks like. */
  freeze(): void;
  /** Resets all connections and refuses new ones. */
  cut(): Promise<void>;
  /** Works again; frozen connections stay dead. */
  restore(): Promise<void>;
  close(): Promise<void>;
}

/** A TCP proxy on loopback whose network can fail. */
export async function startFlakyProxy(target: string): Promise<FlakyProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let frozen = false;
  const server = createServer((near) => {
    sockets.add(near);
    near.on('error', () => {});
    near.once('close', () => sockets.delete(near));
    if (frozen) return;
    const far = connect(Number(port), hostname);
    sockets.add(far);
    far.on('error', () => near.destroy());
    far.once('close', () => {
      sockets.delete(far);
      if (!frozen) near.destroy();
    });
    near.once('close', () => far.destroy());
    near.on('data', (data) => void (frozen || far.write(data)));
    far.on('data', (data) => void (frozen || near.write(data)));
  });
  const listen = async (at: number) => {
    server.listen(at, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as { port: number }).port;
  };
  const own = await listen(0);
  const cut = async () => {
    const closed = server.listening ? new Promise((resolve) => server.close(resolve)) : undefined;
    for (const socket of sockets) socket.resetAndDestroy();
    await closed;
  };
  return {
    url: `https://127.0.0.1:${own}`,
    connections: () => sockets.size / 2,
    freeze() {
      frozen = true;
    },
    cut,
    async restore() {
      frozen = false;
      if (!server.listening) await listen(own);
    },
    close: cut,
  };
}

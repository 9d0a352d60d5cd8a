import { createServer } from 'node:net';

/** Ports on 127.0.0.1 of the host. */
export interface Ports {
  apiserver: number;
  etcd: number;
  etcdPeer: number;
}

const PORTS_FROM = 21_000;
const PORTS_COUNT = 9_000;

/** Whether a port of 127.0.0.1 can be listened on now. */
export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(true)));
  });

/**
 * Free ports below the kernel's ephemeral range, so that no outgoing connection takes them before use. `id` sets the
 * start of the search, so that gardens rarely collide.
 */
export async function choosePorts(id: string, isFree = isPortFree): Promise<Ports> {
  const start = Number.parseInt(id, 16) % PORTS_COUNT;
  const found: number[] = [];
  for (let i = 0; i < PORTS_COUNT && found.length < 3; i++) {
    const port = PORTS_FROM + ((start + i) % PORTS_COUNT);
    if (await isFree(port)) found.push(port);
  }
  const [apiserver, etcd, etcdPeer] = found;
  if (!apiserver || !etcd || !etcdPeer) throw new Error('no three free ports between 21000 and 30000 on 127.0.0.1');
  return { apiserver, etcd, etcdPeer };
}

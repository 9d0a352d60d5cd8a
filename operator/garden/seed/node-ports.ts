import { request } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { KubeClient } from '../../kube/client.ts';
import { InTurn } from '../../kube/in-turn.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { keyOf, SERVICES, type Service } from '../../kube/resources.ts';
import { isPortFree } from '../host/ports.ts';
import { joinSockets } from './apiserver-relay.ts';

/** A connection to an address in the seed through its proxy at a Unix socket. Rejects on failure. */
export const connectInSeed = (socketFile: string, host: string, port: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const asked = request({ socketPath: socketFile, method: 'CONNECT', path: `${host}:${port}`, agent: false });
    asked.on('error', reject);
    asked.on('response', ({ statusCode }) => reject(new Error(`${host}:${port} in the seed: HTTP ${statusCode}`)));
    asked.on('connect', ({ statusCode }, socket: Socket, head) => {
      if (statusCode !== 200) {
        socket.destroy();
        return reject(new Error(`${host}:${port} in the seed cannot be reached`));
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    asked.end();
  });

/** Node ports of the Services with their addresses, for the host's loopback. */
export const nodePortsOf = (services: readonly Service[]): Map<number, string> =>
  new Map(
    services
      .filter(({ spec, metadata }) => spec.type === 'NodePort' && !metadata.deletionTimestamp)
      .flatMap((service) =>
        (service.spec.ports ?? []).flatMap(({ nodePort }) => (nodePort ? [[nodePort, keyOf(service)] as const] : [])),
      ),
  );

/** API servers' default range of node ports. */
const NODE_PORTS = { from: 30_000, count: 2_768 };
/** Retry of a port that could not be opened. */
const AGAIN_MS = 10_000;
const MOST_TRIES = 50;

/** A node port unused by Services and free on the host; `random` (0 to 1) sets the start of the search. */
async function freeNodePort(
  taken: ReadonlyMap<number, string>,
  random: () => number,
  isFree = isPortFree,
): Promise<number | undefined> {
  for (let i = 0; i < MOST_TRIES; i++) {
    const port = NODE_PORTS.from + Math.floor(random() * NODE_PORTS.count);
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  return undefined;
}

/**
 * Makes each node port of a rootless seed reachable at the same port of the host's 127.0.0.1, which has no route there.
 * A Service whose port is taken on the host gets another one.
 */
export class NodePorts {
  readonly #informer: Informer<Service>;
  readonly #open = new Map<number, Server>();
  readonly #sockets = new Set<Socket>();
  readonly #way: { socketFile: string; nodeAddress: string };
  readonly #log: Log;
  readonly #client: KubeClient;
  readonly #moves = new InTurn();
  #again: NodeJS.Timeout | undefined;

  constructor(client: KubeClient, way: { socketFile: string; nodeAddress: string }, log: Log) {
    this.#way = way;
    this.#log = log;
    this.#client = client;
    this.#informer = new Informer(client, SERVICES, { log });
    this.#informer.onChange(() => this.#follow());
  }

  start(): void {
    this.#informer.start();
    this.#again = setInterval(() => this.#follow(), AGAIN_MS).unref();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
    clearInterval(this.#again);
    for (const server of this.#open.values()) server.close();
    this.#open.clear();
    for (const socket of this.#sockets) socket.destroy();
  }

  #follow(): void {
    const wanted = nodePortsOf(this.#informer.list());
    for (const [port, server] of this.#open) {
      if (wanted.has(port)) continue;
      server.close();
      this.#open.delete(port);
    }
    for (const [port, service] of wanted) if (!this.#open.has(port)) this.#listen(port, service);
  }

  #listen(port: number, service: string): void {
    const { socketFile, nodeAddress } = this.#way;
    const server = createServer((near) => {
      this.#sockets.add(near);
      near.on('close', () => this.#sockets.delete(near));
      near.on('error', () => {});
      connectInSeed(socketFile, nodeAddress, port).then(
        (far) => joinSockets(near, far, this.#sockets),
        () => near.destroy(),
      );
    });
    server.on('error', (error: NodeJS.ErrnoException) => {
      this.#open.delete(port);
      this.#log.warn({ port, service, error: error.message }, 'a node port cannot be served on the loopback');
      if (error.code === 'EADDRINUSE') void this.#moves.run(() => this.#move(port, service));
    });
    this.#open.set(port, server);
    server.listen({ port, host: '127.0.0.1', exclusive: true });
  }

  /** Replaces a Service's node port that is taken on the host. */
  async #move(port: number, key: string): Promise<void> {
    const service = this.#informer.get(key);
    const other = await freeNodePort(nodePortsOf(this.#informer.list()), Math.random);
    if (!service || other === undefined) return;
    const ports = (service.spec.ports ?? []).map((one) => (one.nodePort === port ? { ...one, nodePort: other } : one));
    const { name, namespace, resourceVersion } = service.metadata;
    try {
      // Only this version of the Service: its port may have changed.
      const change = { metadata: { resourceVersion }, spec: { ports } };
      await this.#client.mergePatch(SERVICES, name, namespace, change);
      this.#log.info({ port, other, service: key }, 'another program uses the node port: the Service gets another one');
    } catch (error) {
      this.#log.warn(
        { port, service: key, error: String(error) },
        'the node port cannot be changed; the garden tries again',
      );
    }
  }
}

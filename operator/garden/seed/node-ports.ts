import { request } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { KubeClient } from '../../kube/client.ts';
import { InTurn } from '../../kube/in-turn.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import { keyOf, SERVICES, type Service } from '../../kube/resources.ts';
import { isPortFree } from '../host/ports.ts';
import { joinSockets } from './apiserver-relay.ts';

/** A connection to an address in the seed, by its proxy at a Unix socket. Rejects when there is no way. */
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

/** Node ports of the Services, as the host's loopback is to have them. */
export const nodePortsOf = (services: readonly Service[]): Map<number, string> =>
  new Map(
    services
      .filter(({ spec, metadata }) => spec.type === 'NodePort' && !metadata.deletionTimestamp)
      .flatMap((service) =>
        (service.spec.ports ?? []).flatMap(({ nodePort }) => (nodePort ? [[nodePort, keyOf(service)] as const] : [])),
      ),
  );

/** Where API servers choose node ports, unless they are told otherwise. */
const NODE_PORTS = { from: 30_000, count: 2_768 };
/** How soon a port is tried again that could not be listened on. */
const AGAIN_MS = 10_000;
const MOST_TRIES = 50;

/** A node port that no Service has and that is free on the host, looked for from a place that `random` (0 to 1) says. */
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
 * Makes each node port of a rootless seed reachable at the same port of the host's 127.0.0.1, which has no route there. A Service whose
 * port another program of the host has gets another one.
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

  /** Gives a Service another port in the place of one that is taken on the host. */
  async #move(port: number, key: string): Promise<void> {
    const service = this.#informer.get(key);
    const other = await freeNodePort(nodePortsOf(this.#informer.list()), Math.random);
    if (!service || other === undefined) return;
    const ports = (service.spec.ports ?? []).map((one) => (one.nodePort === port ? { ...one, nodePort: other } : one));
    const { name, namespace, resourceVersion } = service.metadata;
    try {
      // Of the Service as it was seen: it may have another port by now.
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

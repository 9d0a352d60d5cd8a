import { request } from 'node:http';
import { createServer, type Server, type Socket } from 'node:net';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import { keyOf, SERVICES, type Service } from '../kube/resources.ts';
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

/** Makes each node port of a rootless seed reachable at the same port of the host's 127.0.0.1, which has no route there. */
export class NodePorts {
  readonly #informer: Informer<Service>;
  readonly #open = new Map<number, Server>();
  readonly #sockets = new Set<Socket>();
  readonly #way: { socketFile: string; nodeAddress: string };
  readonly #log: Log;

  constructor(client: KubeClient, way: { socketFile: string; nodeAddress: string }, log: Log) {
    this.#way = way;
    this.#log = log;
    this.#informer = new Informer(client, SERVICES, { log });
    this.#informer.onChange(() => this.#follow());
  }

  start(): void {
    this.#informer.start();
  }

  async stop(): Promise<void> {
    await this.#informer.stop();
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
    server.on('error', (error) => {
      this.#open.delete(port);
      this.#log.warn({ port, service, error: error.message }, 'a node port cannot be served on the loopback');
    });
    this.#open.set(port, server);
    server.listen({ port, host: '127.0.0.1', exclusive: true });
  }
}

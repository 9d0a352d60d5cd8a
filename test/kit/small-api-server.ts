import { once } from 'node:events';
import { createSecureServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createCA, issue } from '../../operator/pki/certificates.ts';
import { writeKubeconfigText } from '../../operator/pki/kubeconfig.ts';

interface Stored {
  kind?: string;
  type?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    resourceVersion?: string;
    labels?: Record<string, string>;
  };
}

const END = { 'k8s.io/initial-events-end': 'true' };
const AUTHORITY = createCA({ commonName: 'small', days: 1 });

/**
 * As much of an API server as a client and its caches need, in the tests' process: objects by path, lists as watches, apply, delete. It
 * checks nothing; what an API server refuses, a real one has to show.
 */
export class SmallApiServer {
  /** Objects by their path, for example /api/v1/nodes/one. Change them by `put` and `remove`. */
  readonly objects = new Map<string, Stored>();
  /** Method and path of each request that was answered. */
  readonly requests: string[] = [];
  /** Status of what is answered instead, by the start of its path. */
  readonly refuses = new Map<string, number>();
  readonly #watches = new Set<{ path: string; query: URLSearchParams; stream: ServerHttp2Stream }>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #server: Http2Server;
  readonly ca: string;
  #version = 1;

  private constructor(server: Http2Server, ca: string) {
    this.#server = server;
    this.ca = ca;
  }

  /** @param identity UID of its namespace kube-system */
  static async start(identity: string): Promise<SmallApiServer> {
    const ca = await AUTHORITY;
    const { key, cert } = await issue(ca, { commonName: 's', days: 1, usages: ['server'], ipAddresses: ['127.0.0.1'] });
    const server = createSecureServer({ key, cert });
    const small = new SmallApiServer(server, ca.cert);
    server.on('session', (session) => {
      session.on('error', () => {});
      small.#sessions.add(session);
    });
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {});
      void small.#answer(stream, headers[':method'] ?? 'GET', headers[':path'] ?? '/');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    small.put('/api/v1/namespaces/kube-system', { metadata: { name: 'kube-system', uid: identity } });
    return small;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get kubeconfig(): string {
    return writeKubeconfigText({ server: this.url, ca: this.ca, token: 't', name: 'c', user: 'u' });
  }

  put(path: string, object: Stored): Stored {
    const before = this.objects.get(path);
    const { uid = before?.metadata.uid ?? `uid-${this.#version}` } = object.metadata;
    const stored = { ...object, metadata: { ...object.metadata, uid, resourceVersion: `${++this.#version}` } };
    this.objects.set(path, stored);
    this.#tell(before ? 'MODIFIED' : 'ADDED', path, stored);
    return stored;
  }

  remove(path: string): void {
    const before = this.objects.get(path);
    if (!this.objects.delete(path) || !before) return;
    this.#tell('DELETED', path, { ...before, metadata: { ...before.metadata, resourceVersion: `${++this.#version}` } });
  }

  async stop(): Promise<void> {
    this.#server.close();
    for (const session of this.#sessions) session.destroy();
  }

  /** All connections end, and clients come back. */
  disconnect(): void {
    for (const session of this.#sessions) session.destroy();
    this.#sessions.clear();
  }

  async #answer(stream: ServerHttp2Stream, method: string, target: string): Promise<void> {
    const { pathname, searchParams: query } = new URL(target, 'https://localhost');
    this.requests.push(`${method} ${pathname}`);
    const say = (status: number, body: object) => {
      stream.respond({ ':status': status, 'content-type': 'application/json' });
      stream.end(JSON.stringify(body));
    };
    const refused = [...this.refuses].find(([start]) => pathname.startsWith(start));
    if (refused) return say(refused[1], { kind: 'Status', code: refused[1], message: 'refused' });
    if (pathname === '/version') return say(200, { gitVersion: 'v1.36.3' });
    if (query.has('watch')) return this.#watch(stream, pathname, query);
    const known = this.objects.get(pathname);
    const notFound = { kind: 'Status', code: 404, reason: 'NotFound', message: 'not found' };
    if (method === 'PATCH' || method === 'POST') {
      const body = JSON.parse(await text(stream)) as Stored;
      const isCreated = method === 'POST' && pathname.endsWith('/secrets');
      const path = isCreated ? `${pathname}/${body.metadata.name}` : pathname;
      if (isCreated && this.objects.has(path)) return say(409, { kind: 'Status', code: 409, reason: 'AlreadyExists' });
      return say(200, this.put(path, { ...known, ...body, metadata: { ...known?.metadata, ...body.metadata } }));
    }
    if (known && method === 'DELETE') this.remove(pathname);
    if (known) return say(200, known);
    const isList = /\/(nodes|pods|secrets)$/.test(pathname);
    if (!isList) return say(404, notFound);
    const items = [...this.objects].filter(([path]) => isIn(path, pathname)).map(([, object]) => object);
    return say(200, { kind: 'List', metadata: { resourceVersion: `${this.#version}` }, items });
  }

  #watch(stream: ServerHttp2Stream, path: string, query: URLSearchParams): void {
    stream.respond({ ':status': 200, 'content-type': 'application/json' });
    const watch = { path, query, stream };
    this.#watches.add(watch);
    stream.once('close', () => this.#watches.delete(watch));
    if (!query.has('sendInitialEvents')) return;
    for (const [at, object] of this.objects) if (isWanted(watch, at, object)) write(stream, 'ADDED', object);
    const metadata = { name: '', resourceVersion: `${this.#version}`, annotations: END };
    write(stream, 'BOOKMARK', { metadata });
  }

  #tell(type: string, path: string, object: Stored): void {
    for (const watch of this.#watches) if (isWanted(watch, path, object)) write(watch.stream, type, object);
  }
}

/** Whether an object at this path is in the collection, in whatever namespace. */
const isIn = (path: string, collection: string): boolean => {
  const plural = collection.slice(collection.lastIndexOf('/'));
  const folder = path.slice(0, path.lastIndexOf('/'));
  return folder === collection || (!collection.includes('/namespaces/') && folder.endsWith(plural));
};

function isWanted({ path, query }: { path: string; query: URLSearchParams }, at: string, object: Stored): boolean {
  const { metadata, type } = object;
  const fields: Record<string, string | undefined> = { 'metadata.name': metadata.name, type };
  const [field = '', wanted] = query.get('fieldSelector')?.split('=') ?? [];
  const [label = '', value] = query.get('labelSelector')?.split('=') ?? [];
  const labelled = metadata.labels?.[label];
  const isLabelled = value === undefined ? labelled !== undefined : labelled === value;
  return isIn(at, path) && (!field || fields[field] === wanted) && (!label || isLabelled);
}

const write = (stream: ServerHttp2Stream, type: string, object: object): void => {
  if (!stream.destroyed) stream.write(`${JSON.stringify({ type, object })}\n`);
};

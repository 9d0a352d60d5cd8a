import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AddressList } from '../../api/address-range.ts';
import { type Log, silent } from '../../kube/log.ts';
import type { Content, Upstream, UpstreamRequest } from './content.ts';
import { type Blob, type ImageManifest, ImageStore } from './store.ts';

interface Mirror {
  /** e.g. `https://10.0.0.1:5000`. */
  url: string;
  /** Stops the server and all transfers. */
  close(): Promise<void>;
}

interface MirrorOptions {
  /** Folders of image layouts, in order of precedence. */
  dirs: readonly string[];
  host: string;
  port: number;
  /** PEM. Absent: no TLS. */
  tls?: { readonly cert: string; readonly key: string };
  /** Opens the listening socket elsewhere, for example in another network namespace. */
  listen?: (host: string, port: number) => Promise<Server>;
  /** `name:tag` of images being built: requests wait until they exist. */
  expected?: readonly string[];
  /** Full names of images built on request, and the callback for a request; requests wait too. */
  onDemand?: { readonly names: readonly string[]; ask(name: string): Promise<void> };
  /** Source of images that are not local, opened with the first such request. */
  upstream?: () => Promise<Upstream>;
  /** Permitted client addresses; absent: all. */
  peers?: AddressList;
  log?: Log;
}

const ROUTE = /^\/v2\/(?<name>[a-z0-9._/-]+)\/(?<kind>manifests|blobs)\/(?<reference>[\w.:-]+)$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REGISTRY = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/;
/** Registry names of Coppice's own images, which exist nowhere else. */
const OWN_REGISTRIES = ['coppice.local', 'coppice.test'];

/**
 * Serves folders of image layouts, and images of other registries, by the OCI distribution API, read-only. With `tls`
 * it also answers plain HTTP. containerd adds `?ns=<registry>` to requests; then only that registry's images match.
 */
export async function startMirror(options: MirrorOptions): Promise<Mirror> {
  const stores = options.dirs.map((dir) => new ImageStore(dir));
  const log = options.log ?? silent;
  let upstream: Promise<Upstream> | undefined;
  const open = () => {
    upstream ??= options.upstream?.().catch((error) => {
      upstream = undefined;
      throw error;
    });
    return upstream;
  };
  const room: Room = { stores, expected: options.expected ?? [], onDemand: options.onDemand, upstream: open };
  const { server, end } = serverFor((request, response) => {
    answer(room, request, response).catch((error: Error & { status?: number }) => {
      if (response.headersSent) {
        log.warn({ url: request.url, error: error.message }, 'mirror request failed');
        return void response.destroy();
      }
      if (error.status !== undefined) {
        log.info({ url: request.url, error: error.message }, 'the image cannot be pulled');
        return refuseUpstream(request, response, error.status, error.message);
      }
      log.warn({ url: request.url, error: error.message }, 'mirror request failed');
      refuse(response, 500, 'UNKNOWN', 'the image cannot be read');
    });
  }, options.tls);
  const { peers } = options;
  if (peers)
    server.on('connection', (connection) => {
      // An IPv6 socket may show IPv4 addresses as ::ffff:10.0.0.1, which the list accepts.
      if (!peers.has(connection.remoteAddress ?? '')) connection.destroy();
    });
  const socket = await options.listen?.(options.host, options.port);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    if (socket) server.listen(socket, resolve);
    else server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = (socket ?? server).address() as AddressInfo;
  return {
    url: `${options.tls ? 'https' : 'http'}://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        end();
      });
      await (await upstream?.catch(() => undefined))?.close();
    },
  };
}

interface Room {
  stores: readonly ImageStore[];
  expected: readonly string[];
  onDemand: MirrorOptions['onDemand'];
  upstream: () => Promise<Upstream> | undefined;
}

async function answer(room: Room, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://mirror');
  response.setHeader('docker-distribution-api-version', 'registry/2.0');
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return refuse(response, 405, 'UNSUPPORTED', 'this registry is read-only');
  }
  if (pathname === '/v2/' || pathname === '/v2') {
    response.setHeader('content-type', 'application/json');
    response.end('{}');
    return;
  }
  const { name, kind, reference } = ROUTE.exec(pathname)?.groups ?? {};
  if (!name || !reference) return refuse(response, 404, 'NAME_UNKNOWN', `nothing is at ${pathname}`);
  const registry = searchParams.get('ns') ?? undefined;
  const isDigest = DIGEST.test(reference);
  const fromElsewhere = () => elsewhere(room, registry, { repository: name, reference }, request);

  if (kind === 'blobs') {
    const blob = isDigest ? await first(room.stores, (store) => store.blob(reference)) : undefined;
    if (blob) return send(request, response, contentOf(blob, reference, 'application/octet-stream'));
    const content = isDigest ? await (await fromElsewhere())?.('blob') : undefined;
    return content
      ? send(request, response, content)
      : refuse(response, 404, 'BLOB_UNKNOWN', `${reference} is not here`);
  }
  const find = () =>
    first(room.stores, (store) => (isDigest ? store.blob(reference) : store.manifest(registry, name, reference)));
  const madeLater = async () => awaited(find, await willBeMade(room, registry, `${name}:${reference}`), request);
  const found = (await find()) ?? (isDigest ? undefined : await madeLater());
  if (found && isManifest(found)) return send(request, response, contentOf(found, found.digest, found.mediaType));
  const content = await (await fromElsewhere())?.('manifest');
  if (content) return send(request, response, content);
  return refuse(response, 404, 'MANIFEST_UNKNOWN', `this registry has no ${name}:${reference}`);
}

/** Whether the image will exist without further action; triggers a build on demand. */
async function willBeMade(
  { expected, onDemand }: Room,
  registry: string | undefined,
  tagged: string,
): Promise<boolean> {
  if (expected.includes(tagged)) return true;
  const name = `${registry}/${tagged}`;
  if (!onDemand?.names.includes(name)) return false;
  await onDemand.ask(name);
  return true;
}

/** Client of other registries; undefined where none is configured. */
async function elsewhere(
  { upstream }: Room,
  registry: string | undefined,
  wanted: Pick<UpstreamRequest, 'repository' | 'reference'>,
  { headers }: IncomingMessage,
): Promise<((kind: 'manifest' | 'blob') => Promise<Content>) | undefined> {
  if (registry === undefined || !REGISTRY.test(registry) || OWN_REGISTRIES.includes(registry)) return undefined;
  const opened = await upstream();
  if (!opened) return undefined;
  const authorization = /^Basic ([\w+/=-]+)$/i.exec(headers.authorization ?? '')?.[1];
  return (kind) => opened[kind]({ registry, ...wanted, ...(authorization && { authorization }) });
}

async function first<T>(stores: readonly ImageStore[], find: (store: ImageStore) => Promise<T | undefined>) {
  for (const store of stores) {
    const found = await find(store);
    if (found !== undefined) return found;
  }
  return undefined;
}

const PATIENCE_MS = 15 * 60_000;
const LOOK_MS = 500;

/**
 * Result of `find`; waits for an image being built. A kubelet told "not found" retries only after a backoff of up to
 * five minutes.
 */
async function awaited<T>(
  find: () => Promise<T | undefined>,
  isExpected: boolean,
  request: IncomingMessage,
): Promise<T | undefined> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await find();
    if (found !== undefined || !isExpected || request.socket.destroyed || Date.now() > deadline) return found;
    await sleep(LOOK_MS);
  }
}

const isManifest = (blob: Blob): blob is ImageManifest => 'mediaType' in blob;

const contentOf = ({ file, offset, size }: Blob, digest: string, type: string): Content => ({
  digest,
  type,
  size,
  read: (start = 0, end = size) =>
    createReadStream(file, { start: offset + start, end: offset + end - 1, highWaterMark: 256 * 1024 }),
});

async function send(request: IncomingMessage, response: ServerResponse, content: Content): Promise<void> {
  const { digest, type, size } = content;
  const headers = { 'content-type': type, 'docker-content-digest': digest, 'accept-ranges': 'bytes' };
  const range = size === undefined ? undefined : rangeOf(request.headers.range, size);
  if (range === 'none') {
    response.writeHead(416, { 'content-range': `bytes */${size}` });
    response.end();
    return;
  }
  const { start, end } = range ?? { start: 0, end: size };
  response.writeHead(range ? 206 : 200, {
    ...headers,
    ...(end !== undefined && { 'content-length': end - start }),
    ...(range && { 'content-range': `bytes ${start}-${range.end - 1}/${size}` }),
  });
  if (request.method === 'HEAD' || start === end) {
    response.end();
    return;
  }
  await pipeline(Readable.from(content.read(start, end), { objectMode: false }), response).catch(
    (error: NodeJS.ErrnoException) => {
      // The client disconnected.
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.code !== 'ECONNRESET' && error.code !== 'EPIPE')
        throw error;
    },
  );
}

/** A byte range, `end` exclusive; undefined: everything; `none`: out of range. */
function rangeOf(header: string | undefined, size: number): { start: number; end: number } | 'none' | undefined {
  const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(header ?? '') ?? [];
  if (from === undefined) return undefined;
  const start = Number(from);
  const end = to ? Math.min(size, Number(to) + 1) : size;
  return start < end ? { start, end } : 'none';
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors: [{ code, message }] }));
}

/**
 * Refuses with the reason also as status text: a pull begins with HEAD, and containerd copies only its status line into
 * the pod's status.
 */
function refuseUpstream(request: IncomingMessage, response: ServerResponse, status: number, message: string): void {
  const text = message.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 500);
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  // containerd then sends the credentials of the pod's imagePullSecrets, if any.
  if (status === 401 && !request.headers.authorization) headers['www-authenticate'] = 'Basic realm="registry"';
  response.writeHead(status, text, headers);
  response.end(request.method === 'HEAD' ? undefined : JSON.stringify({ errors: [{ code: 'DENIED', message: text }] }));
}

/** First byte of a TLS client: a handshake record. */
const TLS_HANDSHAKE = 0x16;
/** Clients send their first byte at once. */
const FIRST_BYTE_MS = 30_000;

/**
 * A server for clients with and without TLS on one port: machines of an earlier Coppice connect without TLS until they
 * are reconfigured.
 */
function serverFor(listener: RequestListener, tls: MirrorOptions['tls']): { server: Server; end: () => void } {
  const plain = createServer(listener);
  if (!tls) return { server: plain, end: () => plain.closeAllConnections() };
  const secure = createSecureServer(tls, listener);
  const open = new Set<Socket>();
  const server = createNetServer({ pauseOnConnect: false }, (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(FIRST_BYTE_MS, () => socket.destroy());
    socket.once('readable', () => {
      const first = socket.read(1) as Buffer | null;
      if (!first) return void socket.destroy();
      socket.setTimeout(0);
      socket.removeAllListeners('timeout');
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).emit('connection', socket);
    });
  });
  return {
    server,
    end: () => {
      for (const socket of open) socket.destroy();
    },
  };
}

import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AddressList } from '../../api/address-range.ts';
import { type Log, silent } from '../../kube/log.ts';
import type { Content, Upstream, UpstreamRequest } from './content.ts';
import { type Blob, ImageStore, type Manifest } from './store.ts';

export interface Mirror {
  /** e.g. `http://10.0.0.1:5000`. */
  url: string;
  /** Ends the server and every transfer. */
  close(): Promise<void>;
}

export interface MirrorOptions {
  /** Folders of image layouts; what the first has goes before what others have. */
  dirs: readonly string[];
  host: string;
  port: number;
  /** Makes the listening socket elsewhere, for example in another network namespace. */
  listen?: (host: string, port: number) => Promise<Server>;
  /** `name:tag` of images that are still to be made: who asks for one is kept waiting until it is there. */
  expected?: readonly string[];
  /** Full names of images that are only made once somebody asks, and who is told that: who asks is kept waiting, too. */
  onDemand?: { readonly names: readonly string[]; ask(name: string): Promise<void> };
  /** Where images come from that are not here. Asked for when the first such image is wanted. */
  upstream?: () => Promise<Upstream>;
  /** Whose addresses may connect; absent: everybody's. */
  peers?: AddressList;
  log?: Log;
}

const ROUTE = /^\/v2\/(?<name>[a-z0-9._/-]+)\/(?<kind>manifests|blobs)\/(?<reference>[\w.:-]+)$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const REGISTRY = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/;
/** Images that we make under names that nobody else has. */
const OWN_REGISTRIES = ['coppice.local', 'coppice.test'];

/**
 * Serves folders of image layouts, and images of any other registry, by the OCI distribution API, read-only, over plain HTTP.
 * containerd asks a mirror with `?ns=<registry>`; then only that registry's images are meant.
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
  const server = createServer((request, response) => {
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
  });
  const { peers } = options;
  if (peers)
    server.on('connection', (connection) => {
      // By IPv6 a socket may show addresses of IPv4 as ::ffff:10.0.0.1, which the list knows.
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
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
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

/** Whether the image comes without anybody doing more; has it made if that is done on demand. */
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

/** What asks another registry; undefined where there is none to ask. */
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
 * What `find` finds; for an image that is being made, what it finds once it is there. A kubelet that is told "not here" asks
 * again only after a back-off that grows to five minutes.
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

const isManifest = (blob: Blob): blob is Manifest => 'mediaType' in blob;

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
      // The other side has hung up: that is its right.
      if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.code !== 'ECONNRESET' && error.code !== 'EPIPE')
        throw error;
    },
  );
}

/** One range of bytes, `end` exclusive; undefined: all is meant; `none`: there are no such bytes. */
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
 * Refuses with the reason as the status line's text too: of the answer to a HEAD, with which a pull begins, containerd puts that and
 * nothing else into the pod's status.
 */
function refuseUpstream(request: IncomingMessage, response: ServerResponse, status: number, message: string): void {
  const text = message.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 500);
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  // containerd answers with the credentials of the pod's imagePullSecrets, if it has any.
  if (status === 401 && !request.headers.authorization) headers['www-authenticate'] = 'Basic realm="registry"';
  response.writeHead(status, text, headers);
  response.end(request.method === 'HEAD' ? undefined : JSON.stringify({ errors: [{ code: 'DENIED', message: text }] }));
}

/**
 * What containerd reads as `hosts.toml`, in the folder `_default` for every registry or in that of one.
 * What the mirror does not have is then asked of the registry itself.
 */
export const mirrorHosts = (url: string): string => `[host."${url}"]\n  capabilities = ["pull", "resolve"]\n`;

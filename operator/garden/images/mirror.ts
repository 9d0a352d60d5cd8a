import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Log, silent } from '../../kube/log.ts';
import { type Blob, ImageStore, type Manifest } from './store.ts';

export interface Mirror {
  /** e.g. `http://10.0.0.1:5000`. */
  url: string;
  /** Ends the server and every transfer. */
  close(): Promise<void>;
}

const ROUTE = /^\/v2\/(?<name>[a-z0-9._/-]+)\/(?<kind>manifests|blobs)\/(?<reference>[\w.:-]+)$/;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Serves a folder of image layouts by the OCI distribution API, read-only, over plain HTTP.
 * containerd asks a mirror with `?ns=<registry>`; then only that registry's images are meant.
 */
export async function startMirror(options: {
  dir: string;
  host: string;
  port: number;
  /** `name:tag` of images that are still to be made: who asks for one is kept waiting until it is there. */
  expected?: readonly string[];
  log?: Log;
}): Promise<Mirror> {
  const store = new ImageStore(options.dir);
  const log = options.log ?? silent;
  const server = createServer((request, response) => {
    answer(store, request, response, options.expected ?? []).catch((error: Error) => {
      log.warn({ url: request.url, error: error.message }, 'mirror request failed');
      if (response.headersSent) response.destroy();
      else refuse(response, 500, 'UNKNOWN', 'the image cannot be read');
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, options.host, resolve);
  });
  const { address, port, family } = server.address() as AddressInfo;
  return {
    url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  store: ImageStore,
  request: IncomingMessage,
  response: ServerResponse,
  expected: readonly string[],
): Promise<void> {
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
  if (!name || !reference) return refuse(response, 404, 'NAME_UNKNOWN', `there is nothing at ${pathname}`);

  const isDigest = DIGEST.test(reference);
  if (kind === 'blobs') {
    const blob = isDigest ? await store.blob(reference) : undefined;
    if (!blob) return refuse(response, 404, 'BLOB_UNKNOWN', `${reference} is not here`);
    return send(request, response, blob, 'application/octet-stream', reference);
  }
  const found = isDigest
    ? await store.blob(reference)
    : await awaited(
        () => store.manifest(searchParams.get('ns') ?? undefined, name, reference),
        expected.includes(`${name}:${reference}`),
        request,
      );
  if (!found || !isManifest(found)) {
    return refuse(response, 404, 'MANIFEST_UNKNOWN', `${name}:${reference} is not here`);
  }
  return send(request, response, found, found.mediaType, found.digest);
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

async function send(
  request: IncomingMessage,
  response: ServerResponse,
  blob: Blob,
  type: string,
  digest: string,
): Promise<void> {
  response.writeHead(200, { 'content-type': type, 'content-length': blob.size, 'docker-content-digest': digest });
  if (request.method === 'HEAD') {
    response.end();
    return;
  }
  const body = createReadStream(blob.file, {
    start: blob.offset,
    end: blob.offset + blob.size - 1,
    highWaterMark: 256 * 1024,
  });
  await pipeline(body, response).catch((error: NodeJS.ErrnoException) => {
    // The other side has hung up: that is its right.
    if (error.code !== 'ERR_STREAM_PREMATURE_CLOSE' && error.code !== 'ECONNRESET' && error.code !== 'EPIPE')
      throw error;
  });
}

function refuse(response: ServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors: [{ code, message }] }));
}

/**
 * What containerd reads as `hosts.toml`, in the folder `_default` for every registry or in that of one.
 * What the mirror does not have is then asked of the registry itself.
 */
export const mirrorHosts = (url: string): string => `[host."${url}"]\n  capabilities = ["pull", "resolve"]\n`;

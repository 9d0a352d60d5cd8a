import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { mkdtemp, open, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { imagesDirectory } from '../../operator/garden/images/build.ts';
import { parseReference } from '../../operator/garden/images/reference.ts';
import { type Blob, ImageStore } from '../../operator/garden/images/store.ts';
import { freePorts } from './apiserver.ts';
import { testTools } from './tools.ts';

/** What a registry is made with. */
export interface RegistryOptions {
  /** Folder of what it has. Registries may share one. */
  root: string;
  /** Serves TLS with these files. */
  tls?: { cert: string; key: string };
  /** Whoever pulls needs a token from there. */
  tokens?: TokenServer;
  /** Sends who asks for a blob on to this URL. */
  blobsAt?: string;
}

export interface TestRegistry {
  /** `127.0.0.1:PORT`. */
  host: string;
  close: () => Promise<void>;
}

/** CNCF's distribution on loopback: what most registries are, or are compatible with. */
export async function startRegistry({ root, tls, tokens, blobsAt }: RegistryOptions): Promise<TestRegistry> {
  const { registry } = await testTools('registry');
  const folder = await mkdtemp(join(tmpdir(), 'coppice-registry-'));
  const [port] = await freePorts(1);
  const config = {
    version: '0.1',
    log: { level: 'warn', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: root }, maintenance: { uploadpurging: { enabled: false } } },
    http: {
      addr: `127.0.0.1:${port}`,
      ...(tls && { tls: { certificate: tls.cert, key: tls.key } }),
    },
    ...(blobsAt && { middleware: { storage: [{ name: 'redirect', options: { baseurl: blobsAt } }] } }),
    ...(tokens && {
      auth: { token: { realm: tokens.url, issuer: ISSUER, service: SERVICE, jwks: join(folder, 'jwks.json') } },
    }),
  };
  if (tokens) await writeFile(join(folder, 'jwks.json'), tokens.jwks);
  // YAML is a superset of JSON.
  await writeFile(join(folder, 'config.yml'), JSON.stringify(config));
  const child = spawn(registry, ['serve', join(folder, 'config.yml')], {
    env: { OTEL_TRACES_EXPORTER: 'none' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const said: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => said.push(line));
  await serving(child, port!, said);
  return {
    host: `127.0.0.1:${port}`,
    close: async () => {
      await ended(child);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function serving(child: ChildProcess, port: number, said: string[]): Promise<void> {
  for (const deadline = Date.now() + 30_000; ; ) {
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true));
      socket.on('error', () => resolve(false)).on('connect', () => socket.destroy());
    });
    if (isOpen) return;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`no registry: ${said.join(' | ')}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });

const ISSUER = 'test-issuer';
const SERVICE = 'test-registry';

export interface TokenServer {
  url: string;
  jwks: string;
  /** How each request for a token was authorized; undefined: not at all. */
  asked: (string | undefined)[];
  close: () => Promise<void>;
}

/** Hands out tokens as Docker Hub does: for `public/` to everybody, for the rest to `USER:PASSWORD`. */
export async function startTokens(login: string): Promise<TokenServer> {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '/', 'http://tokens');
    const [type, name = '', actions = ''] = (searchParams.get('scope') ?? '').split(':');
    const given = request.headers.authorization;
    asked.push(given);
    const mayPull = name.startsWith('public/') || given === `Basic ${Buffer.from(login).toString('base64')}`;
    const access = mayPull ? [{ type, name, actions: actions.split(',').filter((one) => one === 'pull') }] : [];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ token: token(privateKey, access), expires_in: 300 }));
  });
  const port = await listening(server);
  return {
    url: `http://127.0.0.1:${port}/token`,
    jwks: JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'test', use: 'sig', alg: 'ES256' }] }),
    asked,
    close: () => closed(server),
  };
}

function token(key: KeyObject, access: object[]): string {
  const now = Math.floor(Date.now() / 1000);
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { iss: ISSUER, sub: '', aud: SERVICE, exp: now + 300, nbf: now - 10, iat: now, jti: 'one', access };
  const text = `${part({ alg: 'ES256', typ: 'JWT', kid: 'test' })}.${part(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
}

/** Serves a registry's folder as the store elsewhere that it sends people to. */
export async function startBlobStore(
  root: string,
): Promise<{ url: string; requests: IncomingMessage[]; close: () => Promise<void> }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    readFile(join(root, new URL(request.url ?? '/', 'http://blobs').pathname)).then(
      (data) => response.end(data),
      () => response.writeHead(404).end(),
    );
  });
  const port = await listening(server);
  return { url: `http://127.0.0.1:${port}`, requests, close: () => closed(server) };
}

export const listening = (server: Server): Promise<number> =>
  new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

/** An image as registries take it. */
export interface TestImage {
  manifest: Buffer;
  mediaType: string;
  blobs: Buffer[];
}

export const digestOf = (data: Buffer): string => `sha256:${createHash('sha256').update(data).digest('hex')}`;

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';

/** An image of random layers of these sizes. Nothing can run it. */
export function randomImage(...sizes: number[]): TestImage {
  const config = Buffer.from(
    JSON.stringify({ architecture: 'amd64', os: 'linux', made: randomBytes(8).toString('hex') }),
  );
  const layers = sizes.map((size) => randomBytes(size));
  const describe = (mediaType: string, data: Buffer) => ({ mediaType, digest: digestOf(data), size: data.length });
  const manifest = {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: describe('application/vnd.oci.image.config.v1+json', config),
    layers: layers.map((layer) => describe('application/vnd.oci.image.layer.v1.tar', layer)),
  };
  return { manifest: Buffer.from(JSON.stringify(manifest)), mediaType: MANIFEST, blobs: [config, ...layers] };
}

/** The archive of an image that the garden made, e.g. `coppice.test/echo:1`. */
export async function madeArchive(ref: string): Promise<string> {
  const { registry, repository, tag } = parseReference(ref);
  const found = await new ImageStore(imagesDirectory()).manifest(registry, repository, tag);
  if (!found) throw new Error(`${ref} is not made`);
  return found.file;
}

/** An image that the garden made. */
export async function madeImage(ref: string): Promise<TestImage> {
  const { registry, repository, tag } = parseReference(ref);
  const store = new ImageStore(imagesDirectory());
  const read = async (blob: Blob | undefined) => {
    if (!blob) throw new Error(`${ref} is not made, or not whole`);
    const handle = await open(blob.file);
    const { buffer } = await handle.read(Buffer.alloc(blob.size), 0, blob.size, blob.offset);
    await handle.close();
    return buffer;
  };
  const found = await store.manifest(registry, repository, tag);
  const manifest = await read(found);
  const { config, layers } = JSON.parse(String(manifest)) as {
    config: { digest: string };
    layers: { digest: string }[];
  };
  const blobs: Buffer[] = [];
  for (const { digest } of [config, ...layers]) blobs.push(await read(await store.blob(digest)));
  return { manifest, mediaType: found!.mediaType, blobs };
}

/** An index of an image for this platform. */
export function indexOf({ manifest }: TestImage): TestImage {
  const platform = { os: 'linux', architecture: 'amd64' };
  const manifests = [{ mediaType: MANIFEST, digest: digestOf(manifest), size: manifest.length, platform }];
  const index = { schemaVersion: 2, mediaType: INDEX, manifests };
  return { manifest: Buffer.from(JSON.stringify(index)), mediaType: INDEX, blobs: [] };
}

/** Pushes an image to a registry without TLS that lets everybody do so. */
export async function push(host: string, repository: string, tag: string, image: TestImage): Promise<void> {
  const base = `http://${host}/v2/${repository}`;
  const sent = async (url: string, init: RequestInit) => {
    const response = await fetch(url, init);
    if (!response.ok) throw new Error(`${init.method} ${url} answers ${response.status}: ${await response.text()}`);
    return response;
  };
  for (const blob of image.blobs) {
    const begun = await sent(`${base}/blobs/uploads/`, { method: 'POST' });
    const at = new URL(begun.headers.get('location')!, base);
    at.searchParams.set('digest', digestOf(blob));
    await sent(at.href, { method: 'PUT', body: blob, headers: { 'content-type': 'application/octet-stream' } });
  }
  const headers = { 'content-type': image.mediaType };
  await sent(`${base}/manifests/${tag}`, { method: 'PUT', body: image.manifest, headers });
}

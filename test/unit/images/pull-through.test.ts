import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PullThrough } from '../../../operator/garden/images/upstream/pull-through.ts';

const OCI = 'application/vnd.oci.image.manifest.v1+json';
const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const DOCKER = 'application/vnd.docker.distribution.manifest.v2+json';
const DOCKER_LIST = 'application/vnd.docker.distribution.manifest.list.v2+json';
const image = { schemaVersion: 2, config: {}, layers: [] };
const index = { schemaVersion: 2, manifests: [] };

let folder: string;
let servers: Server[];
let mirror: PullThrough;
let trusted: string[];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-pull-'));
  servers = [];
  trusted = [];
  mirror = await PullThrough.open({
    folder,
    settings: async () => ({ trusted, logins: [], cacheBytes: 10 * 2 ** 30 }),
    own: [],
    inUse: async () => new Set(),
    others: async () => undefined,
    freshMs: 0,
  });
});
afterEach(async () => {
  await mirror.close();
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
  await rm(folder, { recursive: true, force: true });
});

/** A registry with one manifest, of which it says this type. @returns its host */
async function registry(body: string, said: string): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': said });
    response.end(body);
  });
  server.listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  trusted.push(`http://${host}`);
  return host;
}

const digestOf = (body: string) => `sha256:${createHash('sha256').update(body).digest('hex')}`;
const pull = (host: string, reference: string) =>
  mirror.manifest({ registry: host, repository: 'team/app', reference });

describe('the type of a manifest', () => {
  it.each([
    [OCI, image],
    [OCI, { ...image, mediaType: OCI }],
    [OCI_INDEX, index],
    [DOCKER, { ...image, mediaType: DOCKER }],
    [DOCKER_LIST, { ...index, mediaType: DOCKER_LIST }],
  ])('is %s by content, whatever the registry states', async (type, content) => {
    const host = await registry(JSON.stringify(content), 'text/html');
    expect((await pull(host, 'v1')).type).toBe(type);
  });

  it.each([
    ['of an older Docker', { schemaVersion: 1, fsLayers: [] }],
    ['of an image that says it is an index', { ...image, mediaType: OCI_INDEX }],
    ['of both at once', { ...image, manifests: [] }],
    ['of an unknown type', { ...image, mediaType: 'application/vnd.evil+json' }],
    ['of a type that is no text', { ...image, mediaType: [OCI] }],
    ['of neither', {}],
    ['that is no object', null],
  ])('is refused %s, and nothing of it is kept', async (_, content) => {
    const body = JSON.stringify(content);
    const host = await registry(body, OCI);
    for (const reference of ['v1', digestOf(body)])
      await expect(pull(host, reference)).rejects.toThrow(`${host} sent no manifest of an image for team/app`);
    expect(await readdir(folder)).toEqual(['drafts']);
  });

  it("is independent of another registry's statement on the same image", async () => {
    const body = JSON.stringify(image);
    const liar = await registry(body, OCI_INDEX);
    const honest = await registry(body, OCI);
    await pull(liar, digestOf(body));
    expect((await pull(honest, digestOf(body))).type).toBe(OCI);
  });

  it('cached by an earlier version is determined again', async () => {
    const body = JSON.stringify(image);
    const host = await registry(body, OCI);
    await pull(host, digestOf(body));
    const kept = { mediaType: OCI_INDEX, body: Buffer.from(body).toString('base64') };
    const text = JSON.stringify(kept);
    await writeFile(join(folder, 'public', `${digestOf(body).slice(7)}.json`), text);
    await mirror.close();
    mirror = await PullThrough.open({
      folder,
      settings: async () => ({ trusted: [], logins: [], cacheBytes: 10 * 2 ** 30 }),
      own: [],
      inUse: async () => new Set(),
      others: async () => undefined,
    });
    // Nobody is asked: no registry is trusted by now.
    expect((await pull(host, digestOf(body))).type).toBe(OCI);
  });
});

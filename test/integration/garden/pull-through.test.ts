import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PullThrough } from '../../../operator/garden/images/upstream/pull-through.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { startProxy } from '../../kit/connect-proxy.ts';
import { bytes, MirrorRig, pull, statusOf } from '../../kit/mirror.ts';
import { digestOf, indexOf, listening, push, randomImage, startBlobStore, startRegistry } from '../../kit/registry.ts';

const rig = new MirrorRig();

describe('an image of another registry', () => {
  it('is pulled by tag, digest and index, and from the cache when the registry is gone', async () => {
    const registry = await startRegistry({ root: rig.store });
    rig.afterTest(registry.close);
    const image = randomImage(3_000_000, 10);
    await push(rig.plain.host, 'team/app', 'v1', image);
    await push(rig.plain.host, 'team/app', 'all', indexOf(image));
    const mirror = await rig.mirror({ trusted: [registry.host] });
    for (const tag of ['v1', 'all', digestOf(image.manifest)]) {
      const pulled = await pull(mirror, registry.host, 'team/app', tag);
      expect(pulled.blobs.map(digestOf)).toEqual(image.blobs.map(digestOf));
      expect(pulled.mediaType).toContain(tag === 'all' ? 'index' : 'manifest');
    }
    await registry.close();
    expect((await pull(mirror, registry.host, 'team/app', 'v1')).manifest).toEqual(image.manifest);
    expect(await statusOf(mirror.ask(registry.host, 'team/other/manifests/v1', { method: 'HEAD' }))).toMatch(
      /^502 this machine cannot reach 127.0.0.1:\d+ \(ECONNREFUSED\).*coppice load/,
    );
  });

  it('is the current one of its tag', async () => {
    const folder = await mkdtemp(join(rig.root, 'moves-'));
    const settings = { trusted: [rig.plain.host], logins: [], cacheBytes: 1e9 };
    const none = async () => undefined;
    const inUse = async () => new Set<string>();
    const upstream = await PullThrough.open({
      folder,
      own: [],
      settings: async () => settings,
      inUse,
      others: none,
      freshMs: 0,
    });
    rig.afterTest(() => upstream.close());
    const latest = async () =>
      (await upstream.manifest({ registry: rig.plain.host, repository: 'team/moves', reference: 'latest' })).digest;
    for (const image of [randomImage(10), randomImage(10)]) {
      await push(rig.plain.host, 'team/moves', 'latest', image);
      expect(await latest()).toBe(digestOf(image.manifest));
      expect(await latest()).toBe(digestOf(image.manifest));
    }
  });

  it('is sent in ranges', async () => {
    const image = randomImage(1000);
    await push(rig.plain.host, 'team/ranges', 'v1', image);
    const mirror = await rig.mirror({ trusted: [rig.plain.host] });
    const layer = image.blobs[1]!;
    const part = (range: string) =>
      mirror.ask(rig.plain.host, `team/ranges/blobs/${digestOf(layer)}`, { headers: { range } });
    for (const _ of ['from the registry', 'from the cache']) {
      const response = await part('bytes=900-');
      expect(response.status).toBe(206);
      expect(response.headers.get('content-range')).toBe('bytes 900-999/1000');
      expect(await bytes(response)).toEqual(layer.subarray(900));
      expect(await bytes(await part('bytes=10-19'))).toEqual(layer.subarray(10, 20));
      expect((await part('bytes=1000-')).status).toBe(416);
    }
  });

  it('is fetched once for concurrent pulls', async () => {
    const image = randomImage(2_000_000);
    await push(rig.plain.host, 'team/many', 'v1', image);
    const store = await startBlobStore(rig.store);
    const registry = await startRegistry({ root: rig.store, blobsAt: store.url });
    rig.afterTest(registry.close, store.close);
    const mirror = await rig.mirror({ trusted: [registry.host, new URL(store.url).host] });
    await Promise.all([1, 2, 3, 4].map(() => pull(mirror, registry.host, 'team/many', 'v1')));
    expect(store.requests).toHaveLength(image.blobs.length);
  });

  it('gets an error message for people if it does not exist', async () => {
    const mirror = await rig.mirror({ trusted: [rig.plain.host] });
    expect(await statusOf(mirror.ask(rig.plain.host, 'team/none/manifests/v1', { method: 'HEAD' }))).toBe(
      `410 there is no such image at ${rig.plain.host}/team/none: check its name and tag`,
    );
  });
});

describe('the pull-through cache', () => {
  it("uses the host's proxy and certificates, and bypasses the proxy by NO_PROXY", async () => {
    const ca = await createCA({ commonName: 'test', days: 1 });
    const usages = ['server'] as const;
    const pair = await issue(ca, {
      commonName: 'registry',
      dnsNames: ['registry.example', 'localhost'],
      ipAddresses: ['127.0.0.1'],
      usages: [...usages],
      days: 1,
    });
    const [cert, key, authority] = ['registry.crt', 'registry.key', 'ca.crt'].map((name) => join(rig.root, name)) as [
      string,
      string,
      string,
    ];
    await writeFile(cert, pair.cert);
    await writeFile(key, pair.key);
    await writeFile(authority, ca.cert);
    const registry = await startRegistry({ root: rig.store, tls: { cert, key } });
    rig.afterTest(registry.close);
    const image = randomImage(100_000);
    await push(rig.plain.host, 'team/far', 'v1', image);
    const port = Number(registry.host.split(':')[1]);
    const proxy = await startProxy({ 'registry.example:443': port });
    rig.afterTest(proxy.close);

    const mirror = await rig.mirror(
      { trusted: [registry.host] },
      { HTTPS_PROXY: proxy.url, NO_PROXY: '127.0.0.1', SSL_CERT_FILE: authority },
    );
    expect((await pull(mirror, 'registry.example', 'team/far', 'v1')).blobs.map(digestOf)).toEqual(
      image.blobs.map(digestOf),
    );
    expect(new Set(proxy.asked)).toEqual(new Set(['registry.example:443']));
    const before = proxy.asked.length;
    await pull(mirror, registry.host, 'team/far', 'v1');
    expect(proxy.asked).toHaveLength(before);

    const distrustful = await rig.mirror({}, { HTTPS_PROXY: proxy.url });
    expect(await statusOf(distrustful.ask('registry.example', 'team/far/manifests/v1'))).toMatch(
      /^502 this machine does not trust the certificate of registry.example \(.*SSL_CERT_FILE, and run "coppice stop" and "coppice up"$/,
    );
    expect(await statusOf(distrustful.ask('other.example', 'team/far/manifests/v1'))).toMatch(
      /^502 this machine cannot reach other.example .*check HTTPS_PROXY/,
    );
  });

  it.each(['127.0.0.1:22', 'localhost:22', '169.254.169.254', '[::1]:22', '10.160.128.5:5000', '0.0.0.0:22'])(
    'gives pods no access to the machine and the garden: %s',
    async (address) => {
      const mirror = await rig.mirror({}, {}, ['--own', '10.160.0.0/17,10.160.128.0/24']);
      const said = await statusOf(mirror.ask(address, 'team/app/manifests/v1'));
      expect(said).toMatch(address.startsWith('[') ? /^404 / : /^403 address .* allow it with "coppice up --registry/);
    },
  );

  it('gives pods no access by a redirect of a registry', async () => {
    const inside = createServer((_, response) => response.end('secret'));
    const port = await listening(inside);
    rig.afterTest(() => new Promise((resolve) => inside.close(resolve).closeAllConnections()));
    const sly = createServer((_, response) => response.writeHead(307, { location: `http://localhost:${port}/` }).end());
    const host = `127.0.0.1:${await listening(sly)}`;
    rig.afterTest(() => new Promise((resolve) => sly.close(resolve).closeAllConnections()));
    const mirror = await rig.mirror({ trusted: [host] });
    expect((await mirror.ask(host, `a/blobs/${digestOf(Buffer.from('secret'))}`)).status).toBe(403);
  });
});

describe('the content of a registry', () => {
  /** A registry that answers with these. */
  async function lying(answers: Record<string, { body: Buffer; headers?: Record<string, string> }>) {
    const server = createServer((request, response) => {
      const found = answers[request.url ?? ''];
      response.writeHead(found ? 200 : 404, found?.headers ?? {});
      response.end(found?.body);
    });
    const host = `127.0.0.1:${await listening(server)}`;
    rig.afterTest(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    return rig.mirror({ trusted: [`http://${host}`] }).then((mirror) => ({ mirror, host }));
  }
  const digest = digestOf(Buffer.from('the truth'));

  it('is refused if its digest differs', async () => {
    const { mirror, host } = await lying({
      [`/v2/a/blobs/${digest}`]: { body: Buffer.from('a lie ...') },
      [`/v2/a/manifests/${digest}`]: { body: Buffer.from('a lie ...') },
    });
    await expect(mirror.ask(host, `a/blobs/${digest}`).then(bytes)).rejects.toThrow();
    expect(await statusOf(mirror.ask(host, `a/manifests/${digest}`))).toMatch(
      /^502 .* sent other content than sha256:/,
    );
    expect(await readdir(join(mirror.folder, 'cache', 'drafts'))).toEqual([]);
  });

  it('is refused if it is too long', async () => {
    const { mirror, host } = await lying({ [`/v2/a/manifests/${digest}`]: { body: Buffer.alloc(5 * 1024 ** 2) } });
    expect(await statusOf(mirror.ask(host, `a/manifests/${digest}`))).toMatch(/^502 .* is longer than \d+ bytes/);
  });

  it('is resumed where it broke off', async () => {
    const layer = Buffer.alloc(300_000, 'x');
    const ranges: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      const { range } = request.headers;
      ranges.push(range);
      const from = Number(/\d+/.exec(range ?? '')?.[0] ?? 0);
      const to = Math.min(layer.length, from + 100_000);
      const headers = {
        'content-length': layer.length - from,
        'content-range': `bytes ${from}-${layer.length - 1}/${layer.length}`,
      };
      response.writeHead(from > 0 ? 206 : 200, headers);
      response.write(layer.subarray(from, to), () => {
        if (to === layer.length) response.end();
        else setTimeout(() => response.destroy(), 20);
      });
    });
    const host = `127.0.0.1:${await listening(server)}`;
    rig.afterTest(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    const mirror = await rig.mirror({ trusted: [`http://${host}`] });
    expect(await bytes(await mirror.ask(host, `a/blobs/${digestOf(layer)}`))).toEqual(layer);
    expect(ranges).toEqual([undefined, 'bytes=100000-', 'bytes=200000-']);
  });
});

it('the cache stays below its limit: it deletes the least recently used images that no node has', async () => {
  const images = await Promise.all(
    ['one', 'two', 'three', 'four'].map(async (name) => {
      const image = randomImage(400_000);
      await push(rig.plain.host, `cache/${name}`, 'v1', image);
      return image;
    }),
  );
  const mirror = await rig.mirror({ trusted: [rig.plain.host], cacheBytes: 1_300_000 });
  const cached = async () => {
    const names = await readdir(join(mirror.folder, 'cache', 'public'));
    return images.map((image) => names.includes(digestOf(image.blobs[1]!).slice(7)));
  };
  const node = join(mirror.folder, 'seed', 'containerd', 'io.containerd.content.v1.content', 'blobs', 'sha256');
  await mkdir(node, { recursive: true });
  await writeFile(join(node, digestOf(images[0]!.blobs[1]!).slice(7)), '');
  for (const name of ['one', 'two', 'three', 'four']) await pull(mirror, rig.plain.host, `cache/${name}`, 'v1');
  expect(await cached()).toEqual([true, false, true, true]);
  // What does not fit in is had all the same.
  await mirror.settings({ trusted: [rig.plain.host], cacheBytes: 1000 });
  expect((await pull(mirror, rig.plain.host, 'cache/two', 'v1')).blobs.map(digestOf)).toEqual(
    images[1]!.blobs.map(digestOf),
  );
});

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PullThrough } from '../../../operator/garden/images/upstream/pull-through.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import {
  digestOf,
  indexOf,
  listening,
  push,
  randomImage,
  startBlobStore,
  startProxy,
  startRegistry,
  startTokens,
  type TestImage,
  type TestRegistry,
} from '../../kit/registry.ts';

const MIRROR = fileURLToPath(new URL('../../../operator/garden/images/mirror-main.ts', import.meta.url));
const LOGIN = 'jane:secret of hers';
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

let root: string;
let plain: TestRegistry;
const atEnd: (() => Promise<unknown>)[] = [];
const afterTest: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'coppice-pull-'));
  plain = await startRegistry({ root: join(root, 'store') });
  atEnd.push(plain.close, () => rm(root, { recursive: true, force: true }));
});
afterAll(async () => {
  for (const end of atEnd) await end();
});
afterEach(async () => {
  for (const end of afterTest.splice(0)) await end();
});

interface Running {
  /** Asks as containerd does for an image of a registry. */
  ask: (registry: string, path: string, init?: RequestInit) => Promise<Response>;
  folder: string;
  settings: (value: object) => Promise<void>;
}

/** The mirror's own program, told what a person allowed, in an environment of its own. */
async function startMirror(settings: object, env: Record<string, string> = {}, more: string[] = []): Promise<Running> {
  const folder = await mkdtemp(join(root, 'mirror-'));
  const file = join(folder, 'registries.json');
  const write = (value: object) => writeFile(file, JSON.stringify(value));
  await write(settings);
  await mkdir(join(folder, 'made'));
  const args = ['--listen', '127.0.0.1:0', '--dir', join(folder, 'made'), '--cache', join(folder, 'cache')];
  const child = spawn(
    process.execPath,
    [MIRROR, ...args, '--settings', file, '--seed', join(folder, 'seed'), ...more],
    {
      env: { PATH: process.env.PATH!, HOME: folder, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  afterTest.push(() => ended(child));
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const { url: said, msg } = JSON.parse(line) as { url?: string; msg: string };
      if (msg === 'mirror listens') resolve(said!);
    });
    child.once('exit', (code) => reject(new Error(`the mirror ended with ${code}`)));
  });
  const ask = (registry: string, path: string, init?: RequestInit) => fetch(`${url}/v2/${path}?ns=${registry}`, init);
  return { ask, folder, settings: write };
}

const ended = (child: ChildProcess) =>
  new Promise<void>((resolve) => {
    if (child.exitCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });

const bytes = async (response: Response) => Buffer.from(await response.arrayBuffer());

/** Pulls as containerd does: what the tag means, that manifest, its blobs. Resolves to all of it, checked. */
async function pull(
  { ask }: Running,
  registry: string,
  repository: string,
  tag: string,
  init?: RequestInit,
): Promise<TestImage> {
  const head = await ask(registry, `${repository}/manifests/${tag}`, { ...init, method: 'HEAD' });
  if (head.status !== 200) throw new Error(`${head.status} ${head.statusText}`);
  const digest = head.headers.get('docker-content-digest')!;
  const found = await ask(registry, `${repository}/manifests/${digest}`, init);
  const manifest = await bytes(found);
  expect(digestOf(manifest)).toBe(digest);
  expect(String(manifest.length)).toBe(head.headers.get('content-length'));
  const { config, layers = [], manifests = [] } = JSON.parse(String(manifest));
  const blobs: Buffer[] = [];
  for (const blob of config ? [config, ...layers] : []) {
    const data = await bytes(await ask(registry, `${repository}/blobs/${blob.digest}`, init));
    expect(digestOf(data)).toBe(blob.digest);
    blobs.push(data);
  }
  for (const one of manifests)
    blobs.push(...(await pull({ ask } as Running, registry, repository, one.digest, init)).blobs);
  return { manifest, mediaType: found.headers.get('content-type')!, blobs };
}

const statusOf = async (response: Promise<Response>) => {
  const { status, statusText } = await response;
  return `${status} ${statusText}`;
};

describe('an image of another registry', () => {
  it('is pulled by tag, by digest and by index, and comes from the cache when the registry is gone', async () => {
    const registry = await startRegistry({ root: join(root, 'store') });
    afterTest.push(registry.close);
    const image = randomImage(3_000_000, 10);
    await push(plain.host, 'team/app', 'v1', image);
    await push(plain.host, 'team/app', 'all', indexOf(image));
    const mirror = await startMirror({ trusted: [registry.host] });
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

  it('is the one that the tag means now', async () => {
    const folder = await mkdtemp(join(root, 'moves-'));
    const settings = { trusted: [plain.host], logins: [], cacheBytes: 1e9 };
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
    afterTest.push(() => upstream.close());
    const latest = async () =>
      (await upstream.manifest({ registry: plain.host, repository: 'team/moves', reference: 'latest' })).digest;
    for (const image of [randomImage(10), randomImage(10)]) {
      await push(plain.host, 'team/moves', 'latest', image);
      expect(await latest()).toBe(digestOf(image.manifest));
      expect(await latest()).toBe(digestOf(image.manifest));
    }
  });

  it('is sent in ranges', async () => {
    const image = randomImage(1000);
    await push(plain.host, 'team/ranges', 'v1', image);
    const mirror = await startMirror({ trusted: [plain.host] });
    const layer = image.blobs[1]!;
    const part = (range: string) =>
      mirror.ask(plain.host, `team/ranges/blobs/${digestOf(layer)}`, { headers: { range } });
    for (const _ of ['from the registry', 'from the cache']) {
      const response = await part('bytes=900-');
      expect(response.status).toBe(206);
      expect(response.headers.get('content-range')).toBe('bytes 900-999/1000');
      expect(await bytes(response)).toEqual(layer.subarray(900));
      expect(await bytes(await part('bytes=10-19'))).toEqual(layer.subarray(10, 20));
      expect((await part('bytes=1000-')).status).toBe(416);
    }
  });

  it('is got once for all who ask at the same time', async () => {
    const image = randomImage(2_000_000);
    await push(plain.host, 'team/many', 'v1', image);
    const store = await startBlobStore(join(root, 'store'));
    const registry = await startRegistry({ root: join(root, 'store'), blobsAt: store.url });
    afterTest.push(registry.close, store.close);
    const mirror = await startMirror({ trusted: [registry.host, new URL(store.url).host] });
    await Promise.all([1, 2, 3, 4].map(() => pull(mirror, registry.host, 'team/many', 'v1')));
    expect(store.requests).toHaveLength(image.blobs.length);
  });

  it('has a text for people when there is no such one', async () => {
    const mirror = await startMirror({ trusted: [plain.host] });
    expect(await statusOf(mirror.ask(plain.host, 'team/none/manifests/v1', { method: 'HEAD' }))).toBe(
      `410 there is no such image at ${plain.host}/team/none: check its name and tag`,
    );
  });
});

describe('a registry that wants a login', () => {
  let host: string;
  let tokens: Awaited<ReturnType<typeof startTokens>>;
  const secret = randomImage(500);

  beforeAll(async () => {
    tokens = await startTokens(LOGIN);
    const registry = await startRegistry({ root: join(root, 'store'), tokens });
    host = registry.host;
    atEnd.unshift(registry.close, tokens.close);
    await push(plain.host, 'public/app', 'v1', randomImage(500));
    await push(plain.host, 'private/app', 'v1', secret);
  });

  const trusted = () => [host, new URL(tokens.url).host];
  const login = async ({ folder }: Running) => {
    await mkdir(join(folder, '.docker'), { recursive: true });
    const auths = { [host]: { auth: Buffer.from(LOGIN).toString('base64') } };
    await writeFile(join(folder, '.docker', 'config.json'), JSON.stringify({ auths }));
  };
  const ask = (mirror: Running, init?: RequestInit) =>
    mirror.ask(host, 'private/app/manifests/v1', { method: 'HEAD', ...init });

  it('gives what everybody may have, for a token that everybody gets', async () => {
    const mirror = await startMirror({ trusted: trusted() });
    await pull(mirror, host, 'public/app', 'v1');
    expect(tokens.asked.at(-1)).toBeUndefined();
  });

  it("is never sent this machine's login unless a person allowed it", async () => {
    const mirror = await startMirror({ trusted: trusted() });
    await login(mirror);
    const before = tokens.asked.length;
    const response = await ask(mirror);
    expect(response.headers.get('www-authenticate')).toMatch(/^Basic/);
    expect(`${response.status} ${response.statusText}`).toMatch(
      /^401 .*private\/app does not exist, or wants a login: .*coppice up --registry-login 127.0.0.1:\d+/,
    );
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
    // Not even for another one.
    await mirror.settings({ trusted: trusted(), logins: ['ghcr.io'] });
    expect((await ask(mirror)).status).toBe(401);
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
  });

  it('is sent it where allowed, from the next pull on, and takes it back the same way', async () => {
    const api = apiServer();
    const mirror = await startMirror({ trusted: trusted() }, {}, ['--kubeconfig', await api.kubeconfig]);
    await login(mirror);
    expect((await ask(mirror)).status).toBe(401);
    await mirror.settings({ trusted: trusted(), logins: [host] });
    expect((await pull(mirror, host, 'private/app', 'v1')).blobs).toEqual(secret.blobs);
    // What is in the cache by then is not for everybody either.
    await mirror.settings({ trusted: trusted() });
    expect((await ask(mirror)).status).toBe(401);
    expect((await mirror.ask(host, `private/app/blobs/${digestOf(secret.blobs[1]!)}`)).status).toBe(401);
  });

  it('is not sent it when others have access to the garden', async () => {
    const api = apiServer();
    const mirror = await startMirror({ trusted: trusted(), logins: [host] }, {}, [
      '--kubeconfig',
      await api.kubeconfig,
    ]);
    await login(mirror);
    api.bind('jane');
    const before = tokens.asked.length;
    expect(await statusOf(ask(mirror))).toMatch(
      /^401 this machine's login at 127.0.0.1:\d+ is not used, because RoleBinding shop\/dev gives jane access/,
    );
    expect(tokens.asked.slice(before).filter(Boolean)).toEqual([]);
  });

  it("takes the pod's own, and keeps what that got for nobody", async () => {
    const mirror = await startMirror({ trusted: trusted() });
    const own = { headers: { authorization: basic(LOGIN) } };
    expect((await pull(mirror, host, 'private/app', 'v1', own)).blobs).toEqual(secret.blobs);
    expect((await ask(mirror)).status).toBe(401);
    expect(await statusOf(ask(mirror, { headers: { authorization: basic('jane:wrong') } }))).toMatch(
      /^403 .* refuses the given credentials for private\/app/,
    );
    expect(await readdir(join(mirror.folder, 'cache'))).toEqual(['drafts']);
    expect(await readdir(join(mirror.folder, 'cache', 'drafts'))).toEqual([]);
  });

  it('sends who asks for blobs to a store, which does not see the token', async () => {
    const store = await startBlobStore(join(root, 'store'));
    const registry = await startRegistry({ root: join(root, 'store'), tokens, blobsAt: store.url });
    afterTest.push(registry.close, store.close);
    const mirror = await startMirror({ trusted: [...trusted(), registry.host, new URL(store.url).host] });
    await pull(mirror, registry.host, 'public/app', 'v1');
    expect(store.requests.length).toBeGreaterThan(0);
    expect(store.requests.filter(({ headers }) => headers.authorization)).toEqual([]);
  });

  /** Answers who has roles in a garden. */
  function apiServer() {
    const items: object[] = [
      {
        metadata: { name: 'cluster-admin', labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' } },
        subjects: [{ kind: 'Group', name: 'system:authenticated' }],
      },
      { metadata: { name: 'operator' }, subjects: [{ kind: 'User', name: 'coppice:operator' }] },
    ];
    const server = createServer((request, response) => {
      response.setHeader('content-type', 'application/json');
      const isCluster = request.url?.includes('clusterrolebindings');
      const kind = isCluster ? 'ClusterRoleBindingList' : 'RoleBindingList';
      const apiVersion = 'rbac.authorization.k8s.io/v1';
      response.end(JSON.stringify({ apiVersion, kind, metadata: {}, items: isCluster ? [] : items }));
    });
    afterTest.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    const kubeconfig = listening(server).then(async (port) => {
      const file = join(root, `kubeconfig-${port}`);
      const cluster = { name: 'g', cluster: { server: `http://127.0.0.1:${port}` } };
      const context = { name: 'g', context: { cluster: 'g', user: 'g' } };
      const text = {
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'g',
        clusters: [cluster],
        contexts: [context],
        users: [{ name: 'g', user: { token: 't' } }],
      };
      await writeFile(file, JSON.stringify(text));
      return file;
    });
    const bind = (name: string) =>
      items.push({ metadata: { name: 'dev', namespace: 'shop' }, subjects: [{ kind: 'User', name }] });
    return { kubeconfig, bind };
  }
});

describe("the host's network", () => {
  it('is gone through by its proxy and its certificates, and past the proxy where NO_PROXY says so', async () => {
    const ca = await createCA({ commonName: 'test', days: 1 });
    const usages = ['server'] as const;
    const pair = await issue(ca, {
      commonName: 'registry',
      dnsNames: ['registry.example', 'localhost'],
      ipAddresses: ['127.0.0.1'],
      usages: [...usages],
      days: 1,
    });
    const [cert, key, authority] = ['registry.crt', 'registry.key', 'ca.crt'].map((name) => join(root, name)) as [
      string,
      string,
      string,
    ];
    await writeFile(cert, pair.cert);
    await writeFile(key, pair.key);
    await writeFile(authority, ca.cert);
    const registry = await startRegistry({ root: join(root, 'store'), tls: { cert, key } });
    afterTest.push(registry.close);
    const image = randomImage(100_000);
    await push(plain.host, 'team/far', 'v1', image);
    const port = Number(registry.host.split(':')[1]);
    const proxy = await startProxy({ 'registry.example:443': port });
    afterTest.push(proxy.close);

    const mirror = await startMirror(
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

    const distrustful = await startMirror({}, { HTTPS_PROXY: proxy.url });
    expect(await statusOf(distrustful.ask('registry.example', 'team/far/manifests/v1'))).toMatch(
      /^502 this machine does not trust the certificate of registry.example \(.*SSL_CERT_FILE/,
    );
    expect(await statusOf(distrustful.ask('other.example', 'team/far/manifests/v1'))).toMatch(
      /^502 this machine cannot reach other.example .*check HTTPS_PROXY/,
    );
  });

  it.each(['127.0.0.1:22', 'localhost:22', '169.254.169.254', '[::1]:22', '10.160.128.5:5000', '0.0.0.0:22'])(
    'is not open to pods at this machine itself and in the garden: %s',
    async (address) => {
      const mirror = await startMirror({}, {}, ['--own', '10.160.0.0/17,10.160.128.0/24']);
      const said = await statusOf(mirror.ask(address, 'team/app/manifests/v1'));
      expect(said).toMatch(address.startsWith('[') ? /^404 / : /^403 address .* allow it with "coppice up --registry/);
    },
  );

  it('is not open by the detour of a registry that sends pods there', async () => {
    const inside = createServer((_, response) => response.end('secret'));
    const port = await listening(inside);
    afterTest.push(() => new Promise((resolve) => inside.close(resolve).closeAllConnections()));
    const sly = createServer((_, response) => response.writeHead(307, { location: `http://localhost:${port}/` }).end());
    const host = `127.0.0.1:${await listening(sly)}`;
    afterTest.push(() => new Promise((resolve) => sly.close(resolve).closeAllConnections()));
    const mirror = await startMirror({ trusted: [host] });
    expect((await mirror.ask(host, `a/blobs/${digestOf(Buffer.from('secret'))}`)).status).toBe(403);
  });
});

describe('what a registry sends', () => {
  /** A registry that answers with these. */
  async function lying(answers: Record<string, { body: Buffer; headers?: Record<string, string> }>) {
    const server = createServer((request, response) => {
      const found = answers[request.url ?? ''];
      response.writeHead(found ? 200 : 404, found?.headers ?? {});
      response.end(found?.body);
    });
    const host = `127.0.0.1:${await listening(server)}`;
    afterTest.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    return startMirror({ trusted: [`http://${host}`] }).then((mirror) => ({ mirror, host }));
  }
  const digest = digestOf(Buffer.from('the truth'));

  it('is refused when it is something else', async () => {
    const { mirror, host } = await lying({
      [`/v2/a/blobs/${digest}`]: { body: Buffer.from('a lie ...') },
      [`/v2/a/manifests/${digest}`]: { body: Buffer.from('a lie ...') },
    });
    await expect(mirror.ask(host, `a/blobs/${digest}`).then(bytes)).rejects.toThrow();
    expect(await statusOf(mirror.ask(host, `a/manifests/${digest}`))).toMatch(
      /^502 .* sent something else than sha256:/,
    );
    expect(await readdir(join(mirror.folder, 'cache', 'drafts'))).toEqual([]);
  });

  it('is refused when it is too long', async () => {
    const { mirror, host } = await lying({ [`/v2/a/manifests/${digest}`]: { body: Buffer.alloc(5 * 1024 ** 2) } });
    expect(await statusOf(mirror.ask(host, `a/manifests/${digest}`))).toMatch(/^502 .* is longer than \d+ bytes/);
  });

  it('goes on from where it broke off', async () => {
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
    afterTest.push(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
    const mirror = await startMirror({ trusted: [`http://${host}`] });
    expect(await bytes(await mirror.ask(host, `a/blobs/${digestOf(layer)}`))).toEqual(layer);
    expect(ranges).toEqual([undefined, 'bytes=100000-', 'bytes=200000-']);
  });
});

it('the cache stays below its limit: what nobody used for long goes, what a node has stays', async () => {
  const images = await Promise.all(
    ['one', 'two', 'three', 'four'].map(async (name) => {
      const image = randomImage(400_000);
      await push(plain.host, `cache/${name}`, 'v1', image);
      return image;
    }),
  );
  const mirror = await startMirror({ trusted: [plain.host], cacheBytes: 1_300_000 });
  const cached = async () => {
    const names = await readdir(join(mirror.folder, 'cache', 'public'));
    return images.map((image) => names.includes(digestOf(image.blobs[1]!).slice(7)));
  };
  const node = join(mirror.folder, 'seed', 'containerd', 'io.containerd.content.v1.content', 'blobs', 'sha256');
  await mkdir(node, { recursive: true });
  await writeFile(join(node, digestOf(images[0]!.blobs[1]!).slice(7)), '');
  for (const name of ['one', 'two', 'three', 'four']) await pull(mirror, plain.host, `cache/${name}`, 'v1');
  expect(await cached()).toEqual([true, false, true, true]);
  // What does not fit in is had all the same.
  await mirror.settings({ trusted: [plain.host], cacheBytes: 1000 });
  expect((await pull(mirror, plain.host, 'cache/two', 'v1')).blobs.map(digestOf)).toEqual(
    images[1]!.blobs.map(digestOf),
  );
  expect((await readFile(join(mirror.folder, 'registries.json'), 'utf8')).length).toBeGreaterThan(0);
});

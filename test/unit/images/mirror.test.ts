import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressList, nthAddress } from '../../../operator/api/address-range.ts';
import { chooseRanges } from '../../../operator/garden/host/ranges.ts';
import { buildImage, imagesDirectory } from '../../../operator/garden/images/build.ts';
import { startMirror } from '../../../operator/garden/images/mirror.ts';
import { imageMirror } from '../../../operator/garden/seed/image-mirror.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { createCA, issue } from '../../../operator/pki/certificates.ts';
import { mirrorHosts } from '../../../providers/local/mirror-hosts.ts';

type Mirror = Awaited<ReturnType<typeof startMirror>>;

let dir: string;
let mirror: Mirror;
const image = (ref: string, content: string) =>
  buildImage({ ref, files: [{ path: '/file', content }], entrypoint: ['/file'] }, { toolsDir: dir });

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-mirror-'));
  await image('registry.k8s.io/coredns/coredns:v1', 'one');
  mirror = await startMirror({ dirs: [imagesDirectory(dir)], host: '127.0.0.1', port: 0, expected: ['kwok/kwok:v1'] });
});
afterAll(async () => {
  await mirror.close();
  await rm(dir, { recursive: true, force: true });
});

const ask = (path: string, method = 'GET') => fetch(`${mirror.url}/v2/${path}`, { method });
const digestOf = (data: ArrayBuffer) => `sha256:${createHash('sha256').update(Buffer.from(data)).digest('hex')}`;

test('the mirror serves images as containerd pulls them', async () => {
  expect((await ask('')).status).toBe(200);
  const head = await ask('coredns/coredns/manifests/v1?ns=registry.k8s.io', 'HEAD');
  expect(head.status).toBe(200);
  const digest = head.headers.get('docker-content-digest')!;
  const response = await ask(`coredns/coredns/manifests/${digest}?ns=registry.k8s.io`);
  expect(response.headers.get('content-type')).toBe('application/vnd.oci.image.manifest.v1+json');
  expect(response.headers.get('content-length')).toBe(head.headers.get('content-length'));
  const bytes = await response.arrayBuffer();
  expect(digestOf(bytes)).toBe(digest);
  const manifest = JSON.parse(String(Buffer.from(bytes)));
  for (const { digest: blob, size } of [manifest.config, ...manifest.layers]) {
    const content = await (await ask(`coredns/coredns/blobs/${blob}`)).arrayBuffer();
    expect(content.byteLength).toBe(size);
    expect(digestOf(content)).toBe(blob);
    expect((await ask(`coredns/coredns/blobs/${blob}`, 'HEAD')).headers.get('content-length')).toBe(String(size));
  }
});

test.each([
  ['another registry', 'coredns/coredns/manifests/v1?ns=docker.io', 404, 'MANIFEST_UNKNOWN'],
  ['another tag', 'coredns/coredns/manifests/v2?ns=registry.k8s.io', 404, 'MANIFEST_UNKNOWN'],
  ['an unknown blob', `coredns/coredns/blobs/sha256:${'0'.repeat(64)}`, 404, 'BLOB_UNKNOWN'],
  ['no digest', 'coredns/coredns/blobs/..%2f..%2fetc', 404, 'NAME_UNKNOWN'],
  ['the catalog', '_catalog', 404, 'NAME_UNKNOWN'],
])('has not: %s', async (_, path, status, code) => {
  const response = await ask(path);
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ errors: [{ code }] });
});

test('the mirror refuses addresses outside the garden', async () => {
  const near = await startMirror({
    dirs: [imagesDirectory(dir)],
    host: '0.0.0.0',
    port: 0,
    peers: addressList(['127.0.0.2/32', '10.1.0.0/17']),
  });
  const { port } = new URL(near.url);
  const statusFor = (localAddress: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const path = '/v2/coredns/coredns/manifests/v1?ns=registry.k8s.io';
      const asked = request({ host: '127.0.0.1', port, path, localAddress, agent: false });
      asked.on('response', (response) => resolve(response.resume().statusCode));
      asked.on('error', reject);
      asked.end();
    });
  try {
    expect(await statusFor('127.0.0.2')).toBe(200);
    await expect(statusFor('127.0.0.1')).rejects.toThrow(/ECONNRESET|socket hang up/);
  } finally {
    await near.close();
  }
});

test("the mirror admits pods and the node, and not the host's end of the link", () => {
  const ranges = chooseRanges('abc', [])!;
  const state = {
    id: 'abc',
    createdAt: '',
    ports: { apiserver: 1, etcd: 2, etcdPeer: 3 },
    ranges,
    seed: 'local' as const,
  };
  const directory = new StateDirectory(dir);
  const { command } = imageMirror({ directory, state, toolchain: { dir } as never }, []);
  const peers = addressList(command[command.indexOf('--peers') + 1]!.split(','));
  expect([nthAddress(ranges.pods, 9), ranges.nodeAddress, ranges.hostAddress].map((one) => peers.has(one))).toEqual([
    true,
    true,
    false,
  ]);
});

test('the mirror accepts no writes', async () => {
  expect((await ask('coredns/coredns/blobs/uploads/', 'POST')).status).toBe(405);
});

test('the mirror notices new images, and serves the newest of a name', async () => {
  expect((await ask('late/manifests/v1')).status).toBe(404);
  await writeFile(join(imagesDirectory(dir), 'not-a-layout.tar'), 'x'.repeat(2000));
  await image('registry.k8s.io/late:v1', 'first');
  const first = (await ask('late/manifests/v1')).headers.get('docker-content-digest');
  await new Promise((resolve) => setTimeout(resolve, 20));
  await image('registry.k8s.io/late:v1', 'second');
  const second = (await ask('late/manifests/v1')).headers.get('docker-content-digest');
  expect(first).toMatch(/^sha256:/);
  expect(second).toMatch(/^sha256:/);
  expect(second).not.toBe(first);
});

test('hosts.toml names the mirror', () => {
  expect(mirrorHosts({ url: 'http://10.0.0.1:5000' }, '/x')).toContain('[host."http://10.0.0.1:5000"]');
});

test('hosts.toml names itself as the file with the authority of the mirror', async () => {
  const { cert } = await createCA({ commonName: 'garden', days: 1 });
  const text = mirrorHosts({ url: 'https://10.0.0.1:5000', ca: cert }, '/etc/hosts.toml');
  expect(text).toContain('[host."https://10.0.0.1:5000"]\n');
  expect(text).toContain('  ca = "/etc/hosts.toml"\n');
  // As Go reads certificates out of a text, a line begins with the first dashes.
  expect(text).toContain(`\n${cert.trim()}\n`);
});

test('the mirror authenticates itself, and answers earlier machines without TLS', async () => {
  const [ca, other] = await Promise.all([
    createCA({ commonName: 'garden', days: 1 }),
    createCA({ commonName: 'somebody', days: 1 }),
  ]);
  const tls = await issue(ca, { commonName: 'mirror', ipAddresses: ['127.0.0.1'], usages: ['server'], days: 1 });
  const large = 'x'.repeat(3_000_000);
  await image('registry.k8s.io/large:v1', large);
  const secure = await startMirror({ dirs: [imagesDirectory(dir)], host: '127.0.0.1', port: 0, tls });
  try {
    const { port } = new URL(secure.url);
    const asked = (authority: string, path: string) =>
      new Promise<Buffer>((resolve, reject) => {
        const options = { host: '127.0.0.1', port, path: `/v2/${path}`, ca: authority, agent: false };
        get(options, (answer) => void buffer(answer).then(resolve, reject)).on('error', reject);
      });
    expect(secure.url).toBe(`https://127.0.0.1:${port}`);
    const manifest = 'large/manifests/v1?ns=registry.k8s.io';
    const { layers } = JSON.parse((await asked(ca.cert, manifest)).toString());
    const layer = await asked(ca.cert, `large/blobs/${layers[0].digest}?ns=registry.k8s.io`);
    expect(createHash('sha256').update(layer).digest('hex')).toBe(layers[0].digest.slice('sha256:'.length));
    await expect(asked(other.cert, manifest)).rejects.toThrow(/certificate/);
    const plain = await fetch(`http://127.0.0.1:${port}/v2/large/blobs/${layers[0].digest}?ns=registry.k8s.io`);
    expect(digestOf(await plain.arrayBuffer())).toBe(layers[0].digest);
  } finally {
    await secure.close();
  }
});

test('requests for an image being built wait for it', async () => {
  const asked = ask('kwok/kwok/manifests/v1?ns=registry.k8s.io');
  await image('registry.k8s.io/kwok/kwok:v1', 'two');
  expect((await asked).status).toBe(200);
});

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { zstdDecompressSync } from 'node:zlib';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildImage, imagesDirectory } from '../../../operator/garden/images/build.ts';
import { parseReference } from '../../../operator/garden/images/reference.ts';
import { ImageStore } from '../../../operator/garden/images/store.ts';
import { tarHeader } from '../../../operator/garden/images/tar.ts';

type ImageSpec = Parameters<typeof buildImage>[0];

let dir: string;
let spec: ImageSpec;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'coppice-images-'));
  await writeFile(join(dir, 'program'), Buffer.alloc(3_000_001, 7));
  spec = {
    ref: 'registry.k8s.io/some/program:v1.2.3',
    files: [
      { path: '/usr/local/bin/program', from: join(dir, 'program') },
      { path: '/etc/hosts', content: '127.0.0.1 localhost\n' },
    ],
    directories: [{ path: '/tmp', mode: 0o1777 }],
    links: [{ path: '/bin', target: 'usr/local/bin' }],
    entrypoint: ['/usr/local/bin/program'],
    env: { COLOUR: 'green' },
    labels: { a: 'b' },
  };
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const build = () => buildImage(spec, { toolsDir: dir });
const tar = async (...args: string[]) =>
  (await promisify(execFile)('tar', args, { maxBuffer: 1 << 26, encoding: 'buffer' })).stdout;
const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex');

test('buildImage writes a layout that tar reads, with correct digests', async () => {
  const file = await build();
  const blob = (digest: string) => tar('-xOf', file, `blobs/sha256/${digest.replace('sha256:', '')}`);
  const index = JSON.parse(String(await tar('-xOf', file, 'index.json')));
  expect(index.manifests).toHaveLength(1);
  expect(index.manifests[0].annotations['io.containerd.image.name']).toBe(spec.ref);
  const manifestBytes = await blob(index.manifests[0].digest);
  expect(`sha256:${sha256(manifestBytes)}`).toBe(index.manifests[0].digest);
  const manifest = JSON.parse(String(manifestBytes));
  const configBytes = await blob(manifest.config.digest);
  expect(`sha256:${sha256(configBytes)}`).toBe(manifest.config.digest);
  const config = JSON.parse(String(configBytes));
  expect(config.config).toMatchObject({ Entrypoint: spec.entrypoint, Labels: spec.labels });
  expect(config.config.Env).toContain('COLOUR=green');

  const packed = await blob(manifest.layers[0].digest);
  expect(`sha256:${sha256(packed)}`).toBe(manifest.layers[0].digest);
  expect(packed.length).toBe(manifest.layers[0].size);
  const layer = zstdDecompressSync(packed);
  expect(config.rootfs.diff_ids).toEqual([`sha256:${sha256(layer)}`]);

  await writeFile(join(dir, 'layer.tar'), layer);
  const listed = String(await tar('-tvf', join(dir, 'layer.tar')));
  const lines = listed
    .trim()
    .split('\n')
    .map((line) => line.replace(/ +/g, ' '));
  expect(lines).toEqual([
    expect.stringMatching(/^drwxr-xr-x 0\/0 0 .* etc\/$/),
    expect.stringMatching(/^drwxrwxrwt 0\/0 0 .* tmp\/$/),
    expect.stringMatching(/^drwxr-xr-x .* usr\/$/),
    expect.stringMatching(/^drwxr-xr-x .* usr\/local\/$/),
    expect.stringMatching(/^drwxr-xr-x .* usr\/local\/bin\/$/),
    expect.stringMatching(/^lrwxrwxrwx .* bin -> usr\/local\/bin$/),
    expect.stringMatching(/^-rwxr-xr-x 0\/0 3000001 .* usr\/local\/bin\/program$/),
    expect.stringMatching(/^-rw-r--r-- 0\/0 20 .* etc\/hosts$/),
  ]);
  const program = await tar('-xOf', join(dir, 'layer.tar'), 'usr/local/bin/program');
  expect(program.equals(await readFile(join(dir, 'program')))).toBe(true);
});

test('buildImage builds equal contents once, until a file changes', async () => {
  const [a, b] = await Promise.all([build(), build()]);
  expect(a).toBe(b);
  const before = await readFile(a);
  await utimes(join(dir, 'program'), 1, 1);
  expect(await build()).toBe(a);
  expect((await readFile(a)).equals(before)).toBe(true);
  await writeFile(join(dir, 'program'), 'another');
  expect(await build()).not.toBe(a);
});

test('buildImage does not rebuild an image because a contained image was used', async () => {
  const inner = await build();
  const outer = { ...spec, ref: 'registry.k8s.io/some/machine:v1', files: [{ path: '/image.tar', from: inner }] };
  const first = await buildImage(outer, { toolsDir: dir });
  const { ino } = await stat(first);
  expect(await build()).toBe(inner);
  expect(await buildImage(outer, { toolsDir: dir })).toBe(first);
  expect((await stat(first)).ino).toBe(ino);
});

test('buildImage rebuilds a truncated or removed tar', async () => {
  const file = await build();
  const size = (await readFile(file)).length;
  await writeFile(file, 'broken');
  expect(await build()).toBe(file);
  expect((await readFile(file)).length).toBe(size);
  await rm(file);
  expect(await build()).toBe(file);
});

test('buildImage leaves nothing after a failure', async () => {
  spec.files[1] = { path: 'etc/hosts', content: '' };
  await expect(build()).rejects.toThrow(/must be absolute/);
  expect(await readdir(dir)).not.toContain('images');
});

test('parseReference parses full names, without defaults', () => {
  expect(parseReference('registry.k8s.io/coredns/coredns:v1.15.0')).toEqual({
    registry: 'registry.k8s.io',
    repository: 'coredns/coredns',
    tag: 'v1.15.0',
  });
  expect(parseReference('localhost:5000/x:1').registry).toBe('localhost:5000');
  for (const ref of ['pause', 'pause:3', 'library/pause:3', 'registry.k8s.io/pause', 'registry.k8s.io/Pause:1']) {
    expect(() => parseReference(ref), ref).toThrow(/not of the form/);
  }
});

test('tarHeader splits a long name at a slash, and rejects an impossible one', async () => {
  const long = `/opt/${'a'.repeat(90)}/${'b'.repeat(90)}`;
  spec.files = [{ path: long, content: 'x' }];
  spec.owner = 65532;
  const file = await build();
  const index = JSON.parse(String(await tar('-xOf', file, 'index.json')));
  const blob = (digest: string) => tar('-xOf', file, `blobs/sha256/${digest.replace('sha256:', '')}`);
  const manifest = JSON.parse(String(await blob(index.manifests[0].digest)));
  await writeFile(join(dir, 'layer.tar'), zstdDecompressSync(await blob(manifest.layers[0].digest)));
  const lines = String(await tar('--numeric-owner', '-tvf', join(dir, 'layer.tar')))
    .trim()
    .split('\n');
  expect(lines.at(-1)).toContain(long.slice(1));
  expect(lines.filter((line) => !line.includes('65532/65532'))).toEqual([]);
  for (const name of ['x'.repeat(101), `${'x'.repeat(156)}/y`, `x/${'y'.repeat(101)}`])
    expect(() => tarHeader({ name, type: 'file', mode: 0o644 })).toThrow(/longer/);
});

test('old images in use are kept, and the latest used is served', async () => {
  const theirs = join(dir, 'theirs');
  await writeFile(theirs, 'theirs');
  const buildTheirs = () => buildImage({ ...spec, files: [{ path: '/theirs', from: theirs }] }, { toolsDir: dir });
  const own = await build();
  const other = await buildTheirs();
  const earlier = new Date(Date.now() - 48 * 3600_000);
  await utimes(own, earlier, earlier);
  expect(await build()).toBe(own);
  const store = new ImageStore(imagesDirectory(dir));
  expect((await store.manifest(undefined, 'some/program', 'v1.2.3'))?.file).toBe(own);
  await utimes(other, earlier, earlier);
  await writeFile(theirs, 'newer');
  await buildTheirs();
  expect(await readdir(imagesDirectory(dir))).toContain(basename(own));
});

test('of a name only the latest and recently used images are kept', async () => {
  const first = await build();
  await writeFile(join(dir, 'program'), 'second');
  const second = await build();
  const earlier = new Date(Date.now() - 48 * 3600_000);
  await utimes(first, earlier, earlier);
  const neighbour = await buildImage({ ...spec, ref: 'registry.k8s.io/some/program:v1.2.3-rc' }, { toolsDir: dir });
  await utimes(neighbour, earlier, earlier);
  await writeFile(join(dir, 'program'), 'third');
  const third = await build();
  const left = (await readdir(imagesDirectory(dir))).filter((name) => name.endsWith('.tar'));
  expect(left.sort()).toEqual([second, third, neighbour].map((file) => basename(file)).sort());
  await writeFile(join(dir, 'program'), Buffer.alloc(3_000_001, 7));
  expect(await build()).toBe(first);
});

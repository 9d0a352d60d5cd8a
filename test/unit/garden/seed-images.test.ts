import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { imagesDirectory } from '../../../operator/garden/images/build.ts';
import { ImageImporter } from '../../../operator/garden/images/importer.ts';
import { EXPECTED_IMAGES, fillImages } from '../../../operator/garden/images/seed-images.ts';
import { ToolCache } from '../../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../../operator/garden/toolchain/toolchain.ts';
import { TOOL_NAMES, type ToolName } from '../../../operator/garden/toolchain/tools.ts';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coppice-seed-images-'));
  const cache = new ToolCache(folder);
  for (const name of TOOL_NAMES) {
    await mkdir(dirname(cache.file(name)), { recursive: true });
    await writeFile(cache.file(name), name, { mode: 0o755 });
  }
});
afterEach(() => void vi.unstubAllEnvs());
afterEach(() => rm(folder, { recursive: true, force: true }));

/** Images that a new garden makes, by file name without tag and digest. */
async function made(state: { rootless?: true }, toolchain = new Toolchain({ dir: folder })): Promise<string[]> {
  const importer = new ImageImporter({ enter: [], ctr: '/bin/true', memory: join(folder, 'imported.json') });
  const { signal } = new AbortController();
  await fillImages(importer, { toolchain, state, signal, say: () => {} });
  const files = await readdir(imagesDirectory(folder));
  return files
    .filter((name) => name.endsWith('.tar'))
    .map((name) => name.replace(/-v?\d.*$/, ''))
    .sort();
}

const CONTROL_PLANE = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];

it('a rootless garden builds only images of control planes and simulated nodes', async () => {
  expect(await made({ rootless: true })).toEqual([...CONTROL_PLANE, 'kwok_kwok'].sort());
});

it('a garden with root also builds machine images', async () => {
  const machines = ['control-plane-machine', 'coredns_coredns', 'machine', 'pause', 'rancher_local-path-provisioner'];
  expect(await made({})).toEqual([...CONTROL_PLANE, 'kwok_kwok', ...machines].sort());
});

it.each([{ rootless: true as const }, {}])(
  'kubectl is fetched for a person without one, and the CLI prints its path (%o)',
  async (state) => {
    const cache = new ToolCache(folder);
    await rm(cache.file('kubectl'));
    const built: ToolName[] = [];
    const goBuild = async (_: string, names: ToolName[], into: string) => {
      built.push(...names);
      for (const name of names) await writeFile(join(into, name), name);
    };
    const nowhere = () => Promise.reject(new Error('is not here'));
    const sources = { findOnPath: nowhere, fetchArchive: nowhere, findGo: async () => 'go', goBuild };
    const open = () =>
      new Toolchain({ dir: folder, sources: { ...sources, dependencies: async () => new Set<string>() } });
    vi.stubEnv('PATH', folder);
    await writeFile(join(folder, 'kubectl'), 'theirs', { mode: 0o755 });
    await made(state, open());
    expect(built).toEqual([]);
    await rm(join(folder, 'kubectl'));
    await made(state, open());
    expect(built).toEqual(['kubectl']);
    expect(await cache.find('kubectl')).toBe(cache.file('kubectl'));
  },
);

it("missing kubectl is reported, and does not block the seed's images", async () => {
  await rm(new ToolCache(folder).file('kubectl'));
  const nowhere = () => Promise.reject(new Error('is not here'));
  const sources = { findOnPath: nowhere, fetchArchive: nowhere, findGo: nowhere, whyNoPackages: async () => 'none' };
  const importer = new ImageImporter({ enter: [], ctr: '/bin/true', memory: join(folder, 'imported.json') });
  const over = new AbortController();
  const told: string[] = [];
  const say = (_: string, message: string) => void told.push(message);
  vi.stubEnv('PATH', folder);
  const toolchain = new Toolchain({ dir: folder, sources });
  const filling = fillImages(importer, { toolchain, state: {}, signal: over.signal, say });
  await expect.poll(() => told, { timeout: 10_000 }).toHaveLength(2);
  over.abort();
  await filling;
  expect(told).toEqual([
    expect.stringMatching(/^kubectl is missing, and the garden tries again: .*is not here/),
    'the seed has all its images',
  ]);
});

it('requests for images being built wait, instead of retries with backoff', async () => {
  const asFile = (ref: string) =>
    ref
      .replace(/^[^/]+\//, '')
      .replace(/:.*$/, '')
      .replaceAll('/', '_');
  const atOnce = ['pause'];
  expect((await made({})).filter((name) => !atOnce.includes(name))).toEqual(EXPECTED_IMAGES.map(asFile).sort());
});

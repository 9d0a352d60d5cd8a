import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { installManifests } from '../../../operator/api/install.ts';
import { KINDS } from '../../../operator/api/kinds.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import type { Resource } from '../../../operator/kube/resources.ts';
import { pagesOf, readPage, readRepositoryFile } from '../../kit/pages.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';
import { manifestsIn } from '../../kit/yaml-of-pages.ts';

/** Groups that no API server here serves: their programs bring the kinds. */
const OF_OTHERS = /^(kueue\.x-k8s\.io|cluster\.x-k8s\.io|policy\.karmada\.io)\//;

const MANIFESTS = [
  ...pagesOf('*.md', '{charts,docs,examples,operator,test}/**/*.md')
    .filter((path) => !/^docs\/(decisions\/\d|seen\/)/.test(path))
    .flatMap((path) => manifestsIn(readPage(path)).map(({ line, object }) => [`${path}:${line}`, object] as const)),
  ...pagesOf('examples/**/*.yaml')
    .filter((path) => !/simulation\.yaml$/.test(path))
    .flatMap((path) => (loadAll(readRepositoryFile(path)) as KubeObject[]).map((object) => [path, object] as const)),
];

let garden: SharedApiserver;
const resources = new Map<string, Resource>();

beforeAll(async () => {
  garden = await sharedApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  for (const path of pagesOf('operator/garden/daemon/cluster-inventory/*.yaml', 'test/fixtures/keda/*.yaml'))
    await garden.client.apply(loadAll(readRepositoryFile(path))[0] as KubeObject);
  // The API server serves a new CRD a moment after it was made.
  const deadline = Date.now() + 20_000;
  for (const [where, object] of MANIFESTS.filter(([, { apiVersion }]) => !OF_OTHERS.test(apiVersion))) {
    while (!(await isServed(object))) {
      if (Date.now() > deadline) throw new Error(`${where}: the API server does not serve ${object.kind}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}, 120_000);
afterAll(() => garden?.leave());

it.each(MANIFESTS)('%s passes a server-side dry run', async (_, manifest) => {
  const resource = resources.get(`${manifest.apiVersion}/${manifest.kind}`);
  if (!resource) return expect(manifest.apiVersion).toMatch(OF_OTHERS);
  const { namespace: __, ...metadata } = manifest.metadata;
  // The namespaces of pages are not there; what an object may say is the same in each.
  const object = {
    ...manifest,
    metadata: { ...metadata, ...(resource.namespaced && { namespace: garden.namespace }) },
  };
  expect((await garden.client.create(object, { dryRun: true, resource })).kind).toBe(manifest.kind);
});

it('each reference page has a minimal and a usual YAML', () => {
  for (const { kind, plural } of KINDS) {
    const shown = MANIFESTS.filter(([where]) => where.startsWith(`docs/reference/${plural}.md:`));
    expect(shown.map(([, object]) => object.kind)).toEqual([kind, kind]);
  }
});

async function isServed({ apiVersion, kind }: KubeObject): Promise<boolean> {
  if (resources.has(`${apiVersion}/${kind}`)) return true;
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const path = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const list = await garden.client
    .request<{ resources: { name: string; kind: string; namespaced: boolean }[] }>('GET', path)
    .catch(() => ({ resources: [] }));
  const found = list.resources.find((resource) => resource.kind === kind && !resource.name.includes('/'));
  if (!found) return false;
  resources.set(`${apiVersion}/${kind}`, { group, version, kind, plural: found.name, namespaced: found.namespaced });
  return true;
}

import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { load } from 'js-yaml';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { ALPHA_API_VERSION, API_VERSION } from '../../../operator/api/group.ts';
import { bringCrds } from '../../../operator/chart/bring-crds.ts';
import {
  BURSTPOLICIES,
  CRDS,
  type KubeObject,
  QUOTAS,
  type Resource,
  SEEDS,
  WORKERCLUSTERS,
} from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';

const EARLIER_CHART = 'test/fixtures/chart-33f30aed.tgz';

const MADE: [Resource, string, string, object][] = [
  [WORKERCLUSTERS, API_VERSION, 'WorkerCluster', { cloudProvider: 'local', pools: [{ name: 'a', minimum: 1 }] }],
  [
    BURSTPOLICIES,
    ALPHA_API_VERSION,
    'BurstPolicy',
    {
      hub: 'fleet',
      candidates: [{ name: 'cloud', template: { spec: { cloudProvider: 'aws', dataPlaneNodes: 1 } } }],
      maximumClusters: 1,
      budget: { hourly: '1' },
    },
  ],
  [QUOTAS, API_VERSION, 'Quota', { metrics: { nodes: '10' } }],
  [
    SEEDS,
    API_VERSION,
    'Seed',
    { provider: { type: 'local', region: 'local' }, networks: { pods: '10.1.0.0/16', services: '10.2.0.0/16' } },
  ],
];
let garden: TestApiserver;
const before = new Map<string, KubeObject>();
const namespaceOf = ({ namespaced }: Resource) => (namespaced ? 'default' : undefined);

/** A cluster in which Helm has made the CRDs of an earlier chart, and people objects of them. */
beforeAll(async () => {
  garden = await startApiserver();
  const { client, directory } = garden;
  await promisify(execFile)('tar', ['-xzf', EARLIER_CHART, '-C', directory]);
  const folder = join(directory, 'coppice/crds');
  for (const name of await readdir(folder)) {
    const crd = load(await readFile(join(folder, name), 'utf8')) as KubeObject;
    await client.apply(crd, { fieldManager: 'helm' });
  }
  for (const [resource, apiVersion, kind, spec] of MADE) {
    await vi.waitFor(() => client.list(resource), { timeout: 60_000 });
    const namespace = namespaceOf(resource);
    const metadata = { name: 'kept', ...(namespace && { namespace }) };
    before.set(kind, await client.create({ apiVersion, kind, metadata, spec } as KubeObject));
  }
});
afterAll(() => garden?.stop());

const disruption = { budgets: [{ nodes: 1 }] };
const withBudget = () =>
  garden.client.create({
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: 'new', namespace: 'default' },
    spec: { cloudProvider: 'local', pools: [{ name: 'a', minimum: 1, disruption }] },
  } as KubeObject);

it('rejects fields that were added later', async () => {
  await expect(withBudget()).rejects.toThrow('unknown field "spec.pools[0].disruption"');
});

it('is updated to the present CRDs, and all its objects stay valid', async () => {
  const { version } = JSON.parse(await readFile('package.json', 'utf8')) as { version: string };
  const { client } = garden;
  const lines = await bringCrds(client, version);
  expect(lines).toContain(`workerclusters.multi-cluster.demo.io is that of release ${version} now`);
  expect(lines).toHaveLength((await client.list(CRDS)).items.filter(({ spec }) => /demo\.io$/.test(spec.group)).length);
  for (const [resource, , kind] of MADE) {
    const { metadata, spec } = await client.get(resource, 'kept', namespaceOf(resource));
    expect({ kind, uid: metadata.uid, spec }).toMatchObject({
      kind,
      uid: before.get(kind)!.metadata.uid,
      spec: before.get(kind)!.spec,
    });
    // It is still what its schema allows: a write is taken.
    const labels = { touched: 'yes' };
    await client.mergePatch(resource, 'kept', namespaceOf(resource), { metadata: { labels } });
  }
  await expect.poll(() => withBudget().then(() => 'made', String)).toBe('made');
  const pools = [{ name: 'a', minimum: 1, disruption }];
  const patched = await client.mergePatch(WORKERCLUSTERS, 'kept', 'default', { spec: { pools } });
  expect(patched.spec.pools).toMatchObject(pools);
});

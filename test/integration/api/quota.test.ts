import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { API_VERSION } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { QUOTAS } from '../../../operator/kube/resources.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

let garden: SharedApiserver;

beforeAll(async () => {
  garden = await sharedApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  const deadline = Date.now() + 20_000;
  // The API server serves a new CRD a moment after it was made.
  while (
    !(await garden.client.list(QUOTAS).then(
      () => true,
      () => false,
    ))
  ) {
    if (Date.now() > deadline) throw new Error('the API server does not serve quotas');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
afterAll(() => garden?.leave());

const quota = (spec: object, name = 'team'): KubeObject => ({
  apiVersion: API_VERSION,
  kind: 'Quota',
  metadata: { name, namespace: garden.namespace },
  spec,
});

const dryCreate = (manifest: KubeObject) => garden.client.create(manifest, { dryRun: true });

describe('Quota', () => {
  const gardener = {
    scope: { apiVersion: 'core.gardener.cloud/v1beta1', kind: 'Project' },
    clusterLifetimeDays: 14,
    metrics: { cpu: '200', gpu: '20', memory: '4000Gi', 'storage.standard': '8000Gi', loadbalancer: '100' },
  };

  test.each<[string, object]>([
    ["Gardener's example", gardener],
    [
      'every metric of ours',
      { metrics: { clusters: 5, nodes: '10', cpu: '1500m', 'cost.hourly': '60.5', 'cost.monthly': 4000 } },
    ],
    ['nothing at all', { metrics: { nodes: 0 } }],
  ])('takes %s', async (_what, spec) => {
    expect(await readRefusal(() => dryCreate(quota(spec)))).toBe('');
  });

  test.each<[string, object, RegExp]>([
    ['no metrics', {}, /metrics: Required/],
    ['what is no quantity', { metrics: { nodes: 'ten' } }, /a metric is a Kubernetes quantity/],
    ['a metric that nobody knows', { metrics: { node: 30 } }, /a quota limits clusters, nodes, cpu/],
    ['a negative number', { metrics: { nodes: -1 } }, /a metric is a Kubernetes quantity/],
    ['a negative quantity', { metrics: { cpu: '-500m' } }, /a metric is a Kubernetes quantity/],
    ['a currency that is none', { metrics: { nodes: 1 }, currency: 'dollars' }, /spec\.currency/],
  ])('refuses %s', async (_what, spec, message) => {
    expect(await readRefusal(() => dryCreate(quota(spec)))).toMatch(message);
  });

  it('defaults to US dollars, and its scope cannot be changed', async () => {
    const made = await garden.client.create(quota(gardener, 'fixed'));
    expect(made.spec.currency).toBe('USD');
    const change = (scope: object | null) =>
      readRefusal(() => garden.client.mergePatch(QUOTAS, 'fixed', garden.namespace, { spec: { scope } }));
    expect(await change({ kind: 'Secret' })).toMatch(/scope cannot be changed/);
    expect(await change(null)).toMatch(/scope cannot be changed/);
    expect(
      await readRefusal(() =>
        garden.client.mergePatch(QUOTAS, 'fixed', garden.namespace, { spec: { metrics: { cpu: '300' } } }),
      ),
    ).toBe('');
  });
});

it('the shipped profiles with their prices are accepted', async () => {
  for (const profile of await profileManifests())
    expect(await readRefusal(() => dryCreate(profile)), profile.metadata.name).toBe('');
});

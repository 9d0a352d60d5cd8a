import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLUSTERS, type KarmadaCluster } from '../../operator/hubs/karmada/cluster.ts';
import { RESOURCEBINDINGS } from '../../operator/hubs/karmada/seen.ts';
import { CRDS, type KubeObject } from '../../operator/kube/resources.ts';
import type { BoughtClusters } from '../kit/hubs/bought-clusters.ts';
import { makePeakPolicy } from '../kit/hubs/burst-beside.ts';
import type { BurstOnHub } from '../kit/hubs/burst-on-hub.ts';
import type { HubTestbed } from '../kit/hubs/hub-testbed.ts';
import { BY_WEIGHT } from '../kit/hubs/karmada-work.ts';
import { programs } from '../kit/hubs/programs.ts';
import { burstOnKarmada } from '../kit/hubs/real-karmada-burst.ts';

const PATIENCE_MS = 120_000;
const GROUP = 'apps.kruise.io';
/** Of which Karmada itself knows how many replicas it has, and what they ask for. */
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `clonesets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: 'Namespaced',
    names: { kind: 'CloneSet', plural: 'clonesets', singular: 'cloneset', listKind: 'CloneSetList' },
    versions: [
      {
        name: 'v1alpha1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        subresources: { status: {} },
      },
    ],
  },
};
const CLONESETS = { group: GROUP, version: 'v1alpha1', plural: 'clonesets', kind: 'CloneSet', namespaced: true };
const policies = (plural: string, kind: string, namespaced: boolean) => ({
  group: 'policy.karmada.io',
  version: 'v1alpha1',
  plural,
  kind,
  namespaced,
});

/** Work of a kind that not every cluster serves. Each test goes on where the one before ended. */
describe.skipIf(!programs)('the real Karmada, a BurstPolicy and a custom kind', () => {
  let burst: BurstOnHub;
  let testbed: HubTestbed;
  let bought: BoughtClusters;
  const began = Date.now();
  const saw = (what: string) => console.log(`kinds ${((Date.now() - began) / 1000).toFixed(1)} s: ${what}`);

  beforeAll(async () => {
    burst = await burstOnKarmada(programs!, ['first']);
    ({ testbed, bought } = burst);
  });
  afterAll(() => burst?.stop());

  const client = () => testbed.garden.client;
  const soon = (poll: () => unknown) => expect.poll(poll, { timeout: PATIENCE_MS, interval: 100 });
  const binding = async () =>
    (await client().getOrUndefined(RESOURCEBINDINGS, 'train-cloneset', 'shop')) as
      | (KubeObject & {
          spec: { clusters?: { name: string; replicas: number }[] };
          status?: { conditions?: { type: string; message: string }[] };
        })
      | undefined;
  const refusal = async () =>
    (await binding())?.status?.conditions?.find(({ type }) => type === 'Scheduled')?.message ?? '';
  const said = async () => (await burst.policy())?.status?.demand?.[0]?.message ?? '';

  it('buy nothing for work of a kind that a new cluster would not serve, and report it', async () => {
    await client().create(DEFINITION, { resource: CRDS });
    await soon(() =>
      client()
        .list(CLONESETS)
        .then(
          ({ items }) => items,
          () => undefined,
        ),
    ).toEqual([]);
    const requests = { cpu: '500m', memory: '64Mi' };
    const containers = [{ name: 'train', image: 'pause', resources: { requests } }];
    const labels = { app: 'train' };
    await client().create(
      {
        apiVersion: `${GROUP}/v1alpha1`,
        kind: 'CloneSet',
        metadata: { name: 'train', namespace: 'shop' },
        spec: {
          replicas: 2,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers } },
        },
      },
      { resource: CLONESETS },
    );
    await client().create(
      {
        apiVersion: 'policy.karmada.io/v1alpha1',
        kind: 'PropagationPolicy',
        metadata: { name: 'train', namespace: 'shop' },
        spec: {
          resourceSelectors: [{ apiVersion: `${GROUP}/v1alpha1`, kind: 'CloneSet', name: 'train' }],
          placement: { replicaScheduling: BY_WEIGHT },
        },
      },
      { resource: policies('propagationpolicies', 'PropagationPolicy', true) },
    );
    await soon(refusal).toContain('did not have the API resource');
    saw(`train, CloneSet of 2 replicas of 500m. Karmada: ${await refusal()}`);
    const template = {
      metadata: { labels: { tier: 'burst' } },
      spec: { cloudProvider: 'cloud', pools: [{ name: 'a', maximum: 5 }] },
    };
    await makePeakPolicy(client(), [{ name: 'cloud', template }]);
    await soon(said).toContain(`cloud: a new cluster of it will not serve ${GROUP}/v1alpha1 CloneSet`);
    saw(`the policy: ${await said()}`);
    expect(bought.names).toEqual([]);
  });

  it('buy a cluster when Karmada delivers the CRD to new clusters, and place the work there', async () => {
    const from = Date.now();
    await client().create(
      {
        apiVersion: 'policy.karmada.io/v1alpha1',
        kind: 'ClusterPropagationPolicy',
        metadata: { name: 'clonesets' },
        spec: {
          resourceSelectors: [
            { apiVersion: DEFINITION.apiVersion, kind: DEFINITION.kind, name: DEFINITION.metadata.name },
          ],
          placement: { clusterAffinity: { labelSelector: { matchLabels: { tier: 'burst' } } } },
        },
      },
      { resource: policies('clusterpropagationpolicies', 'ClusterPropagationPolicy', false) },
    );
    saw('a ClusterPropagationPolicy propagates CustomResourceDefinition clonesets.apps.kruise.io to tier burst');
    const since = () => `${((Date.now() - from) / 1000).toFixed(1)} s after that`;
    await soon(() => bought.names).toHaveLength(1);
    const [name] = bought.names as [string];
    saw(`WorkerCluster ${name} is made ${since()}`);
    await testbed.until(`${name} to join`, () => testbed.state('test', name) === 'Joined', PATIENCE_MS);
    const member = testbed.membership('test', name)?.status?.memberName ?? '';
    saw(`${member} has joined Karmada ${since()}`);
    const served = async () =>
      ((await client().get(CLUSTERS, member)) as KarmadaCluster).status?.apiEnablements?.some(
        ({ groupVersion }) => groupVersion === `${GROUP}/v1alpha1`,
      );
    await soon(served).toBe(true);
    saw(`Karmada sees that it serves CloneSets ${since()}`);
    await soon(async () => (await binding())?.spec.clusters).toEqual([{ name: member, replicas: 2 }]);
    saw(`Karmada has placed both replicas there ${since()}`);
    expect(bought.names).toEqual([name]);
  });
});

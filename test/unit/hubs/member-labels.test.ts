import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { OpenCluster } from '../../../operator/clusters/open-clusters.ts';
import { labelsOf, zonesOf } from '../../../operator/controllers/membership/member-labels.ts';
import { CONTROL_PLANE_POOL } from '../../../operator/cost/size.ts';
import type { WantedObject } from '../../../operator/hubs/contract.ts';
import { hubType } from '../../../operator/hubs/index.ts';
import { buildCloudProfile, buildWorkerCluster } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { member, reader } from './hub-members.ts';

const spec: HubSpec = { type: 'ClusterProfile', clusterLabels: { tier: 'burst' } };
const pool = (name: string, machineType: string, spot = false) => ({
  name,
  machineType,
  count: 1,
  ...(spot && { spot }),
});
const cluster = (status: object = {}, more: object = {}) =>
  buildWorkerCluster({
    metadata: { name: 'demo', namespace: 'shop' },
    spec: { cloudProvider: 'aws', dataPlaneNodes: 2 },
    status: {
      provider: 'aws',
      region: 'eu-central-1',
      mode: 'Managed',
      kubernetesVersion: '1.36.3',
      admitted: { pools: [pool('a', 'm5.large')] },
      ...status,
    },
    ...more,
  });
const open = (...zones: string[]) =>
  partOf<OpenCluster>({
    nodes: {
      list: () => zones.map((zone) => ({ metadata: { labels: { 'topology.kubernetes.io/zone': zone } }, spec: {} })),
    },
  });
const profile = buildCloudProfile({
  spec: {
    regions: [{ name: 'eu-central-1', zones: [{ name: 'eu-central-1a' }, { name: 'eu-central-1b' }] }],
    machineTypes: [
      { name: 'm5.large', cpu: '2', memory: '8Gi' },
      { name: 'p4d.24xlarge', cpu: '96', memory: '1152Gi', gpu: '8' },
    ],
  },
});

describe('the labels of a cluster in a hub', () => {
  it('contain what schedulers select by', () => {
    expect(labelsOf(cluster(), spec, { open: open('eu-central-1a'), profile })).toEqual({
      tier: 'burst',
      'multi-cluster.demo.io/provider': 'aws',
      'multi-cluster.demo.io/mode': 'Managed',
      'multi-cluster.demo.io/kubernetes-version': '1.36.3',
      'multi-cluster.demo.io/kubernetes-minor': '1.36',
      'multi-cluster.demo.io/price-class': 'on-demand',
      'multi-cluster.demo.io/machine-type.m5.large': 'true',
      'multi-cluster.demo.io/worker-cluster': 'demo',
      'multi-cluster.demo.io/worker-cluster-namespace': 'shop',
      'multi-cluster.demo.io/zone.eu-central-1a': 'true',
      'topology.kubernetes.io/region': 'eu-central-1',
      'topology.kubernetes.io/zone': 'eu-central-1a',
    });
  });

  it("contain the user's, except those a hub acts on, the Hub's and Coppice's", () => {
    const labels = {
      team: 'web',
      tier: 'gold',
      'argocd.argoproj.io/secret-type': 'cluster',
      'multi-cluster.demo.io/provider': 'gcp',
      'multi-cluster.demo.io/burst': 'true',
    };
    const shown = labelsOf(cluster({}, { metadata: { name: 'demo', namespace: 'shop', labels } }), spec);
    expect(shown).toMatchObject({ team: 'web', tier: 'burst', 'multi-cluster.demo.io/provider': 'aws' });
    expect(shown).toHaveProperty(['multi-cluster.demo.io/burst'], 'true');
    expect(shown).not.toHaveProperty(['argocd.argoproj.io/secret-type']);
  });

  it.each([
    ['on-demand', [pool('a', 'm5.large')]],
    ['spot', [pool('a', 'm5.large', true)]],
    ['mixed', [pool('a', 'm5.large', true), pool('b', 'm5.large')]],
    // No work runs on machines of a control plane.
    ['spot', [pool('a', 'm5.large', true), pool(CONTROL_PLANE_POOL, 'm5.xlarge')]],
    [undefined, []],
  ])('say %s of its machines', (expected, pools) => {
    const labels = labelsOf(cluster({ admitted: { pools } }), spec);
    expect(labels['multi-cluster.demo.io/price-class']).toBe(expected);
    expect(labels).not.toHaveProperty(['multi-cluster.demo.io/machine-type.m5.xlarge']);
  });

  it('of an attached cluster come from its nodes', () => {
    const node = (labels: object) => ({
      metadata: { labels },
      spec: {},
      status: { allocatable: { 'nvidia.com/gpu': '1' } },
    });
    const type = { 'node.kubernetes.io/instance-type': 'g5.xlarge', 'topology.kubernetes.io/region': 'eu-west-1' };
    const nodes = [node(type), node({ ...type, 'eks.amazonaws.com/capacityType': 'SPOT' })];
    const seen = partOf<OpenCluster>({ nodes: { list: () => nodes } });
    const attached = cluster({}, { spec: { mode: 'Attached' }, status: { mode: 'Attached' } });
    expect(labelsOf(attached, spec, { open: seen })).toMatchObject({
      'multi-cluster.demo.io/mode': 'Attached',
      'multi-cluster.demo.io/machine-type.g5.xlarge': 'true',
      'multi-cluster.demo.io/price-class': 'mixed',
      'multi-cluster.demo.io/gpu': 'true',
      'topology.kubernetes.io/region': 'eu-west-1',
    });
    // Nodes say nothing where it is known what was asked for.
    const own = labelsOf(cluster(), spec, { open: seen });
    expect(own).toMatchObject({
      'multi-cluster.demo.io/price-class': 'on-demand',
      'topology.kubernetes.io/region': 'eu-central-1',
    });
  });

  it('are limited, whatever an API server reports of its nodes', () => {
    const nodes = Array.from({ length: 5000 }, (_, index) => ({
      metadata: {
        labels: { 'node.kubernetes.io/instance-type': `t${index}`, 'topology.kubernetes.io/zone': `z${index}` },
      },
      spec: {},
    }));
    const hostile = partOf<OpenCluster>({ nodes: { list: () => nodes } });
    const attached = cluster({}, { spec: { mode: 'Attached' }, status: { mode: 'Attached' } });
    expect(Object.keys(labelsOf(attached, spec, { open: hostile })).length).toBeLessThan(100);
  });

  it('contain GPUs and zones, also before there are nodes', () => {
    const withGPUs = labelsOf(cluster({ admitted: { pools: [pool('a', 'p4d.24xlarge')] } }), spec, {
      open: open(),
      profile,
    });
    expect(withGPUs).toMatchObject({
      'multi-cluster.demo.io/gpu': 'true',
      'multi-cluster.demo.io/zone.eu-central-1a': 'true',
      'multi-cluster.demo.io/zone.eu-central-1b': 'true',
    });
    expect(withGPUs).not.toHaveProperty(['topology.kubernetes.io/zone']);
    expect(labelsOf(cluster(), spec, { profile })).not.toHaveProperty(['multi-cluster.demo.io/gpu']);
    const narrowed = cluster({}, { spec: { cloudProvider: 'aws', zones: ['eu-central-1b'] } });
    expect(zonesOf(narrowed, { profile })).toEqual(['eu-central-1b']);
    expect(zonesOf(narrowed, { profile, open: open('eu-central-1a') })).toEqual(['eu-central-1a']);
  });

  it("are valid for every API server, whatever the cluster's name or version", () => {
    const odd = cluster(
      {
        kubernetesVersion: '1.36.3+k3s1',
        region: 'x'.repeat(64),
        admitted: { pools: [pool('a', `m${'5'.repeat(60)}`)] },
      },
      { metadata: { name: 'demo', namespace: 'shop', labels: { empty: '' } } },
    );
    const shown = labelsOf(odd, { type: 'Karmada', clusterLabels: { bad: 'no label', ok: 'yes' } });
    expect(shown).toMatchObject({ empty: '', ok: 'yes', 'multi-cluster.demo.io/kubernetes-version': '1.36.3_k3s1' });
    for (const [key, value] of Object.entries(shown)) {
      expect(key.slice(key.indexOf('/') + 1)).toMatch(/^[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/);
      expect(value).toMatch(/^([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?$/);
    }
  });

  it("contain the cluster's mesh identity", () => {
    const networking = { pods: '100.72.0.0/18', mesh: 'default', clusterID: 7, clusterName: 'shop--demo' };
    expect(labelsOf(cluster({ networking }), spec)).toMatchObject({
      'multi-cluster.demo.io/mesh': 'default',
      'multi-cluster.demo.io/cluster-id': '7',
      'multi-cluster.demo.io/mesh-cluster-name': 'shop--demo',
    });
    for (const key of Object.keys(labelsOf(cluster(), spec))) expect(key).not.toMatch(/mesh|cluster-id/);
  });

  it.each([
    ['ClusterProfile', (one: WantedObject) => one.status],
    ['ArgoCD', (one: WantedObject) => one.object.metadata.annotations],
  ] as const)('leave its ranges to properties and annotations of a %s hub', async (type, shown) => {
    const one = member({ ranges: { pods: '100.72.0.0/18', services: '100.72.64.0/20' } });
    const hub = hubType(type)!;
    const steps = hub.join(one, { type }, await hub.observe(reader({}), undefined, one, { type }));
    const text = JSON.stringify(steps.flatMap(({ apply = [] }) => apply).map(shown));
    expect(text).toMatch(/pod-range[^}]*100\.72\.0\.0\/18/);
    expect(text).toMatch(/service-range[^}]*100\.72\.64\.0\/20/);
  });

  it.each(['ClusterProfile', 'ArgoCD', 'Flux', 'Karmada', 'Kueue', 'Clusternet'] as const)(
    'are on what a %s hub selects by',
    async (type) => {
      const labels = labelsOf(cluster(), spec, { profile });
      const hub = hubType(type)!;
      const names = hub.identities(member(), { ...spec, type }).map(({ name }) => name);
      const credentials = Object.fromEntries(names.map((name) => [name, { token: 'token-of-demo' }]));
      const one = member({ labels, credentials });
      const steps = hub.join(one, { ...spec, type }, await hub.observe(reader({}), undefined, one, { ...spec, type }));
      const objects = steps.flatMap(({ apply = [] }) => apply).filter(({ on }) => on === 'hub');
      expect(objects.map(({ object }) => object.metadata.labels)).toContainEqual(expect.objectContaining(labels));
    },
  );
});

import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import type { PlacedWork } from '../../../operator/hubs/contract.ts';
import { karmadaHub } from '../../../operator/hubs/karmada/karmada.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { reader } from './hub-members.ts';

const dynamic = {
  replicaSchedulingType: 'Divided',
  replicaDivisionPreference: 'Weighted',
  weightPreference: { dynamicWeight: 'AvailableReplicas' },
};
const binding = (placement: object = {}, more: object = {}): KubeObject => ({
  apiVersion: 'work.karmada.io/v1alpha2',
  kind: 'ResourceBinding',
  metadata: { name: 'web-deployment', namespace: 'shop' },
  spec: {
    resource: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web', uid: 'uid' },
    replicas: 5,
    replicaRequirements: { resourceRequest: { cpu: '500m', memory: '64Mi' } },
    clusters: [
      { name: 'shop--private', replicas: 3 },
      { name: 'shop--bought', replicas: 2 },
    ],
    placement: { replicaScheduling: dynamic, ...placement },
    ...more,
  },
});

const placed = (one: KubeObject, spec: HubSpec = { type: 'Karmada', karmada: { evicts: true } }) =>
  karmadaHub.placedWork!(
    reader({ resourcebindings: [one], clusterresourcebindings: [] }),
    spec,
    'shop--bought',
  ) as Promise<PlacedWork[]>;

describe('the placements of Karmada', () => {
  const decided = (one: KubeObject) =>
    karmadaHub.placed!(reader({ resourcebindings: [one], clusterresourcebindings: [] }), { type: 'Karmada' });

  it('name the clusters with replicas, and the object that creates their pods', async () => {
    const clusters = [
      { name: 'shop--private', replicas: 0 },
      { name: 'shop--bought', replicas: 2 },
    ];
    expect(await decided(binding({}, { clusters }))).toEqual([
      {
        source: 'ResourceBinding shop/web-deployment',
        members: ['shop--bought'],
        workload: { namespace: 'shop', name: 'web' },
        isDivided: true,
      },
    ]);
  });

  it('are divided by capacity only where Karmada considers it: fixed weights count as copies', async () => {
    const divided = (more: object) => ({ replicaScheduling: { replicaSchedulingType: 'Divided', ...more } });
    const clusters = [
      { name: 'shop--private', replicas: 1 },
      { name: 'shop--bought', replicas: 1 },
    ];
    const isDivided = async (more: object) => (await decided(binding(divided(more), { clusters })))[0]!.isDivided;
    const weights = { staticWeightList: [{ targetCluster: {}, weight: 1 }] };
    const weighted = { replicaDivisionPreference: 'Weighted' };
    expect(await isDivided({ ...weighted, weightPreference: { dynamicWeight: 'AvailableReplicas' } })).toBe(true);
    expect(await isDivided({ replicaDivisionPreference: 'Aggregated' })).toBe(true);
    expect(await isDivided({ ...weighted, weightPreference: weights })).toBeUndefined();
    // As Karmada, which gives all clusters the same weight then.
    expect(await isDivided(weighted)).toBeUndefined();
  });

  it('are not divided for duplicated work, and none without pods', async () => {
    const replicaScheduling = { replicaSchedulingType: 'Duplicated' };
    const clusters = [{ name: 'shop--private' }, { name: 'shop--bought' }];
    const [copied] = await decided(binding({ replicaScheduling }, { clusters }));
    expect(copied).toMatchObject({ members: ['shop--private', 'shop--bought'] });
    expect(copied!.isDivided).toBeUndefined();
    expect(await decided(binding({ replicaScheduling }, { clusters, replicas: 0 }))).toEqual([]);
  });
});

describe('the work that Karmada has placed on a cluster', () => {
  it('names the object that creates its pods, and their number', async () => {
    const affinity = { clusterAffinity: { labelSelector: { matchLabels: { tier: 'gold' } } } };
    const [one, ...others] = await placed(binding(affinity));
    expect(others).toEqual([]);
    expect(one).toMatchObject({
      source: 'ResourceBinding shop/web-deployment',
      count: 2,
      each: { cpu: '500m', memory: '64Mi' },
      workload: { kind: 'Deployment', namespace: 'shop', name: 'web' },
    });
    expect(one!.stays).toBeUndefined();
    expect(one!.inOneCluster).toBeUndefined();
    const member = (tier: string) => ({ name: 'x', labels: { tier }, zones: [] });
    expect([one!.accepts!(member('gold')), one!.accepts!(member('own'))]).toEqual([true, false]);
  });

  it('names where its kind is served, if not everywhere', async () => {
    const resource = { apiVersion: 'batch.volcano.sh/v1alpha1', kind: 'Job', namespace: 'shop', name: 'train' };
    const [one] = await placed(binding({}, { resource }));
    expect(one!.customKind).toMatchObject({ kind: 'batch.volcano.sh/v1alpha1 Job', servedBy: new Set() });
    const [other] = await placed(binding());
    expect(other).not.toHaveProperty('customKind');
  });

  it('excludes work elsewhere or without replicas', async () => {
    expect(await placed(binding({}, { clusters: [{ name: 'shop--private', replicas: 5 }] }))).toEqual([]);
    expect(await placed(binding({}, { replicas: 0, clusters: [{ name: 'shop--bought' }] }))).toEqual([]);
  });

  it('goes to one cluster as a whole where its placement requires that', async () => {
    const spreadConstraints = [{ spreadByField: 'cluster', minGroups: 1, maxGroups: 1 }];
    expect(await placed(binding({ spreadConstraints }))).toMatchObject([{ inOneCluster: true }]);
  });

  it.each<[string, KubeObject, string]>([
    ['is copied', binding({ replicaScheduling: { replicaSchedulingType: 'Duplicated' } }), 'is copied'],
    ['has no scheduling, and so is copied', binding({ replicaScheduling: undefined }), 'is copied'],
    [
      'is divided by fixed weights',
      binding({ replicaScheduling: { replicaSchedulingType: 'Divided', replicaDivisionPreference: 'Weighted' } }),
      'fixed weights',
    ],
    ['is to be spread', binding({ spreadConstraints: [{ spreadByField: 'cluster', minGroups: 2 }] }), 'spread'],
    ['is suspended', binding({}, { suspension: { scheduling: true } }), 'suspended'],
    ['is on its way', binding({}, { gracefulEvictionTasks: [{ fromCluster: 'shop--private' }] }), 'already'],
    [
      'has several parts',
      binding({}, { components: [{ name: 'manager', replicas: 1 }], clusters: [{ name: 'shop--bought' }] }),
      'several parts',
    ],
    ['tolerates every taint', binding({ clusterTolerations: [{ operator: 'Exists' }] }), 'tolerates'],
  ])('that %s stays', async (_, one, why) => {
    expect((await placed(one))[0]!.stays).toContain(why);
  });

  it('is movable although it tolerates foreign taints', async () => {
    const clusterTolerations = [{ key: 'cluster.karmada.io/not-ready', operator: 'Exists', effect: 'NoExecute' }];
    expect((await placed(binding({ clusterTolerations })))[0]!.stays).toBeUndefined();
  });

  it('is not reported by a Karmada without known eviction', async () => {
    expect(await placed(binding(), { type: 'Karmada' })).toContain('karmada.evicts');
  });
});

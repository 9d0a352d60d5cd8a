import { describe, expect, it } from 'vitest';
import type { HubSpec } from '../../../operator/api/hub.ts';
import { clusterProfileHub } from '../../../operator/hubs/cluster-profile.ts';
import type { KubeObject, ObjectMeta } from '../../../operator/kube/resources.ts';
import { reader } from './hub-members.ts';

const EVERYWHERE: HubSpec = { type: 'ClusterProfile', allowedNamespaces: ['*'] };

const decision = (unplaced: unknown, more: Partial<ObjectMeta> = {}): KubeObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1alpha1',
  kind: 'PlacementDecision',
  metadata: {
    name: 'web',
    namespace: 'shop',
    ...(unplaced !== undefined && {
      annotations: {
        'multi-cluster.demo.io/unplaced': typeof unplaced === 'string' ? unplaced : JSON.stringify(unplaced),
      },
    }),
    ...more,
  },
  decisions: [],
});
const demand = (decisions: KubeObject[], spec = EVERYWHERE) =>
  clusterProfileHub.demand!(reader({ placementdecisions: decisions }), spec, 'fleet');

describe('the placements of PlacementDecisions', () => {
  const named = (unplaced: unknown, more: Partial<ObjectMeta> = {}): KubeObject => ({
    ...decision(unplaced, more),
    decisions: [{ clusterProfileRef: { name: 'a' } }, { clusterProfileRef: { name: 'b', namespace: 'elsewhere' } }],
  });
  const placed = (decisions: KubeObject[], spec = EVERYWHERE) =>
    clusterProfileHub.placed!(reader({ placementdecisions: decisions }), spec);

  it("are the profiles named by decisions in their own namespace or the hub's", async () => {
    const source = 'PlacementDecision shop/web';
    expect(await placed([named(undefined)])).toEqual([{ source, members: ['a'], memberNamespace: 'shop' }]);
    const inShop: HubSpec = { type: 'ClusterProfile', clusterProfile: { namespace: 'shop' } };
    expect(await placed([named(undefined), named(undefined, { namespace: 'tenant' })], inShop)).toEqual([
      { source, members: ['a'] },
    ]);
  });

  it('are divided where the scheduler reports unplaced replicas, also of zero', async () => {
    expect(await placed([named({ replicas: 0 })])).toMatchObject([{ isDivided: true }]);
    expect(await placed([named(undefined, { deletionTimestamp: '2026-11-01T00:00:00Z' })])).toEqual([]);
  });
});

describe('the demand of PlacementDecisions', () => {
  it('is what the scheduler reports as unplaced', async () => {
    const requests = { cpu: '1500m', memory: '64Mi', 'nvidia.com/gpu': '1' };
    expect(await demand([decision({ replicas: 3, requests }), decision(undefined, { name: 'placed' })])).toEqual([
      {
        source: 'PlacementDecision shop/web',
        namespace: 'shop',
        count: 3,
        each: { cpu: '1500m', memory: '64Mi', gpu: '1' },
        since: '',
      },
    ]);
  });

  it("carries the workload's UID, node rules and devices", async () => {
    const requests = { cpu: '1', 'example.com/fpga': '2' };
    const nodes = { nodeSelector: { disk: 'ssd' }, tolerations: [{ key: 'dedicated', operator: 'Exists' as const }] };
    expect(await demand([decision({ replicas: 1, requests, nodes }, { uid: 'of-decision' })])).toMatchObject([
      { uid: 'of-decision', each: { cpu: '1' }, others: { 'example.com/fpga': '2' }, nodes },
    ]);
  });

  it("has the scheduler's priority, an integer", async () => {
    expect(await demand([decision({ replicas: 1, priority: -7 })])).toMatchObject([{ priority: -7 }]);
    expect(await demand([decision({ replicas: 1, priority: 1.5 })])).toMatchObject([
      { count: 0, problem: expect.stringMatching(/priority/) },
    ]);
  });

  it("is limited to clusters with the scheduler's labels", async () => {
    const clusterSelector = { matchLabels: { tier: 'gold' }, matchExpressions: [{ key: 'gpu', operator: 'Exists' }] };
    const [found] = await demand([decision({ replicas: 1, clusterSelector })]);
    const accepts = (labels: Record<string, string>) => found!.accepts!({ name: 'a', labels, zones: [] });
    expect(accepts({ tier: 'gold', gpu: 'true' })).toBe(true);
    expect(accepts({ tier: 'gold' })).toBe(false);
    expect(accepts({ tier: 'base', gpu: 'true' })).toBe(false);
  });

  it.each<[string, unknown, RegExp]>([
    ['no JSON', 'many', /: it is no JSON$/],
    ['no object', [3], /: Invalid input: expected object/],
    ['no replicas', { requests: { cpu: '1' } }, /: replicas: /],
    ['less than none', { replicas: -1 }, /: replicas: /],
    ['a fraction of one', { replicas: 1.5 }, /: replicas: /],
    ['more than anybody has', { replicas: 1e9 }, /: replicas: /],
    ['amounts that are no text', { replicas: 1, requests: { cpu: 1 } }, /: requests.cpu: /],
    ['an amount without end', { replicas: 1, requests: { cpu: '1'.repeat(100) } }, /: requests.cpu: /],
    ['nodes that no pod could ask for', { replicas: 1, nodes: { nodeSelector: ['ssd'] } }, /: nodes.nodeSelector: /],
    [
      'a selector that is none',
      { replicas: 1, clusterSelector: { matchExpressions: [{ key: 'a', operator: 'Like' }] } },
      /: clusterSelector.matchExpressions.0.operator: /,
    ],
    ['more than is read', { replicas: 1, note: 'x'.repeat(10_000) }, /: it is longer than 8192 characters$/],
  ])('asks for nothing where it says %s, and tells why; the others are heard', async (_, said, why) => {
    const found = await demand([decision(said), decision({ replicas: 2 }, { name: 'other' })]);
    expect(found.map(({ source, count }) => ({ source, count }))).toEqual([
      { source: 'PlacementDecision shop/web', count: 0 },
      { source: 'PlacementDecision shop/other', count: 2 },
    ]);
    expect(found[0]!.problem).toMatch(/^annotation multi-cluster.demo.io\/unplaced cannot be read: /);
    expect(found[0]!.problem).toMatch(why);
    expect(found[0]!.problem!.length).toBeLessThan(400);
    expect(found[1]!.problem).toBeUndefined();
  });

  it('is none when the scheduler reports zero unplaced replicas', async () => {
    expect(await demand([decision({ replicas: 0 })])).toEqual([]);
  });

  it('excludes decisions that are being deleted', async () => {
    expect(await demand([decision({ replicas: 1 }, { deletionTimestamp: '2026-11-23T00:00:00Z' })])).toEqual([]);
  });

  it("is read in the namespace of the hub's profiles only", async () => {
    const all = [decision({ replicas: 1 }), decision({ replicas: 2 }, { namespace: 'fleet' })];
    const counts = async (spec: Partial<HubSpec>) =>
      (await demand(all, { type: 'ClusterProfile', ...spec })).map(({ count }) => count);
    expect(await counts({ allowedNamespaces: ['*'] })).toEqual([1, 2]);
    expect(await counts({ allowedNamespaces: ['shop'] })).toEqual([1]);
    expect(await counts({ allowedNamespaces: ['*'], clusterProfile: { namespace: 'fleet' } })).toEqual([2]);
    expect(await counts({})).toEqual([]);
  });
});

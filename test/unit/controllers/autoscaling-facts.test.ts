import { describe, expect, it } from 'vitest';
import { FactsReader, podsThatMayMove } from '../../../operator/controllers/autoscaling/cluster-facts.ts';
import type { KubeObject, Pod, Resource } from '../../../operator/kube/resources.ts';
import { boundClaim, claims, node, pod } from '../../kit/burst.ts';

const { signal } = new AbortController();
const WITH_CLAIM = claims('data');

describe('the volumes of a cluster', () => {
  const asked: string[] = [];
  const client = {
    list: async <T extends KubeObject>({ plural }: Resource) => {
      asked.push(plural);
      const items =
        plural === 'persistentvolumeclaims' ? [{ metadata: { name: 'data', namespace: 'shop' }, spec: {} }] : [];
      return { items: items as unknown as T[], metadata: { resourceVersion: '1' } };
    },
  };
  let now = 0;
  const reader = new FactsReader(() => now);
  const of = (...pods: Pod[]) => reader.of('shop/one', client, { pods, moving: [] }, signal);

  it('are read only while a pod with a claim is pending, and not at each run', async () => {
    expect((await of(pod('1'), pod('1', 'n1', WITH_CLAIM))).facts.volumes).toBeUndefined();
    expect(asked).toEqual([]);
    const { facts } = await of(pod('1', undefined, WITH_CLAIM));
    expect([...facts.volumes!.claims.keys()]).toEqual(['shop/data']);
    expect(facts.namespaces).toBeUndefined();
    const { length } = asked;
    now = 5_000;
    await of(pod('1', undefined, WITH_CLAIM));
    expect(asked).toHaveLength(length);
    now = 10_000;
    await of(pod('1', undefined, WITH_CLAIM));
    expect(asked).toHaveLength(2 * length);
  });

  it('namespace labels are read only for pods with namespace selectors', async () => {
    asked.length = 0;
    const term = { topologyKey: 'zone', labelSelector: {}, namespaceSelector: { matchLabels: { team: 'shop' } } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
    const { facts } = await of(pod('1', undefined, { spec: { affinity } }));
    expect(facts.namespaces).toBeDefined();
    expect(asked).toEqual(['namespaces']);
  });
});

describe('the volumes of running pods', () => {
  let now = 0;
  let lists = 0;
  const bound = boundClaim('data');
  let items: Record<string, unknown[]> = {};
  const client = {
    list: async <T extends KubeObject>({ plural }: Resource) => {
      if (plural === 'persistentvolumes') lists++;
      return { items: (items[plural] ?? []) as T[], metadata: { resourceVersion: '1' } };
    },
  };
  const reader = new FactsReader(() => now);
  const moving = [pod('1', 'n1', WITH_CLAIM)];
  const look = () => reader.of('shop/one', client, { pods: moving, moving }, signal);

  it('are read once a minute, and sooner for a new one', async () => {
    await look();
    expect(lists).toBe(1);
    now = 4_000;
    // It was bound meanwhile, of which nobody tells.
    items = { persistentvolumeclaims: [bound.claim], persistentvolumes: [bound.volume] };
    expect(await look()).toMatchObject({ againAt: 10_000 });
    expect(lists).toBe(1);
    now = 10_000;
    const { facts, againAt } = await look();
    expect([...facts.volumes!.volumes.keys()]).toEqual(['pv-data']);
    expect(againAt).toBeUndefined();
    now = 60_000;
    expect(await look()).not.toHaveProperty('againAt');
    expect(lists).toBe(2);
    now = 70_000;
    await look();
    expect(lists).toBe(3);
  });

  it('matter only on nodes of a pool that may shrink', () => {
    const nodes = [node('n1', 'a'), node('n2', 'a'), node('n3', 'b')];
    const pods = [pod('1', 'n1'), pod('1', 'n3'), pod('1')];
    const may = (minimum?: number) =>
      podsThatMayMove([{ name: 'a', ...(minimum !== undefined && { minimum }) }], nodes, pods);
    expect(may()).toEqual([pods[0]]);
    expect(may(1)).toEqual([pods[0]]);
    expect(may(2)).toEqual([]);
  });
});

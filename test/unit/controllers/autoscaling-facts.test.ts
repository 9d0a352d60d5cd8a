import { describe, expect, it } from 'vitest';
import { FactsReader } from '../../../operator/controllers/autoscaling/cluster-facts.ts';
import type { KubeObject, Resource } from '../../../operator/kube/resources.ts';
import { pod } from '../../kit/burst.ts';

const { signal } = new AbortController();
const WITH_CLAIM = { spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] } };

describe('volumes of a cluster', () => {
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
  const of = (...pods: Parameters<FactsReader['of']>[2]) => reader.of('shop/one', client, pods, signal);

  it('are asked for only while a pod waits that has a claim, and not at each look', async () => {
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

  it('labels of namespaces are asked for only for pods that select by them', async () => {
    asked.length = 0;
    const term = { topologyKey: 'zone', labelSelector: {}, namespaceSelector: { matchLabels: { team: 'shop' } } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } };
    const { facts } = await of(pod('1', undefined, { spec: { affinity } }));
    expect(facts.namespaces).toBeDefined();
    expect(asked).toEqual(['namespaces']);
  });
});

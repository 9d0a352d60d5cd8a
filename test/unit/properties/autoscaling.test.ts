import { describe, expect } from 'vitest';
import { AutoscaledCluster, nodesQuota } from '../../kit/autoscaled-cluster.ts';
import { type Draw, holds } from '../../kit/property.ts';

const CPUS = ['500m', '1', '2', '3'];
const MOST = { a: 4, b: 6 };

/** One life of a cluster: load comes and goes, budgets hold pods, the operator is killed. */
async function live(choose: Draw): Promise<AutoscaledCluster> {
  const one = new AutoscaledCluster([
    { name: 'a', minimum: choose.integer(0, 1), maximum: MOST.a, scaleInAfter: '2m' },
    { name: 'b', minimum: 0, maximum: MOST.b, scaleInAfter: '2m' },
  ]);
  one.lag = choose.integer(1, 4);
  const most = choose.chance(0.4) ? choose.integer(1, 8) : MOST.a + MOST.b;
  one.quotas = [nodesQuota(most)];
  for (let turn = 0; turn < 12; turn++) {
    const what = choose.random();
    if (what < 0.6) one.deploy(choose.integer(0, 24), choose.pick(CPUS));
    else if (what < 0.75) one.writesLeft = choose.integer(0, 4);
    else if (what < 0.85) for (const { metadata } of one.pods.values()) one.held.add(metadata.name);
    else one.held.clear();
    await one.pass(choose.integer(1, 5));
    for (const [pool, most] of Object.entries(MOST)) expect(one.counts[pool] ?? 0).toBeLessThanOrEqual(most);
    expect(one.killed).toEqual([]);
    expect(one.nodes.size).toBeLessThanOrEqual(most);
  }
  one.held.clear();
  one.writesLeft = undefined;
  return one;
}

describe('whatever happens to a cluster', () => {
  holds(
    'no pool is above its maximum, nor all above a quota, no pod is killed, and what changes ends by itself',
    async (choose) => {
      const one = await live(choose);
      await one.pass(80);
      const settled = one.history.length;
      const { writes } = one;
      await one.pass(60);
      expect(one.history.slice(settled)).toEqual([]);
      expect(one.writes).toBe(writes);
      if (one.pending > 0) expect(one.nodes.size).toBe(one.quotas[0]!.spec.metrics.nodes);
      one.deploy(0);
      await one.pass(20);
      const least = one.cluster.spec.pools?.[0]?.minimum ?? 0;
      expect(one.counts).toEqual(least > 0 ? { a: least } : {});
      for (const { spec } of one.nodes.values()) expect(spec.unschedulable ?? false).toBe(false);
    },
    { runs: 15 },
  );
});

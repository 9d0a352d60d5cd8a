import { describe, expect, it } from 'vitest';
import { keptPod } from '../../../operator/clusters/kept-pod.ts';
import { ByteBudget, ObjectBudget, tenantBudget } from '../../../operator/kube/http/byte-budget.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { sentPod } from '../../bench/kept-pods.ts';

const MIB = 2 ** 20;
const NODES = 10_000;
const PODS_EACH = 30;

/** As `count` pods of a bench, each with labels that no other has. */
const unlike = (index: number): Pod => {
  const pod = sentPod(index);
  return { ...pod, metadata: { ...pod.metadata, labels: { own: `${index}-${'x'.repeat(1000)}` } } };
};

describe('tenantBudget', () => {
  it('has room for 10,000 nodes with 30 ordinary pods each, with a heap of 1 GiB', () => {
    const budget = new ObjectBudget(256 * MIB);
    // One pod of each template and then one of them again and again: making 300,000 takes long, and all are alike.
    for (let index = 0; index < 500; index++) expect(budget.take(keptPod(sentPod(index)))).toBe(true);
    const templates = budget.used;
    expect(budget.take(keptPod(sentPod(500)))).toBe(true);
    const one = budget.used - templates;
    expect(templates + one * NODES * PODS_EACH).toBeLessThan(budget.limit);
    expect(tenantBudget('shop').limit).toBeGreaterThanOrEqual(64 * MIB);
  });

  it('leaves room for other tenants when the clusters of one tenant are full', () => {
    const clusters = Array.from({ length: 4 }, () => tenantBudget('greedy'));
    const large = { text: 'x'.repeat(8 * MIB) };
    for (const cluster of clusters) while (cluster.take(large)) {}
    expect(tenantBudget('modest').take(large)).toBe(true);
  });

  it('counts shared parts of objects once, until the last object goes', () => {
    const whole = new ByteBudget(MIB);
    const budget = new ObjectBudget(MIB, whole);
    const part = Object.freeze({ text: 'x'.repeat(10_000) });
    const [one, other] = [{ part }, { part }];
    budget.take(one);
    const first = budget.used;
    budget.count(other);
    expect(budget.used).toBeLessThan(first + 1000);
    budget.release(one);
    expect(budget.used).toBeGreaterThan(10_000);
    budget.release(other);
    expect([budget.used, whole.used]).toEqual([0, 0]);
  });

  it('is exceeded by pods without common parts, including the tables that index them', () => {
    const budget = new ObjectBudget(4 * MIB);
    let taken = 0;
    while (taken < 10_000 && budget.take(keptPod(unlike(taken)))) taken++;
    expect(taken).toBeLessThan((4 * MIB) / 2000);
    const { used } = budget;
    expect(budget.take(keptPod(unlike(taken)))).toBe(false);
    expect(budget.used).toBe(used);
  });
});

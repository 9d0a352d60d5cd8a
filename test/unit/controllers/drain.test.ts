import { expect, it } from 'vitest';
import { drain } from '../../../operator/controllers/shoot/machines/drain.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { Pod } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';

const START = Date.parse('2026-11-21T00:00:00Z');
const MINUTES_10 = new Date(START + 600_000);

/** A node whose machine has lost the end of one pod of the two that are on it, on a clock that goes on while somebody waits. */
function node() {
  let now = START;
  let seen = 2;
  const pods = new Map<string, Pod>(
    ['a', 'b'].map((name) => [
      name,
      buildPod({ metadata: { name, namespace: 'shop', uid: name }, spec: { containers: [] } }),
    ]),
  );
  const evict = async ({ metadata: { name } }: Pod) => {
    if (name === 'a') pods.delete(name);
    else pods.get(name)!.metadata.deletionTimestamp = new Date(START + 30_000).toISOString();
    return { outcome: 'evicted' as const };
  };
  const deps = {
    client: partOf<KubeClient>({ evict }),
    now: () => new Date(now),
    podsOn: () => [...pods.values()],
    podsChanged: async (timeoutMs: number) => {
      if (seen === pods.size) now += timeoutMs;
      seen = pods.size;
    },
    report: () => {},
  };
  return { pods, deps, waited: () => (now - START) / 1000 };
}

it('a drain deletes overdue pods of a dead machine ten seconds after their grace period, where permitted', async () => {
  const { pods, deps, waited } = node();
  const ended: string[] = [];
  const endPods = async (overdue: readonly Pod[]) => {
    for (const { metadata } of overdue) {
      ended.push(metadata.name);
      pods.delete(metadata.name);
    }
  };
  await drain({ ...deps, endPods }, 'n', MINUTES_10, new AbortController().signal);
  expect(ended).toEqual(['b']);
  expect(waited()).toBe(40);
});

it('a drain leaves overdue pods to the kubelet elsewhere, until the deadline', async () => {
  const { pods, deps, waited } = node();
  await drain(deps, 'n', MINUTES_10, new AbortController().signal);
  expect([...pods.keys()]).toEqual(['b']);
  expect(waited()).toBe(600);
});

it('a drain evicts other pods although one cannot be evicted, and reports which and why', async () => {
  const { pods, deps } = node();
  const said = new Set<string>();
  const client = partOf<KubeClient>({
    evict: async ({ metadata: { name } }: Pod) => {
      if (name === 'a') return { outcome: 'refused', message: 'This pod has more than one PodDisruptionBudget' };
      pods.delete(name);
      return { outcome: 'evicted' };
    },
  });
  const report = (line: string) => void said.add(line);
  await drain({ ...deps, client, report }, 'n', MINUTES_10, new AbortController().signal);
  expect([...pods.keys()]).toEqual(['a']);
  expect([...said][0]).toContain('shop/a cannot be evicted: This pod has more than one PodDisruptionBudget');
});

it('a drain reports changing webhook errors once a minute, truncated for a condition', async () => {
  const { deps } = node();
  let asked = 0;
  const client = { evict: async () => ({ outcome: 'refused', message: `no ${asked++} ${'x'.repeat(1000)}` }) };
  const said = new Set<string>();
  const report = (line: string) => void said.add(line);
  await drain({ ...deps, client: client as never, report }, 'n', MINUTES_10, new AbortController().signal);
  expect(asked).toBeGreaterThan(100);
  expect(said.size).toBeLessThanOrEqual(12);
  for (const line of said) expect(line.length).toBeLessThan(400);
});

it('a drain calls a hanging webhook for no pod after the deadline', async () => {
  const { deps } = node();
  let now = START;
  const client = {
    evict: async () => {
      now += 400_000;
      return { outcome: 'refused', message: 'context deadline exceeded' };
    },
  };
  await drain(
    { ...deps, now: () => new Date(now), client: client as never },
    'n',
    MINUTES_10,
    new AbortController().signal,
  );
  expect((now - START) / 400_000).toBe(2);
});

import { expect, it } from 'vitest';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { Node } from '../../../operator/kube/resources.ts';
import { followPool } from '../../../providers/nodes.ts';

const pool = { labels: { tier: 'web' }, taints: [{ key: 'dedicated', effect: 'NoSchedule' as const }] };
const nothing = { labels: {}, taints: [] };

/** An API server with one node that its kubelet writes just before each of the first `writes` patches. */
function server(writes: number) {
  let version = 1;
  const node = (): Node => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'one', resourceVersion: String(version) },
    spec: { taints: [{ key: 'of-the-kubelet', value: String(version), effect: 'NoSchedule' }] },
  });
  const patches: unknown[] = [];
  const shoot = {
    async getOrUndefined<T>() {
      return node() as T;
    },
    async mergePatch<T>(_resource: unknown, name: string, _namespace: unknown, patch: unknown) {
      if (version <= writes) version++;
      const { metadata } = patch as { metadata: { resourceVersion: string } };
      if (metadata.resourceVersion !== String(version))
        throw new KubeApiError(`PATCH nodes/${name}`, 409, { reason: 'Conflict' });
      patches.push(patch);
      return node() as T;
    },
  };
  return { shoot, patches, node };
}

it('followPool applies labels and taints despite concurrent writes of the kubelet, and keeps its taints', async () => {
  const { shoot, patches, node } = server(2);
  await followPool(shoot as never, [node()], pool, nothing);
  expect(patches).toEqual([
    {
      metadata: { resourceVersion: '3', labels: { tier: 'web' } },
      spec: { taints: [{ key: 'of-the-kubelet', value: '3', effect: 'NoSchedule' }, ...pool.taints] },
    },
  ]);
});

it('followPool leaves a node with constant conflicts to the next reconciliation', async () => {
  const { shoot, node } = server(100);
  await expect(followPool(shoot as never, [node()], pool, nothing)).rejects.toMatchObject({ isConflict: true });
});

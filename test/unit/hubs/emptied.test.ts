import { describe, expect, it } from 'vitest';
import { TwoSides } from '../../../operator/controllers/membership/two-sides.ts';
import { MANIFESTWORKS } from '../../../operator/hubs/managed-cluster.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import { type KubeObject, NAMESPACES, type Resource } from '../../../operator/kube/resources.ts';

const LABELS = { 'open-cluster-management.io/cluster-name': 'shop--demo' };
const place = { on: 'hub' as const, resource: NAMESPACES, name: 'shop--demo', labels: LABELS };
const work = (namespace: string, name: string): KubeObject => ({
  apiVersion: 'work.open-cluster-management.io/v1',
  kind: 'ManifestWork',
  metadata: { name, namespace, uid: `${namespace}/${name}`, finalizers: ['agent'] },
});

/** A hub that ends what is deleted and has no finalizers. @returns names of the ManifestWorks that are left */
async function emptied(namespace: Partial<KubeObject['metadata']>): Promise<string[]> {
  const metadata = { name: 'shop--demo', labels: LABELS, deletionTimestamp: '2026-11-22T12:00:00Z', ...namespace };
  const works = [work('shop--demo', 'web'), work('shop--demo', 'db'), work('shop--other', 'web')];
  const find = (name: string, within?: string) =>
    works.find((one) => one.metadata.name === name && one.metadata.namespace === within);
  const hub: Partial<KubeClient> = {
    getOrUndefined: async ({ kind }: Resource, name: string, within?: string) =>
      (kind === 'Namespace' ? { apiVersion: 'v1', kind, metadata } : find(name, within)) as any,
    list: async (_: Resource, { namespace: within }: any = {}) =>
      ({ items: works.filter((one) => one.metadata.namespace === within) }) as any,
    delete: async (_: Resource, name: string, within?: string) => {
      find(name, within)!.metadata.deletionTimestamp = '2026-11-22T12:00:01Z';
      return true;
    },
    mergePatch: async (_: Resource, name: string, within: string | undefined, patch: any) => {
      expect(patch.metadata.uid).toBe(`${within}/${name}`);
      works.splice(works.indexOf(find(name, within)!), 1);
      return {} as any;
    },
  };
  const cluster = { namespace: 'shop', name: 'demo', uid: 'uid' };
  const owner = { garden: 'garden', membership: 'uid', hub: 'fleet', cluster, identity: 'member' };
  const sides = new TwoSides({ hub: hub as KubeClient }, owner, () => new Date());
  await sides.empty(place, MANIFESTWORKS, AbortSignal.timeout(60_000));
  return works.map((one) => `${one.metadata.namespace}/${one.metadata.name}`);
}

describe('a forced leave', () => {
  const ALL = ['shop--demo/web', 'shop--demo/db', 'shop--other/web'];

  it('deletes contents of the recorded namespace including finalizers, and nothing elsewhere', async () => {
    expect(await emptied({})).toEqual(['shop--other/web']);
  });

  it('leaves contents of a foreign namespace, or of one that is not being deleted, alone', async () => {
    expect(await emptied({ labels: {} })).toEqual(ALL);
    expect(await emptied({ deletionTimestamp: undefined as never })).toEqual(ALL);
  });
});

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Informer } from '../../../operator/kube/informer.ts';
import { SECRETS, type Secret } from '../../../operator/kube/resources.ts';
import { type MeshRequest, rangesIn, rangesOverlap } from '../../../operator/mesh/allocate.ts';
import { MESH_RECEIPTS, Meshes } from '../../../operator/mesh/meshes.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';

const PATIENCE_MS = 120_000;

describe('two operators that allocate ranges of one mesh', () => {
  let server: SharedApiserver;
  const caches: Informer<Secret>[] = [];
  const gone = new Set<string>();
  beforeAll(async () => {
    server = await sharedApiserver();
  });
  afterAll(async () => {
    await Promise.all(caches.map((cache) => cache.stop()));
    await server?.leave();
  });

  async function operator(): Promise<Meshes> {
    const { client, namespace } = server;
    const cache = new Informer<Secret>(client, SECRETS, { fieldSelector: MESH_RECEIPTS, namespace });
    cache.start();
    caches.push(cache);
    await cache.whenSynced(AbortSignal.timeout(PATIENCE_MS));
    return new Meshes(client, namespace, cache, {
      taken: async () => ({ ranges: [], ids: [] }),
      isThere: (key) => !gone.has(key),
    });
  }
  const request = (name: string): MeshRequest => ({
    mesh: 'default',
    profile: 'local',
    cluster: { namespace: 'shop', name, uid: `uid-${name}` },
    has: {},
    written: [],
    wants: ['pods', 'services'],
    pools: { pods: ['10.0.0.0/14'], services: ['10.0.0.0/14'] },
    reserved: [],
    prefixes: { pods: 18, services: 20 },
    highestID: 255,
  });

  it('never allocate anything twice, and keep allocations', async () => {
    const [one, other] = [await operator(), await operator()];
    const results = [];
    // Each waits for its own writes; the other's come in between.
    for (let round = 0; round < 4; round++)
      results.push(...(await Promise.all([one.allocate(request(`a${round}`)), other.allocate(request(`b${round}`))])));
    const entries = results.map((result) => {
      if (result.refused) throw new Error(result.refused.message);
      return result.entry;
    });
    expect(new Set(entries.map(({ id }) => id)).size).toBe(8);
    const ranges = rangesIn(entries);
    expect(ranges).toHaveLength(16);
    ranges.forEach((range, index) => {
      for (const another of ranges.slice(index + 1))
        expect(rangesOverlap(range, another), `${range} ${another}`).toBe(false);
    });

    const restarted = await operator();
    expect(restarted.entry('shop/a0', 'uid-a0')).toEqual({ mesh: 'default', entry: entries[0] });
    expect(restarted.entry('shop/a0', 'another')).toBeUndefined();
    const again = await restarted.allocate(request('a0'));
    expect(again).toMatchObject({ entry: entries[0] });
  });

  it('record or release a hundred clusters in a few writes', async () => {
    const meshes = await operator();
    const { client, namespace } = server;
    const versions = new Set<string | undefined>();
    const watched = caches.at(-1)!;
    watched.onChange(({ object }) => versions.add(object.metadata.resourceVersion));
    const before = (await client.get<Secret>(SECRETS, 'mesh-default', namespace)).metadata.resourceVersion;
    const many = Array.from({ length: 100 }, (_, index) => request(`many${index}`));
    const results = await Promise.all(
      many.map((one) => meshes.allocate({ ...one, prefixes: { pods: 24, services: 24 } })),
    );
    expect(new Set(results.map((result) => result.refused ?? result.entry.id)).size).toBe(100);
    await Promise.all(many.map(({ cluster }) => meshes.release(`shop/${cluster.name}`)));
    versions.delete(before);
    expect(versions.size).toBeLessThanOrEqual(4);
    for (const { cluster } of many) expect(meshes.entry(`shop/${cluster.name}`, cluster.uid)).toBeUndefined();
  });

  it('write nothing for clusters outside of a mesh, and release what a deleted one had', async () => {
    const meshes = await operator();
    const { client, namespace } = server;
    const version = async () => (await client.get<Secret>(SECRETS, 'mesh-default', namespace)).metadata.resourceVersion;
    const before = await version();
    await meshes.release('shop/unknown');
    await meshes.allocate(request('a0'));
    expect(await version()).toBe(before);

    await meshes.release('shop/a0');
    expect(meshes.entry('shop/a0', 'uid-a0')).toBeUndefined();
    expect(await version()).not.toBe(before);
    // By force, while no operator ran.
    gone.add('shop/a1');
    await meshes.allocate(request('c'));
    expect(meshes.entry('shop/a1', 'uid-a1')).toBeUndefined();
    expect(meshes.entry('shop/b1', 'uid-b1')).toBeDefined();
  });

  it('allocate nothing while the record is unreadable', async () => {
    const meshes = await operator();
    const { client, namespace } = server;
    await client.mergePatch(SECRETS, 'mesh-default', namespace, { data: { record: 'e30=' } });
    await expect(meshes.allocate(request('d'))).rejects.toThrow('does not say what clusters of the mesh were given');
  });
});

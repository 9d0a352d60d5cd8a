import { describe, expect, it } from 'vitest';
import { APPLIED_ANNOTATION, Applier, includesFields, type knownBy } from '../../../operator/kube/applier.ts';
import type { KubeClient } from '../../../operator/kube/client.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';
import { partOf } from '../../kit/builders/partial.ts';

type Known = ReturnType<typeof knownBy>;

const manifest: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'n' },
  data: { key: 'value' },
};

function testbed(known: () => Known) {
  const writes: KubeObject[] = [];
  const client = partOf<KubeClient>({
    apply: async (object: KubeObject) => {
      writes.push(object);
      return { ...object, metadata: { ...object.metadata, resourceVersion: String(10 + writes.length) } };
    },
  });
  return { writes, applier: new Applier(client, known) };
}

describe('Applier', () => {
  it('writes once, and not again while the cache is behind', async () => {
    const { writes, applier } = testbed(() => ({ live: undefined, seen: '5' }));
    expect((await applier.apply(manifest)).changed).toBe(true);
    expect((await applier.apply(manifest)).changed).toBe(false);
    expect(writes).toHaveLength(1);
  });

  it('creates an object again that somebody deleted', async () => {
    let seen = '5';
    const { writes, applier } = testbed(() => ({ live: undefined, seen }));
    await applier.apply(manifest);
    seen = '20';
    await applier.apply(manifest);
    expect(writes).toHaveLength(2);
  });

  it('drops answers to writes that the cache has shown', async () => {
    let seen = '5';
    const { writes, applier } = testbed(() => ({ live: undefined, seen }));
    for (let i = 0; i < 1000; i++) {
      await applier.apply({ ...manifest, metadata: { ...manifest.metadata, name: `a${i}` } });
      // The cache is ten writes behind.
      seen = String(writes.length);
    }
    expect(applier.kept).toBeLessThan(100);
    const last = { ...manifest, metadata: { ...manifest.metadata, name: 'a999' } };
    expect((await applier.apply(last)).changed).toBe(false);
  });

  it('restores a changed field, and leaves fields that the server added', async () => {
    let live: KubeObject | undefined;
    const { writes, applier } = testbed(() => ({ live }));
    live = (await applier.apply(manifest)).object;
    live = { ...live, metadata: { ...live.metadata, labels: { added: 'by others' } }, immutable: false };
    expect((await applier.apply(manifest)).changed).toBe(false);
    live = { ...live, data: { key: 'other' } };
    expect((await applier.apply(manifest)).changed).toBe(true);
    expect(writes).toHaveLength(2);
  });

  it('notices by its hash that the manifest dropped a field', async () => {
    const { applier } = testbed(() => ({
      live: {
        ...manifest,
        metadata: { ...manifest.metadata, annotations: { [APPLIED_ANNOTATION]: 'of an older manifest' } },
      },
    }));
    expect((await applier.apply(manifest)).changed).toBe(true);
  });
});

describe('includes', () => {
  it.each([
    [{ a: 1, b: 2 }, { a: 1 }, true],
    [{ a: [{ x: 1, y: 2 }] }, { a: [{ x: 1 }] }, true],
    [{ a: [1, 2] }, { a: [1] }, false],
    [{}, { a: '', b: false, c: [], d: {} }, true],
    [{ a: 1 }, { a: '1' }, false],
  ])('%j includes %j: %s', (whole, part, expected) => {
    expect(includesFields(whole, part)).toBe(expected);
  });
});

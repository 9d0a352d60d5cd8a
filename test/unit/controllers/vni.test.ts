import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { allocateVNI, VNI_ANNOTATION } from '../../../operator/controllers/shoot/vni.ts';

const namespace = (name: string, vni?: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, annotations: vni === undefined ? {} : { [VNI_ANNOTATION]: String(vni) } },
});
const cache = (...objects: KubeObject[]) => ({
  get: (name: string) => objects.find(({ metadata }) => metadata.name === name),
  list: () => objects,
});
const NOBODY = new Map<string, number>();

describe('allocateVNI', () => {
  const first = allocateVNI('a', cache(), NOBODY);

  it("returns the same for the same cluster, within VXLAN's range", () => {
    expect(allocateVNI('a', cache(), NOBODY)).toBe(first);
    expect(first).toBeGreaterThan(0);
    expect(first).toBeLessThan(2 ** 24);
  });

  it.each([
    ['is on another namespace', cache(namespace('b', first)), NOBODY],
    ['was given to another cluster a moment ago', cache(), new Map([['b', first]])],
  ])('takes the next when that %s', (_why, namespaces, reserved) => {
    expect(allocateVNI('a', namespaces, reserved)).toBe(first + 1);
  });

  it.each([
    ['its namespace bears', cache(namespace('a', 7)), NOBODY],
    ['it was given before its namespace was made', cache(namespace('a')), new Map([['a', 7]])],
  ])('stays with the one that %s', (_why, namespaces, reserved) => {
    expect(allocateVNI('a', namespaces, reserved)).toBe(7);
  });

  it('does not read all namespaces for one with its own', () => {
    const namespaces = {
      get: () => namespace('a', 7),
      list: (): KubeObject[] => expect.fail('a thousand clusters would look at a million namespaces'),
    };
    expect(allocateVNI('a', namespaces, NOBODY)).toBe(7);
  });
});

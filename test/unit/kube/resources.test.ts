import { describe, expect, it } from 'vitest';
import {
  DEPLOYMENTS,
  keyOf,
  NODES,
  PODS,
  pathOf,
  resourceOf,
  SHOOTS,
  splitKey,
} from '../../../operator/kube/resources.ts';

describe('pathOf', () => {
  const cases: [string, string][] = [
    [pathOf(PODS), '/api/v1/pods'],
    [pathOf(PODS, 'n'), '/api/v1/namespaces/n/pods'],
    [pathOf(PODS, 'n', 'p', 'log'), '/api/v1/namespaces/n/pods/p/log'],
    [pathOf(DEPLOYMENTS, 'n', 'd'), '/apis/apps/v1/namespaces/n/deployments/d'],
    [pathOf(SHOOTS, 'n', 's', 'status'), '/apis/multi-cluster.demo.io/v1/namespaces/n/shoots/s/status'],
    [pathOf(NODES, 'ignored', 'n1'), '/api/v1/nodes/n1'],
    [pathOf(NODES, undefined, 'a/b?c'), '/api/v1/nodes/a%2Fb%3Fc'],
  ];
  for (const [path, expected] of cases) it(expected, () => expect(path).toBe(expected));

  it('throws for a path that would address more than one object', () => {
    expect(() => pathOf(PODS, 'n', '')).toThrow('empty name');
    expect(() => pathOf(PODS, undefined, 'p')).toThrow('namespace is needed');
  });
});

describe('resourceOf', () => {
  it('finds kinds by apiVersion and kind', () => {
    expect(resourceOf({ apiVersion: 'apps/v1', kind: 'Deployment' })).toBe(DEPLOYMENTS);
    expect(resourceOf({ apiVersion: 'v1', kind: 'Pod' })).toBe(PODS);
  });
  it('throws an error with advice for other kinds', () => {
    expect(() => resourceOf({ apiVersion: 'a/v1', kind: 'B' })).toThrow('no resource is known for a/v1 B');
    expect(() => resourceOf({ apiVersion: 'multi-cluster.demo.io/v9', kind: 'Shoot' })).toThrow('this build knows');
  });
});

it('splitKey reverses keyOf', () => {
  for (const metadata of [
    { namespace: 'n', name: 'a' },
    { namespace: '', name: 'a' },
  ]) {
    expect(splitKey(keyOf({ metadata }))).toEqual(metadata);
  }
});

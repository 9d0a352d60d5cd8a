import { expect, it } from 'vitest';
import { exportedNamesOf, importedFrom, SOURCE_CLUSTER } from '../../../operator/controllers/membership/exports.ts';
import type { KubeObject } from '../../../operator/kube/resources.ts';

const object = (name: string, more: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Any',
  metadata: { name, namespace: 'web' },
  ...more,
});
const slice = (name: string, cluster: string) =>
  object(name, { metadata: { name, namespace: 'web', labels: { [SOURCE_CLUSTER]: cluster } } });

it("exported services are found by the member's hub name, UID and cluster-set names", () => {
  const property = (name: string, value: string) => object(name, { metadata: { name }, spec: { value } });
  const names = exportedNamesOf({ name: 'shop--demo', id: 'uid' }, [
    property('cluster.clusterset.k8s.io', 'demo-east'),
    property('example.com/other', 'not-a-name'),
  ]);
  expect([...names]).toEqual(['shop--demo', 'uid', 'demo-east']);
});

it('exported services are in use where a ServiceImport or EndpointSlice names them, and nowhere else', () => {
  const imports = [
    object('both', { status: { clusters: [{ cluster: 'other' }, { cluster: 'shop--demo' }] } }),
    object('theirs', { status: { clusters: [{ cluster: 'other' }] } }),
    object('new', {}),
  ];
  const slices = [slice('web-1', 'demo-east'), slice('web-2', 'other')];
  expect(importedFrom(new Set(['shop--demo', 'demo-east']), imports, slices)).toEqual([
    'ServiceImport web/both of the hub',
    'EndpointSlice web/web-1 of the hub',
  ]);
});

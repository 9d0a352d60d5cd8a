import { expect, it } from 'vitest';
import { ownWork, ownWorkIn } from '../../../operator/controllers/membership/own-work.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import type { KubeObject, Pod } from '../../../operator/kube/resources.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { reader } from './hub-members.ts';

const of = (kind: string, name: string, more: object, namespace = 'shop'): KubeObject => ({
  apiVersion: 'v1',
  kind,
  ...more,
  metadata: { name, namespace },
});
const pod = (name: string, more: Partial<Pod['metadata']> = {}, namespace = 'shop') =>
  buildPod({ metadata: { name, namespace, ...more }, spec: { nodeName: 'one', containers: [] } });

it("a member's own work is pods, bound volumes and load balancers of people, without Kubernetes' own", () => {
  const node = [{ apiVersion: 'v1', kind: 'DaemonSet', name: 'log', uid: 'x' }];
  const inside = {
    pods: [pod('db-0'), pod('log-1', { ownerReferences: node }), pod('dns', {}, 'kube-system')],
    claims: [
      of('PersistentVolumeClaim', 'db', { status: { phase: 'Bound' } }),
      of('PersistentVolumeClaim', 'registry', { status: { phase: 'Bound' } }, 'kube-system'),
      of('PersistentVolumeClaim', 'new', { status: { phase: 'Pending' } }),
    ],
    services: [
      of('Service', 'web', { spec: { type: 'LoadBalancer' } }),
      of('Service', 'internal', { spec: { type: 'ClusterIP' } }),
      of('Service', 'vpn', { spec: { type: 'LoadBalancer' } }, 'kube-system'),
    ],
  };
  expect(ownWork({}, inside)).toEqual([
    'PersistentVolumeClaim shop/db',
    'Pod shop/db-0',
    'Service shop/web with a load balancer',
  ]);
});

it("a member's own work excludes defaults of Kueue and clouds, or what the Hub names", () => {
  const inside = {
    pods: [pod('kueue', {}, 'kueue-system'), pod('prometheus', {}, 'monitoring')],
    claims: [of('PersistentVolumeClaim', 'prometheus', { status: { phase: 'Bound' } }, 'monitoring')],
    services: [of('Service', 'prometheus', { spec: { type: 'LoadBalancer' } }, 'monitoring')],
  };
  expect(ownWork({}, { ...inside, claims: [], services: [] })).toEqual(['Pod monitoring/prometheus']);
  expect(ownWork({ systemNamespaces: ['monitoring'] }, inside)).toEqual(['Pod kueue-system/kueue']);
});

it("a member's own work is not waited for without the right to read it", async () => {
  const refused = new KubeApiError('GET services', 403, { reason: 'Forbidden' });
  const inside = { ...reader({}), list: () => Promise.reject(refused) };
  expect(await ownWorkIn({}, inside, [pod('db-0')])).toEqual(['Pod shop/db-0']);
});

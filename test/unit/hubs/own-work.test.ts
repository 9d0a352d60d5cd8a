import { expect, it } from 'vitest';
import { ownWork } from '../../../operator/controllers/membership/own-work.ts';
import type { KubeObject, Pod } from '../../../operator/kube/resources.ts';

const of = (kind: string, name: string, more: object, namespace = 'shop'): KubeObject => ({
  apiVersion: 'v1',
  kind,
  ...more,
  metadata: { name, namespace },
});
const pod = (name: string, more: Partial<Pod['metadata']> = {}, namespace = 'shop') =>
  ({ metadata: { name, namespace, ...more }, spec: { nodeName: 'one', containers: [] } }) as unknown as Pod;

it('is pods, bound volumes and load balancers of people, and nothing of Kubernetes itself', () => {
  const node = [{ apiVersion: 'v1', kind: 'DaemonSet', name: 'log', uid: 'x' }];
  const inside = {
    pods: [pod('db-0'), pod('log-1', { ownerReferences: node }), pod('dns', {}, 'kube-system')],
    claims: [
      of('PersistentVolumeClaim', 'db', { status: { phase: 'Bound' } }),
      of('PersistentVolumeClaim', 'new', { status: { phase: 'Pending' } }),
    ],
    services: [
      of('Service', 'web', { spec: { type: 'LoadBalancer' } }),
      of('Service', 'internal', { spec: { type: 'ClusterIP' } }),
      of('Service', 'vpn', { spec: { type: 'LoadBalancer' } }, 'kube-system'),
    ],
  };
  expect(ownWork(inside)).toEqual([
    'PersistentVolumeClaim shop/db',
    'Pod shop/db-0',
    'Service shop/web with a load balancer',
  ]);
});

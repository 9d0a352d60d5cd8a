import type { KubeObject } from '../../../operator/api/meta.ts';
import { etcdManifests } from '../../../operator/shoot/etcd.ts';
import { kubeAPIServer } from '../../../operator/shoot/kube-apiserver.ts';
import { kubeControllerManager } from '../../../operator/shoot/kube-controller-manager.ts';
import { kubeScheduler } from '../../../operator/shoot/kube-scheduler.ts';
import { issueShootPKI, type PKIData, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import {
  adminAccess,
  coreDNS,
  kubernetesEndpoints,
  machineAccess,
  viewerAccess,
} from '../../../operator/shoot/system-components.ts';
import type { ControlPlane } from '../../../operator/shoot/values.ts';

export const NOW = new Date('2026-01-01T00:00:00Z');

/** The values of a control plane of one member, or of `members`. */
export function controlPlane(members = 1): ControlPlane {
  const ordinals = Array.from({ length: members }, (_, ordinal) => ordinal);
  return {
    shoot: { name: 'demo', namespace: 'shop' },
    namespace: 'shoot--shop--demo',
    version: '1.36.3',
    replicas: members,
    networks: { pods: '100.64.0.0/16', services: '100.96.0.0/16' },
    addresses: { apiServer: '10.1.0.10', etcd: ordinals.map((ordinal) => `10.1.0.${20 + ordinal}`) },
    etcd: { replicas: members, initialised: false, endpoints: ordinals, storageClassName: 'local' },
  };
}

/** Keys and certificates for `values`, issued at NOW. */
export async function pkiOf(values: ControlPlane): Promise<PKIData> {
  const parameters = pkiParameters(values);
  return issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
}

/** All objects of the control plane in the seed but the namespace, the Services and the Secret with the keys. */
export const controlPlaneObjects = (values: ControlPlane, keys: PKIData): KubeObject[] => [
  ...etcdManifests(values, keys),
  ...kubeAPIServer(values, keys),
  ...kubeControllerManager(values, keys),
  ...kubeScheduler(values, keys),
];

/** What a new shoot with nodes gets. */
export const systemComponents = (values: ControlPlane, dnsReplicas: number): KubeObject[] => [
  ...adminAccess(),
  ...viewerAccess(),
  ...machineAccess(),
  kubernetesEndpoints(values),
  ...coreDNS(values, dnsReplicas),
];

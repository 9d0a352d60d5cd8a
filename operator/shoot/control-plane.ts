import type { KubeObject } from '../api/meta.ts';
import { etcd } from './etcd.ts';
import { kubeAPIServer } from './kube-apiserver.ts';
import { kubeControllerManager } from './kube-controller-manager.ts';
import { kubeScheduler } from './kube-scheduler.ts';
import { PKI_SECRET, type PKIData } from './pki.ts';
import { componentSecret } from './pod.ts';
import type { ControlPlane } from './values.ts';

/** The Secret with all keys of the shoot, to be stored before anything is made from it. */
export const pkiSecret = (values: ControlPlane, pki: PKIData): KubeObject => componentSecret(values, PKI_SECRET, pki);

/** All objects of the control plane in the seed but the namespace, the Services and the Secret of pkiSecret. */
export function controlPlaneObjects(values: ControlPlane, pki: PKIData): KubeObject[] {
  return [
    ...etcd(values, pki),
    ...kubeAPIServer(values, pki),
    ...kubeControllerManager(values, pki),
    ...kubeScheduler(values, pki),
  ];
}

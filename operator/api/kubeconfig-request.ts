import { GROUP } from './group.ts';

/** Role of a kubeconfig that a person requests. */
export type KubeconfigRole = 'admin' | 'viewer';
export const KUBECONFIG_ROLES: readonly KubeconfigRole[] = ['admin', 'viewer'];

/**
 * `spec.signerName` of CertificateSigningRequests for kubeconfigs. Labels `workerCluster` and `workerClusterNamespace`
 * name the cluster.
 */
export const KUBECONFIG_SIGNERS: Readonly<Record<KubeconfigRole, string>> = {
  admin: `${GROUP}/admin-kubeconfig`,
  viewer: `${GROUP}/viewer-kubeconfig`,
};

/**
 * Virtual subresources of WorkerClusters for RBAC: a person who may `create` one of a cluster gets such a kubeconfig.
 */
export const KUBECONFIG_SUBRESOURCES: Readonly<Record<KubeconfigRole, string>> = {
  admin: 'adminkubeconfig',
  viewer: 'viewerkubeconfig',
};

/** Lifetime of a requested certificate, in seconds. Kubernetes' minimum is ten minutes; `usual` is Gardener's. */
export const KUBECONFIG_SECONDS = { least: 600, usual: 3600, most: 24 * 3600 } as const;

/**
 * Longest `spec.request` (base64) of a kubeconfig request, in characters. A request with an EC key has a fiftieth of
 * that.
 */
export const MAX_KUBECONFIG_REQUEST = 16 * 1024;

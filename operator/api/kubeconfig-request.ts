import { GROUP } from './group.ts';

/** What somebody may be in a cluster who asks for a kubeconfig of it. */
export type KubeconfigRole = 'admin' | 'viewer';
export const KUBECONFIG_ROLES: readonly KubeconfigRole[] = ['admin', 'viewer'];

/**
 * `spec.signerName` of the CertificateSigningRequests by which people ask for kubeconfigs. The labels `workerCluster` and
 * `workerClusterNamespace` say of which cluster.
 */
export const KUBECONFIG_SIGNERS: Readonly<Record<KubeconfigRole, string>> = {
  admin: `${GROUP}/admin-kubeconfig`,
  viewer: `${GROUP}/viewer-kubeconfig`,
};

/** Subresources of WorkerClusters that RBAC alone knows: whoever may `create` one of a cluster is given such a kubeconfig. */
export const KUBECONFIG_SUBRESOURCES: Readonly<Record<KubeconfigRole, string>> = {
  admin: 'adminkubeconfig',
  viewer: 'viewerkubeconfig',
};

/** For how long a certificate is asked for, in seconds. Kubernetes takes no request for less than ten minutes; usual is what Gardener gives. */
export const KUBECONFIG_SECONDS = { least: 600, usual: 3600, most: 24 * 3600 } as const;

/** Most characters of `spec.request` (base64) in a request for a kubeconfig. A request with an EC key has a fiftieth of that. */
export const MAX_KUBECONFIG_REQUEST = 16 * 1024;

import { LABELS } from '../../api/group.ts';
import {
  KUBECONFIG_ROLES,
  KUBECONFIG_SECONDS,
  KUBECONFIG_SIGNERS,
  KUBECONFIG_SUBRESOURCES,
  type KubeconfigRole,
} from '../../api/kubeconfig-request.ts';
import type { Reason } from '../../api/reasons.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { CertificateSigningRequest } from '../../kube/resources.ts';

/** A parsed request: the API server sets the user, the rest is the requester's. */
export interface KubeconfigRequest {
  readonly user: string;
  readonly role: KubeconfigRole;
  /** Namespace of the WorkerCluster. */
  readonly namespace: string;
  readonly name: string;
  readonly seconds: number;
}

/** Why a request is refused: a reason, and a sentence. */
export interface KubeconfigRefusal {
  readonly reason: Reason<'CertificateSigningRequest', 'Denied'>;
  readonly message: string;
}

/** Most requests per requester within RECENT_MS, including refused ones. */
export const MOST_RECENT = 300;
/** Most stored requests per requester: further ones are deleted unanswered, so that a flood does not fill etcd. */
export const MOST_STORED = 2 * MOST_RECENT;
/** How long a request is kept. Its certificate is useless without the key. */
export const RECENT_MS = 10 * 60_000;

const MAX_USER = 512;
const SERVICE_ACCOUNT = 'system:serviceaccount:';
const USAGES = ['client auth', 'digital signature', 'key encipherment'];

/** Requested role; undefined: another signer. Pure. */
export const roleOf = ({ spec }: CertificateSigningRequest): KubeconfigRole | undefined =>
  KUBECONFIG_ROLES.find((role) => KUBECONFIG_SIGNERS[role] === spec.signerName);

/**
 * Key under which requests are counted and queued: a user, or all ServiceAccounts of a namespace, which its tenant can
 * create at will. From the API server's field, not from labels. Without '/'. Pure.
 */
export function requesterOf({ spec: { username = '' } }: CertificateSigningRequest): string {
  if (!username.startsWith(SERVICE_ACCOUNT)) return `user:${encodeURIComponent(username.toWellFormed())}`;
  return `namespace:${encodeURIComponent(username.slice(SERVICE_ACCOUNT.length).split(':')[0]!.toWellFormed())}`;
}

/** Whether the request only remains to be deleted. Pure. */
export const isAnswered = ({ status }: CertificateSigningRequest): boolean =>
  status?.certificate !== undefined ||
  (status?.conditions ?? []).some(({ type }) => type === 'Denied' || type === 'Failed');

/** When the request is deleted. Pure. */
export const forgetAt = ({ metadata }: CertificateSigningRequest): number =>
  Date.parse(metadata.creationTimestamp ?? '') + RECENT_MS;

/**
 * The parsed request, or why it is refused. Pure. @param recent requests of the requester lately, including this one
 */
export function readRequest(
  csr: CertificateSigningRequest,
  role: KubeconfigRole,
  recent: number,
): KubeconfigRequest | KubeconfigRefusal {
  const { username: user = '', usages = [], expirationSeconds: seconds = KUBECONFIG_SECONDS.usual, request } = csr.spec;
  const namespace = csr.metadata.labels?.[LABELS.workerClusterNamespace] ?? '';
  const name = csr.metadata.labels?.[LABELS.workerCluster] ?? '';
  const { least, most } = KUBECONFIG_SECONDS;
  if (recent > MOST_RECENT) {
    const limit = `${MOST_RECENT} requests in ${RECENT_MS / 60_000} minutes`;
    const who = user.startsWith(SERVICE_ACCOUNT) ? `ServiceAccounts of the namespace of ${user} have` : `${user} has`;
    return refusal('TooManyRequests', `${who} made more than ${limit}: wait, and ask less often`);
  }
  if (name === '' || namespace === '')
    return refusal(
      'NoCluster',
      `the labels ${LABELS.workerCluster} and ${LABELS.workerClusterNamespace} name no cluster`,
    );
  if (user === '' || user.length > MAX_USER || hasControls(user))
    return refusal('NoUser', `the name of whoever asks is empty, longer than ${MAX_USER} characters, or no text`);
  if (!usages.includes('client auth') || !usages.every((usage) => USAGES.includes(usage)))
    return refusal('WrongUsages', `usages must be "client auth", and of others only ${USAGES.slice(1).join(' and ')}`);
  if (seconds < least || seconds > most) {
    const range = `between ${least / 60} minutes and ${most / 3600} hours`;
    return refusal('WrongDuration', `a kubeconfig lasts ${range}; spec.expirationSeconds asks for ${seconds}`);
  }
  if (request === '') return refusal('TooLarge', 'the certificate request is larger than the operator reads');
  return { user, role, namespace, name, seconds };
}

/** Facts about the requested cluster. */
interface ClusterView {
  /** Whether RBAC allows such a kubeconfig. */
  readonly allowed: boolean;
  readonly cluster: WorkerCluster | undefined;
  readonly shoot: Shoot | undefined;
}

/**
 * Why a request is refused; undefined: it is granted. Pure. Without permission, the answer does not reveal whether the
 * cluster exists.
 */
export function kubeconfigRefusalOf(
  { user, role, namespace, name }: KubeconfigRequest,
  view: ClusterView,
): KubeconfigRefusal | undefined {
  const { allowed, cluster, shoot } = view;
  const what = `WorkerCluster ${namespace}/${name}`;
  if (!allowed) {
    const verb = `create workerclusters/${KUBECONFIG_SUBRESOURCES[role]}`;
    return refusal('Forbidden', `${user} may not ${verb} of ${what}: ask who grants roles in namespace ${namespace}`);
  }
  if (!cluster) return refusal('NotFound', `there is no ${what}`);
  const mode = cluster.status?.mode ?? cluster.spec.mode;
  if (mode === 'Managed')
    return refusal(
      'NotOurs',
      `the cloud keeps the keys of ${what}: use the cloud's own kubeconfig, or its Secret ${name}-kubeconfig`,
    );
  if (mode === 'Attached')
    return refusal('NotOurs', `${what} is attached, and Coppice has no keys of it: ask who made that cluster`);
  if (cluster.metadata.deletionTimestamp) return refusal('Deleting', `${what} is being deleted`);
  const isOf = shoot?.metadata.ownerReferences?.some(({ uid }) => uid === cluster.metadata.uid) ?? false;
  if (!isOf || !shoot?.status?.seedName)
    return refusal('NotReady', `${what} has no control plane yet: wait until it has`);
  return undefined;
}

/** User name in the cluster: never one of Kubernetes or Coppice. */
export const userInCluster = (user: string): string => `garden:${user}`;

const refusal = (reason: KubeconfigRefusal['reason'], message: string): KubeconfigRefusal => ({ reason, message });

const hasControls = (text: string): boolean => /\p{Cc}/u.test(text);

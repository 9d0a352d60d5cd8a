import { createHash } from 'node:crypto';

/** Longest name of a namespace, a Service or a label value. */
const MAX_NAME = 63;

/** First 8 hex digits of the SHA-256 of `text`. */
export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/** `text` if it fits, else its beginning and a hash of the whole, at most `max` characters. */
export function fitName(text: string, max: number = MAX_NAME): string {
  if (text.length <= max) return text;
  return `${trimmed(text, max - 9)}-${shortHash(text)}`;
}

const trimmed = (text: string, max: number): string => text.slice(0, max).replace(/-+$/, '');

/**
 * Name of a shoot outside of its own namespace: its namespace in the seed, prefix of its machines, its cloud tags.
 * `shoot--<namespace>--<name>` when that is short and unambiguous. Else both parts are cut and a hash follows a second
 * `--`, which the plain form never has, so that names are unique.
 */
export function technicalID(namespace: string, name: string): string {
  const plain = `shoot--${namespace}--${name}`;
  if (plain.length <= MAX_NAME && !namespace.includes('--') && !name.includes('--')) return plain;
  const room = MAX_NAME - 'shoot--'.length - '--'.length - '--'.length - 8;
  const shortNamespace = trimmed(namespace, Math.max(room - name.length, Math.floor(room / 2)));
  const shortName = trimmed(name, room - shortNamespace.length);
  return `shoot--${shortNamespace}--${shortName}--${shortHash(`${namespace}/${name}`)}`;
}

/**
 * Receipt Secret of a managed cluster (`namespace/name`), in the operator's namespace. The full hash: with a collision
 * a tenant could get another cluster's receipt.
 */
export const managedReceiptName = (key: string): string =>
  `managed-cluster-${createHash('sha256').update(key).digest('hex')}`;

/** Secret of a cluster's stored sizes (`namespace/name`), in the operator's namespace; the full hash, as above. */
export const decidedSizesName = (key: string): string =>
  `decided-sizes-${createHash('sha256').update(key).digest('hex')}`;

/** Lease of the leading replica, in the operator's namespace. */
export const OPERATOR_LEASE = 'coppice-operator';

/** Receipt Secret of a mesh, in the operator's namespace. */
export const meshReceiptName = (mesh: string): string => `mesh-${mesh}`;

/** Kubeconfig Secret of a cluster in the garden, with key KUBECONFIG_KEY (Cluster API's convention). */
export const kubeconfigSecretName = (cluster: string): string => `${cluster}-kubeconfig`;
export const KUBECONFIG_KEY = 'value';

/** Name prefix of ServiceAccounts for clouds: the operator requests tokens of no others in the garden. */
export const IDENTITY_ACCOUNT_PREFIX = 'wi-';

/**
 * ServiceAccount in the garden whose tokens prove a WorkloadIdentity to a cloud. Short enough for Google's limit of 127
 * bytes for subjects `system:serviceaccount:<namespace>:<name>` (google.subject,
 * cloud.google.com/iam/docs/workload-identity-federation).
 */
export const identityAccountName = (identity: string): string => fitName(`${IDENTITY_ACCOUNT_PREFIX}${identity}`, 41);

/** Host suffix of API servers that do not exist: nobody can own a name under `.invalid` (RFC 2606). */
export const NO_API_SERVER = 'no-api-server.invalid';

/** Workloads and Services of a hosted control plane, in the shoot's namespace of the seed. */
export const COMPONENTS = {
  etcd: 'etcd-main',
  apiServer: 'kube-apiserver',
  controllerManager: 'kube-controller-manager',
  scheduler: 'kube-scheduler',
  /** A container of the API server's pods, and its Secret. */
  konnectivityServer: 'konnectivity-server',
} as const;

/** etcd member number `ordinal`: its Service and its pod of the StatefulSet. */
export const etcdMemberName = (ordinal: number): string => `${COMPONENTS.etcd}-${ordinal}`;

/** ReplicaSet in the seed for the machines of a local worker pool. */
export const machineSetName = (pool: string): string => `machines-${pool}`;

/** Name of the pool that runs a SelfManaged control plane. */
export const CONTROL_PLANE_WORKER = 'control-plane';

/** Control plane machine number `ordinal` of a pool, and its node; in a seed also its pod and Service. */
export const controlPlaneMachineName = (pool: string, ordinal: number): string => `${machineSetName(pool)}-${ordinal}`;

/**
 * Secret in the seed with what a new machine of the pool needs to join: bootstrap kubeconfig, kubelet configuration.
 */
export const poolSecretName = (pool: string): string => `pool-${pool}`;

/** Machine number `index` of a pool, for providers that name machines themselves. */
export const machineName = (technical: string, pool: string, index: number): string =>
  fitName(`${technical}-${pool}-${index}`);

/** The Seed of an embedded garden. */
export const EMBEDDED_SEED = 'local';

/** PriorityClass of control plane pods in each seed. */
export const CONTROL_PLANE_PRIORITY = 'coppice-control-plane';

/**
 * Bucket for backups of a seed's control planes. Contains the seed's UID, because bucket names are global and must not
 * be guessable.
 */
export const backupBucketName = (seedUID: string): string => `coppice-backup-${seedUID}`;

/** Key prefix of a shoot's backups in the bucket. */
export const backupPrefix = (technical: string, uid: string): string => `${technical}/${uid}/`;

/** Membership of a cluster in a hub. Neither name has a dot, so the result is unambiguous. */
export const membershipName = (cluster: string, hub: string): string => `${cluster}.${hub}`;

/**
 * Receipt Secret of a membership (`namespace/name`), in the operator's namespace. The full hash, as in
 * managedReceiptName.
 */
export const membershipReceiptName = (key: string): string =>
  `membership-${createHash('sha256').update(key).digest('hex')}`;

/**
 * Receipt Secret of an attached cluster (`namespace/name`), in the operator's namespace. The full hash, as in
 * managedReceiptName.
 */
export const attachedReceiptName = (key: string): string =>
  `attached-${createHash('sha256').update(key).digest('hex')}`;

/**
 * Receipt Secret of a BurstPolicy (`namespace/name`), in the operator's namespace. The full hash, as in
 * managedReceiptName.
 */
export const burstReceiptName = (key: string): string => `burst-${createHash('sha256').update(key).digest('hex')}`;

/**
 * WorkerCluster of purchase number `purchase` of a BurstPolicy. The name depends on the policy's UID, so that a later
 * policy of the same name does not take over its clusters.
 */
export const burstClusterName = (policy: string, candidate: string, uid: string, purchase: number): string =>
  fitName(`${policy}-${candidate}-${shortHash(`${uid}/${purchase}`).slice(0, 6)}`);

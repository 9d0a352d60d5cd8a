import { createHash } from 'node:crypto';

/** Longest name of a namespace, a Service or a label value. */
const MAX_NAME = 63;

/** First 8 hex digits of the SHA-256 of `text`. */
export const shortHash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 8);

/** `text` if it fits, otherwise its beginning and a hash of the whole, `max` characters at most. */
export function fitted(text: string, max: number = MAX_NAME): string {
  if (text.length <= max) return text;
  return `${trimmed(text, max - 9)}-${shortHash(text)}`;
}

const trimmed = (text: string, max: number): string => text.slice(0, max).replace(/-+$/, '');

/**
 * The name of a shoot outside its own namespace: its namespace in the seed, its machines' prefix, its cloud tags.
 * `shoot--<namespace>--<name>` where that is short and can be read back in one way only. Otherwise both parts are cut and a
 * hash follows after a second `--`, which a plain one never has, so that no two shoots share one.
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
 * Secret in the operator's namespace with what it remembers of a managed cluster (`namespace/name`). The whole hash: whoever could find
 * another name for it would have that cluster's receipt.
 */
export const managedReceiptName = (key: string): string =>
  `managed-cluster-${createHash('sha256').update(key).digest('hex')}`;

/** Secret in the operator's namespace with what was decided for the pools of a cluster (`namespace/name`): the whole hash, as above. */
export const decidedSizesName = (key: string): string =>
  `decided-sizes-${createHash('sha256').update(key).digest('hex')}`;

/** Lease in the operator's namespace that says which replica leads. */
export const OPERATOR_LEASE = 'coppice-operator';

/** Secret in the operator's namespace with what the clusters of a mesh were given. */
export const meshReceiptName = (mesh: string): string => `mesh-${mesh}`;

/** Secret in the garden with the kubeconfig of a cluster, under key KUBECONFIG_KEY (Cluster API's convention). */
export const kubeconfigSecretName = (cluster: string): string => `${cluster}-kubeconfig`;
export const KUBECONFIG_KEY = 'value';

/** Begins the names of ServiceAccounts whose tokens are for clouds: the operator has tokens made of no others in the garden. */
export const IDENTITY_ACCOUNT_PREFIX = 'wi-';

/**
 * ServiceAccount in the garden whose tokens prove a WorkloadIdentity to a cloud. Short enough for Google, which takes subjects
 * (`system:serviceaccount:<namespace>:<name>`) of at most 127 bytes (google.subject, cloud.google.com/iam/docs/workload-identity-federation).
 */
export const identityAccountName = (identity: string): string => fitted(`${IDENTITY_ACCOUNT_PREFIX}${identity}`, 41);

/** Ends the host of API servers that do not exist: nobody can ever own a name under `.invalid` (RFC 2606). */
export const NO_API_SERVER = 'no-api-server.invalid';

/** Workloads and Services of a hosted control plane, in the shoot's namespace in the seed. */
export const COMPONENTS = {
  etcd: 'etcd-main',
  apiServer: 'kube-apiserver',
  controllerManager: 'kube-controller-manager',
  scheduler: 'kube-scheduler',
  /** A container of the API server's pods, and its Secret. */
  konnectivityServer: 'konnectivity-server',
} as const;

/** etcd member (and its Service) number `ordinal`: also the pod of the StatefulSet. */
export const etcdMemberName = (ordinal: number): string => `${COMPONENTS.etcd}-${ordinal}`;

/** ReplicaSet in the seed whose pods are the machines of a local worker pool. */
export const machineSetName = (pool: string): string => `machines-${pool}`;

/** Name of the pool of machines that run a SelfManaged control plane. */
export const CONTROL_PLANE_WORKER = 'control-plane';

/** Machine number `ordinal` of a pool that runs a control plane, and its node; in a seed also its pod and its Service. */
export const controlPlaneMachineName = (pool: string, ordinal: number): string => `${machineSetName(pool)}-${ordinal}`;

/** Secret in the seed with what a new machine of the pool needs to join: bootstrap kubeconfig, kubelet configuration. */
export const poolSecretName = (pool: string): string => `pool-${pool}`;

/** Name of machine number `index` of a pool where the provider names its machines itself. */
export const machineName = (technical: string, pool: string, index: number): string =>
  fitted(`${technical}-${pool}-${index}`);

/** The Seed that an embedded garden has. */
export const EMBEDDED_SEED = 'local';

/** The PriorityClass in each seed of the pods that control planes run in. */
export const CONTROL_PLANE_PRIORITY = 'coppice-control-plane';

/**
 * Bucket with the backups of the control planes that a seed hosts. Of the seed's UID: the name is the world's, and nobody guesses it
 * beforehand.
 */
export const backupBucketName = (seedUID: string): string => `coppice-backup-${seedUID}`;

/** Begins the keys of a shoot's backups in the bucket. */
export const backupPrefix = (technical: string, uid: string): string => `${technical}/${uid}/`;

/** Membership of a cluster in a hub. Neither name has a dot, so that it can be read back in one way only. */
export const membershipName = (cluster: string, hub: string): string => `${cluster}.${hub}`;

/** Secret in the operator's namespace with what was made for a membership (`namespace/name`). The whole hash: as for managedReceiptName. */
export const membershipReceiptName = (key: string): string =>
  `membership-${createHash('sha256').update(key).digest('hex')}`;

/** Secret in the operator's namespace with which cluster an attached one (`namespace/name`) is. The whole hash: as for managedReceiptName. */
export const attachedReceiptName = (key: string): string =>
  `attached-${createHash('sha256').update(key).digest('hex')}`;

/** Secret in the operator's namespace with what a BurstPolicy (`namespace/name`) has bought. The whole hash: as for managedReceiptName. */
export const burstReceiptName = (key: string): string => `burst-${createHash('sha256').update(key).digest('hex')}`;

/**
 * WorkerCluster that is purchase number `purchase` of a BurstPolicy. Of the policy's UID too: a policy of the same name that comes after
 * it never takes its clusters for its own.
 */
export const burstClusterName = (policy: string, candidate: string, uid: string, purchase: number): string =>
  fitted(`${policy}-${candidate}-${shortHash(`${uid}/${purchase}`).slice(0, 6)}`);

import { ALPHA_VERSION, API_VERSION, GROUP, VERSION } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';

export type { KubeObject, ObjectMeta } from '../api/meta.ts';

/** Address of a kind in the HTTP API. `group` is '' for the core group. */
export interface Resource {
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

const BY_TYPE = new Map<string, Resource>();

function define(group: string, version: string, kind: string, plural: string, namespaced: boolean): Resource {
  const resource = Object.freeze({ group, version, plural, kind, namespaced });
  BY_TYPE.set(`${apiVersionOf(resource)}/${kind}`, resource);
  return resource;
}

export const NAMESPACES = define('', 'v1', 'Namespace', 'namespaces', false);
export const NODES = define('', 'v1', 'Node', 'nodes', false);
export const PODS = define('', 'v1', 'Pod', 'pods', true);
export const SECRETS = define('', 'v1', 'Secret', 'secrets', true);
export const CONFIGMAPS = define('', 'v1', 'ConfigMap', 'configmaps', true);
export const SERVICES = define('', 'v1', 'Service', 'services', true);
define('', 'v1', 'Endpoints', 'endpoints', true);
export const EVENTS = define('', 'v1', 'Event', 'events', true);
export const PVCS = define('', 'v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', true);
export const PVS = define('', 'v1', 'PersistentVolume', 'persistentvolumes', false);
export const SERVICEACCOUNTS = define('', 'v1', 'ServiceAccount', 'serviceaccounts', true);
export const RESOURCEQUOTAS = define('', 'v1', 'ResourceQuota', 'resourcequotas', true);
define('', 'v1', 'LimitRange', 'limitranges', true);

export const DEPLOYMENTS = define('apps', 'v1', 'Deployment', 'deployments', true);
export const REPLICASETS = define('apps', 'v1', 'ReplicaSet', 'replicasets', true);
export const STATEFULSETS = define('apps', 'v1', 'StatefulSet', 'statefulsets', true);
export const DAEMONSETS = define('apps', 'v1', 'DaemonSet', 'daemonsets', true);
export const JOBS = define('batch', 'v1', 'Job', 'jobs', true);
export const PDBS = define('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets', true);
export const FLOWSCHEMAS = define('flowcontrol.apiserver.k8s.io', 'v1', 'FlowSchema', 'flowschemas', false);
define('flowcontrol.apiserver.k8s.io', 'v1', 'PriorityLevelConfiguration', 'prioritylevelconfigurations', false);
export const LEASES = define('coordination.k8s.io', 'v1', 'Lease', 'leases', true);
export const ENDPOINTSLICES = define('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices', true);
export const CSRS = define(
  'certificates.k8s.io',
  'v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  false,
);
export const SERVICECIDRS = define('networking.k8s.io', 'v1', 'ServiceCIDR', 'servicecidrs', false);
export const NETWORKPOLICIES = define('networking.k8s.io', 'v1', 'NetworkPolicy', 'networkpolicies', true);
export const STORAGECLASSES = define('storage.k8s.io', 'v1', 'StorageClass', 'storageclasses', false);
export const CSIDRIVERS = define('storage.k8s.io', 'v1', 'CSIDriver', 'csidrivers', false);
export const CSINODES = define('storage.k8s.io', 'v1', 'CSINode', 'csinodes', false);
export const VOLUMEATTACHMENTS = define('storage.k8s.io', 'v1', 'VolumeAttachment', 'volumeattachments', false);
export const PRIORITYCLASSES = define('scheduling.k8s.io', 'v1', 'PriorityClass', 'priorityclasses', false);

const RBAC = 'rbac.authorization.k8s.io';
export const RBAC_ROLES = define(RBAC, 'v1', 'Role', 'roles', true);
export const ROLEBINDINGS = define(RBAC, 'v1', 'RoleBinding', 'rolebindings', true);
export const CLUSTERROLES = define(RBAC, 'v1', 'ClusterRole', 'clusterroles', false);
export const CLUSTERROLEBINDINGS = define(RBAC, 'v1', 'ClusterRoleBinding', 'clusterrolebindings', false);

export const CRDS = define(
  'apiextensions.k8s.io',
  'v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
);
export const APISERVICES = define('apiregistration.k8s.io', 'v1', 'APIService', 'apiservices', false);

const ADMISSION = 'admissionregistration.k8s.io';
define(ADMISSION, 'v1', 'ValidatingAdmissionPolicy', 'validatingadmissionpolicies', false);
define(ADMISSION, 'v1', 'ValidatingAdmissionPolicyBinding', 'validatingadmissionpolicybindings', false);

export const WORKERCLUSTERS = define(GROUP, VERSION, 'WorkerCluster', 'workerclusters', true);
export const SHOOTS = define(GROUP, VERSION, 'Shoot', 'shoots', true);
export const SEEDS = define(GROUP, VERSION, 'Seed', 'seeds', false);
export const CLOUDPROFILES = define(GROUP, VERSION, 'CloudProfile', 'cloudprofiles', false);
export const CREDENTIALSBINDINGS = define(GROUP, VERSION, 'CredentialsBinding', 'credentialsbindings', true);
export const WORKLOADIDENTITIES = define(GROUP, VERSION, 'WorkloadIdentity', 'workloadidentities', true);
export const QUOTAS = define(GROUP, VERSION, 'Quota', 'quotas', true);
export const HUBS = define(GROUP, ALPHA_VERSION, 'Hub', 'hubs', false);
export const MEMBERSHIPS = define(GROUP, ALPHA_VERSION, 'Membership', 'memberships', true);
export const BURSTPOLICIES = define(GROUP, ALPHA_VERSION, 'BurstPolicy', 'burstpolicies', true);

/** `v1` or `group/version`, as in an object's apiVersion. */
function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The resource of an object of a kind listed in this file; throws for any other kind. */
export function resourceOf(object: { apiVersion: string; kind: string }): Resource {
  const found = BY_TYPE.get(`${object.apiVersion}/${object.kind}`);
  if (found) return found;
  const hint = object.apiVersion.startsWith(`${GROUP}/`) ? ` (this build knows ${API_VERSION})` : '';
  throw new Error(
    `no resource is known for ${object.apiVersion} ${object.kind}${hint}: add it to operator/kube/resources.ts, or pass { resource }`,
  );
}

/** The URL path of a collection (no name), an object or a subresource. */
export function pathOf(resource: Resource, namespace?: string, name?: string, subresource?: string): string {
  if (!resource.namespaced && namespace) namespace = undefined;
  if (resource.namespaced && name !== undefined && !namespace) {
    throw new Error(`${resource.kind} ${name} is namespaced: a namespace is needed to address it`);
  }
  let path = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  if (namespace) path += `/namespaces/${encodeURIComponent(namespace)}`;
  path += `/${resource.plural}`;
  if (name !== undefined) {
    // An empty name would turn the deletion of one object into the deletion of the collection.
    if (name === '') throw new Error(`empty name for ${resource.kind}`);
    path += `/${encodeURIComponent(name)}`;
  }
  return subresource ? `${path}/${subresource}` : path;
}

/** `namespace/name`, or `name` for a cluster-scoped object: the key of caches and work queues. */
export function keyOf(object: { metadata: { namespace?: string | undefined; name?: string | undefined } }): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name ?? ''}` : (name ?? '');
}

/** Splits a key of keyOf; namespace is '' for a cluster-scoped object. */
export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

/**
 * -1, 0 or 1 for two resource versions of one resource; an absent version is older than any. Resource versions are
 * decimal numbers of one etcd (promised by the API since Kubernetes 1.35), too big for a double.
 */
export function compareResourceVersions(a: string | undefined, b: string | undefined): number {
  const left = a ?? '';
  const right = b ?? '';
  if (left.length !== right.length) return left.length < right.length ? -1 : 1;
  return left === right ? 0 : left < right ? -1 : 1;
}

/** A condition of a built-in kind. */
export interface BuiltinCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface KubeTaint {
  key: string;
  value?: string;
  effect: string;
}

export interface ContainerResources {
  requests?: Record<string, string>;
  limits?: Record<string, string>;
}

interface ContainerStatus {
  name: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  /** `repository@digest` of the running image. */
  imageID?: string;
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: { startedAt?: string };
    terminated?: { exitCode: number; reason?: string; message?: string };
  };
  lastState?: ContainerStatus['state'];
}

export interface Pod extends KubeObject {
  spec: {
    nodeName?: string;
    hostNetwork?: boolean;
    priority?: number;
    overhead?: Record<string, string>;
    resources?: ContainerResources;
    containers: {
      name: string;
      image?: string;
      env?: { name: string; value?: string }[];
      resources?: ContainerResources;
    }[];
    initContainers?: { name: string; image?: string; restartPolicy?: string; resources?: ContainerResources }[];
    [field: string]: any;
  };
  status?: {
    phase?: string;
    reason?: string;
    message?: string;
    podIP?: string;
    podIPs?: { ip: string }[];
    hostIP?: string;
    startTime?: string;
    conditions?: BuiltinCondition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
    [field: string]: any;
  };
}

export interface Node extends KubeObject {
  spec: {
    podCIDR?: string;
    podCIDRs?: string[];
    providerID?: string;
    unschedulable?: boolean;
    taints?: KubeTaint[];
    [field: string]: any;
  };
  status?: {
    capacity?: Record<string, string>;
    allocatable?: Record<string, string>;
    conditions?: BuiltinCondition[];
    addresses?: { type: string; address: string }[];
    nodeInfo?: { kubeletVersion: string; [field: string]: any };
    [field: string]: any;
  };
}

export interface Secret extends KubeObject {
  type?: string;
  /** Values are base64. */
  data?: Record<string, string>;
  /** Write only: the server turns it into data. */
  stringData?: Record<string, string>;
  immutable?: boolean;
}

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export interface Service extends KubeObject {
  spec: {
    type?: string;
    clusterIP?: string;
    clusterIPs?: string[];
    ports?: { name?: string; port: number; targetPort?: number | string; nodePort?: number; protocol?: string }[];
    selector?: Record<string, string>;
    publishNotReadyAddresses?: boolean;
    [field: string]: any;
  };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export interface Deployment extends KubeObject {
  spec: { replicas?: number; selector: { matchLabels?: Record<string, string> }; [field: string]: any };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    readyReplicas?: number;
    availableReplicas?: number;
    unavailableReplicas?: number;
    conditions?: BuiltinCondition[];
  };
}

export interface ReplicaSet extends KubeObject {
  spec: { replicas?: number; selector: { matchLabels?: Record<string, string> }; [field: string]: any };
  status?: { observedGeneration?: number; replicas?: number; readyReplicas?: number; conditions?: BuiltinCondition[] };
}

export interface StatefulSet extends KubeObject {
  spec: { replicas?: number; serviceName?: string; [field: string]: any };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    currentRevision?: string;
    updateRevision?: string;
    conditions?: BuiltinCondition[];
  };
}

export interface Namespace extends KubeObject {
  status?: { phase?: string; conditions?: BuiltinCondition[] };
}

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string | null;
    leaseDurationSeconds?: number;
    /** RFC 3339 with microseconds. */
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

export interface CertificateSigningRequest extends KubeObject {
  spec: {
    request: string;
    signerName: string;
    usages?: string[];
    /** Requesting user, set by the API server. */
    username?: string;
    uid?: string;
    groups?: string[];
    extra?: Record<string, string[]>;
    expirationSeconds?: number;
  };
  status?: { conditions?: BuiltinCondition[]; certificate?: string };
}

export interface PersistentVolumeClaim extends KubeObject {
  spec: { storageClassName?: string; volumeName?: string; accessModes?: string[]; [field: string]: any };
  status?: { phase?: string; capacity?: Record<string, string>; [field: string]: any };
}

export interface PersistentVolume extends KubeObject {
  spec: {
    storageClassName?: string;
    claimRef?: { namespace: string; name: string; uid?: string };
    [field: string]: any;
  };
  status?: { phase?: string; [field: string]: any };
}

/** Whether the built-in condition of this type has status True. */
export function conditionIsTrue(object: { status?: { conditions?: BuiltinCondition[] } }, type: string): boolean {
  return (
    object.status?.conditions?.some((condition) => condition.type === type && condition.status === 'True') ?? false
  );
}

/** Values of a Secret, decoded from base64 to text. */
export const decodeSecret = (data: Record<string, string> | undefined): Record<string, string> =>
  Object.fromEntries(
    Object.entries(data ?? {}).map(([name, value]) => [name, Buffer.from(value, 'base64').toString()]),
  );

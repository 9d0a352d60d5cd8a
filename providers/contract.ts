import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { KubeObject } from '../operator/api/meta.ts';
import type { KubeClient } from '../operator/kube/client.ts';
import type { Log } from '../operator/kube/log.ts';
import type { KubeTaint, Node, Pod } from '../operator/kube/resources.ts';
import type { BackupBuckets } from './backup.ts';
import type { Change, CloudContext, ManagedClusters } from './cloud.ts';
import type { ProviderDNS } from './dns.ts';
import type { Problem } from './problem.ts';

export type { BackupBucket, BackupBuckets, BackupContent, BackupContext } from './backup.ts';
export type { Problem };

/** A desired group of equal machines. */
export interface Pool {
  /** At most 15 characters, a DNS label, unique in the shoot. */
  name: string;
  /** Name of a machine type of the profile. */
  machineType: string;
  /** Desired number of machines. */
  count: number;
  /** Node labels, in addition to the provider's own (see nodeLabels). */
  labels: Record<string, string>;
  /** Permanent taints of each node. */
  taints: KubeTaint[];
  /**
   * Taints at registration only; a removed one does not come back. None equals one of `taints` in key and effect.
   * Absent: none.
   */
  startupTaints?: KubeTaint[];
  /** Zones to spread over; may be empty. */
  zones: string[];
  /** Whether to use spot machines, which the cloud may interrupt. Absent: no. */
  spot?: boolean;
  /** Most machines above `count` during a roll. Absent: none. */
  maxSurge?: number;
}

/**
 * Size of a pool during a roll: above `count` by at most the number of outdated machines, as in Kubernetes'
 * Deployments. Pure.
 */
export const sizeWhileRolling = (
  { count, maxSurge = 0 }: Pick<Pool, 'count' | 'maxSurge'>,
  outdated: number,
): number => (count === 0 ? 0 : count + Math.min(maxSurge, outdated));

/** The part of a cluster's spec that a provider validates. */
export interface WantedSpec {
  region: string;
  /** Full version without "v", for example "1.36.3". */
  kubernetesVersion: string;
  /** Address ranges in CIDR notation. */
  networking: { pods: string; services: string; nodes?: string };
  pools: Pool[];
}

export type MachinePhase = 'Pending' | 'Running' | 'Terminating' | 'Failed';

/** An existing machine, whether or not its node has joined. */
export interface Machine {
  /** Unique in the shoot; argument of removeMachines. */
  name: string;
  pool: string;
  /** Name of its Node, known before it joins. */
  nodeName: string;
  /** Address in the machines' network. */
  address?: string;
  /** Absent: unknown. */
  zone?: string;
  /** Pending: requested, not up. Running: up. Terminating: being deleted. Failed: will not come up by itself. */
  phase: MachinePhase;
  /** Whether the machine is healthy; the health of its node is in the Node. */
  ready: boolean;
  /**
   * Whether it differs from its pool's description and its caller must roll it (see Provider.rolledByCaller). Absent:
   * no.
   */
  outdated?: boolean;
  /** RFC 3339. */
  createdAt: string;
}

/**
 * Facts about the shoot for a provider. The caller makes all names, addresses and credentials, and they stay equal
 * until renewed: a provider writes them into objects, and equal input must cause no write.
 */
export interface ProviderContext {
  /** The seed that hosts the control plane. */
  seed: KubeClient;
  /** The cluster itself, with administrator rights; absent while its API server does not serve. */
  shoot?: KubeClient;
  /** Namespace of the Shoot in the garden. */
  namespace: string;
  shootName: string;
  /** Namespace of the Shoot object in the garden. */
  shootNamespace: string;
  /** Cached pods of the shoot in the seed, and its cached nodes, for status only. Absent: API servers are asked. */
  seen?: { readonly pods: readonly Pod[]; readonly nodes: readonly Node[] };
  /** Unique in the garden, at most 63 characters: prefix and tag of everything outside of the seed. */
  technicalID: string;
  /** UID of the Shoot: distinguishes it from an earlier one of the same name. */
  uid: string;
  region: string;
  /** Full version without "v", for example "1.36.3". */
  kubernetesVersion: string;
  /** `https://host:port` of the API server for machines. */
  apiserverURL: string;
  /** PEM of the CA that signs the API server's certificate, and its client certificate for kubelets. */
  clusterCA: string;
  podCIDR: string;
  serviceCIDR: string;
  /** Address range of machines, for providers that make their network. */
  nodeCIDR?: string;
  /** Address of the cluster's DNS Service. */
  dnsIP: string;
  clusterDomain: string;
  /** `https://host:port` or `http://host:port` of a registry mirror (OCI distribution API) that machines use first. */
  imageMirror?: string;
  /** PEM of the CA of that mirror. Absent: a system CA, or no TLS. */
  imageMirrorCA?: string;
  /** `name:tag` of the machine image for machines that are containers, if the seed or the profile names one. */
  machineImage?: string;
  /** Revision of the encryption keys of API servers on machines. Absent: never rotated. */
  encryptionRevision?: number;
  /** PriorityClass of control plane pods. Absent: the seed has none. */
  controlPlanePriority?: string;
  /** VXLAN network identifier (1 to 16777215), unique among the shoots of the seed. */
  vni: number;
  profile: CloudProfile;
  /**
   * Kubeconfig with which a new machine of the pool requests its certificate (TLS bootstrap).
   * @param machines desired number for now; absent: that of the pool. The token stays fresh while fewer have joined
   */
  bootstrapKubeconfig(pool: string, machines?: number): Promise<string>;
  /** A kubeconfig for system:kube-proxy. */
  kubeProxyKubeconfig(): Promise<string>;
  /** Kubeconfig with administrator rights for a component beside the control plane. */
  componentKubeconfig(user: string): Promise<string>;
  /** For reconcilePools: compare everything with the cloud, and revert drift. Absent: no. */
  mend?: boolean;
  /** The tenant's account, for providers with machines in one. Rejects with CoppiceErrors when unavailable. */
  cloud?(): Promise<CloudContext>;
  log: Log;
}

/** Bootstrap data for control plane machines only: the files contain the cluster's keys. */
export interface ControlPlaneBootstrap {
  /** Keys of the cluster with its CA certificates, by path below /etc/kubernetes/pki; kubeadm derives the rest. */
  keys: Record<string, string>;
  /** YAML for `kubeadm init` and `kubeadm join`; `@NODE_NAME@` and `@ADDRESS@` stand for the machine's own. */
  init: string;
  join: string;
  /** Address of each machine by ordinal, which outlives the machine: etcd members address each other by it. */
  addresses: string[];
  /** Whether machine 0 may initialise the cluster when it has no data. Otherwise it may only join. */
  mayInitialise: boolean;
  /**
   * Ordinals of machines that are known etcd members: without its data, such a machine waits until it is removed from
   * this list.
   */
  noted: number[];
}

/** Observed machines of a control plane. */
export interface ControlPlaneMachinesSeen {
  /** Desired number; 0: never made. */
  asked: number;
  /**
   * Existing machines by name (see controlPlaneMachineName), including those being deleted; outdated as in isOutdated.
   */
  machines: (Machine & {
    /** See ControlPlaneMachines.close. Absent: it gets new requests. */
    closed?: true;
  })[];
  /** Data volumes, with or without a machine. A machine's new volume has another UID. */
  volumes: { ordinal: number; uid: string }[];
}

/**
 * Machines in the seed that run the control plane of their own cluster by kubeadm, numbered from 0. Each keeps its name
 * and data while wanted, also when recreated. The caller makes their Services: one for ready machines with label `app:
 * kube-apiserver`, and one per machine.
 */
export interface ControlPlaneMachines {
  observe(ctx: ProviderContext, pool: string): Promise<ControlPlaneMachinesSeen>;

  /** Creates the first `pool.count` machines and deletes higher ones. Existing machines are not replaced. */
  reconcile(ctx: ProviderContext, pool: Pool, bootstrap: ControlPlaneBootstrap): Promise<void>;

  /**
   * Whether the pod runs another Kubernetes version, or has other encryption keys; other differences do not count.
   * Pure.
   */
  isOutdated(
    ctx: Pick<ProviderContext, 'kubernetesVersion' | 'machineImage' | 'encryptionRevision'>,
    pod: Pod,
  ): boolean;

  /** Routes new requests to other machines until this one is recreated. A missing machine is fine. */
  close(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Recreates an outdated machine over its data, as last reconciled. Other machines stay. */
  replace(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Deletes the volume of a machine that is no longer wanted; a missing one is fine. */
  removeVolume(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Deletes all machines with their data, in any half-built state. Needs no working shoot. */
  delete(ctx: ProviderContext, pool: string): Promise<void>;
}

/** Address of an API server on machines. */
export interface ControlPlaneEndpoint {
  /** DNS name or IP address. */
  host: string;
  port: number;
}

/** Bootstrap data for control plane machines in a cloud: initialise the cluster, or join it. */
export interface ControlPlaneGroupBootstrap {
  /** YAML of kubeadm's cluster and init configuration; `@NODE_NAME@` and `@ADDRESS@` stand for the machine's own. */
  init: string;
  first:
    | {
        /** Keys of the cluster with its CA certificates, by path below /etc/kubernetes/pki. */
        begin: Record<string, string>;
      }
    | {
        /** YAML for `kubeadm join`, with the certificate key of the cluster's keys, which are in the cluster. */
        join: string;
        /** Kubeconfig for discovery and TLS bootstrap, stored at DISCOVERY_FILE. */
        discovery: string;
      };
}

/** Path of ControlPlaneGroupBootstrap's `discovery` on a machine in a cloud. */
export const DISCOVERY_FILE = '/etc/coppice/secret/bootstrap.kubeconfig';

/** Observed control plane machines in a cloud. */
export interface ControlPlaneGroupSeen {
  /** Desired number; 0: never made. */
  asked: number;
  /** Existing machines, oldest first, including those being deleted, without lost ones. */
  machines: Machine[];
  /** Why there are fewer than desired, in the cloud's words. */
  failure?: string;
}

/** Part of a control plane in a cloud to repair: its endpoint with the network, or its machine group. */
export type ControlPlanePart = 'endpoint' | 'machines';

/**
 * Machines in a tenant's account that run the control plane of their own cluster by kubeadm. Each keeps its data on its
 * own disk: a lost machine is a lost etcd member, and no machine takes over its place or name. Only `end` removes
 * machines. The provider's `deleteAll` covers all of this.
 */
export interface ControlPlaneGroup {
  /** Creates the endpoint in front of all serving machines, with its network. It stays for the cluster's life. */
  endpoint(ctx: ProviderContext, pool: Pool): Promise<ControlPlaneEndpoint>;

  /** Reads the machines from the cloud. Outdated are those with other encryption keys than the context's. */
  observe(ctx: ProviderContext, pool: string): Promise<ControlPlaneGroupSeen>;

  /** The machines as last seen, at most some seconds ago. */
  list(ctx: ProviderContext, pool: string): Promise<Machine[]>;

  /** Requests `pool.count` machines, never fewer than exist; new machines get `bootstrap`. Call `endpoint` first. */
  reconcile(ctx: ProviderContext, pool: Pool, bootstrap: ControlPlaneGroupBootstrap): Promise<void>;

  /**
   * Reverts drift of a running control plane, limited to changes that neither end machines, change their number, nor
   * replace group or address. Resolves with the remaining drift; undefined: not possible now, because the number of
   * machines differs from the desired one.
   */
  mend(ctx: ProviderContext, pool: string, part: ControlPlanePart): Promise<Change[] | undefined>;

  /**
   * Ends these machines, and lowers the desired number. Lost or ending machines are fine: they are no longer counted.
   */
  end(ctx: ProviderContext, pool: string, names: readonly string[]): Promise<void>;
}

/** Machines of a cluster without a control plane at one moment. */
export interface MachinesSeen {
  /** Control plane machines: ready once the control plane would serve. */
  controlPlane: Machine[];
  machines: Machine[];
  /** Node objects that the machines would register, without pod ranges. */
  nodes: Node[];
  /** Next change by time alone: a machine becomes ready, or is lost. Absent: none. */
  changesAt?: Date;
}

/**
 * Clusters that exist as objects only, without a control plane. A ConfigMap in the shoot's namespace lists their
 * machines; the caller reads and applies it.
 */
export interface ClustersWithoutControlPlane {
  /** Whether the profile's clusters are of this kind. Pure. */
  includes(profile: CloudProfile): boolean;

  /** Name of the ConfigMap. */
  readonly configMapName: string;

  /**
   * The ConfigMap with missing machines added and surplus ones removed; equal input gives an equal result. `refusal`:
   * why machines are still missing.
   */
  update(
    ctx: ProviderContext,
    wanted: { members: number; pools: readonly Pool[] },
    configMap: KubeObject | undefined,
  ): { configMap: KubeObject; refusal?: Error };

  /** Content of the ConfigMap at present. Pure except for the clock. */
  read(ctx: ProviderContext, pools: readonly Pool[], configMap: KubeObject | undefined): MachinesSeen;
}

/**
 * How hosted API servers reach the cluster network. Either by a sidecar, which joins the pod to the machines' network
 * and blocks all other outgoing connections except to SEED_ADDRESSES (environment variable, separated by blanks), then
 * writes EGRESS into EGRESS_FILE; the API server ends without it, and the sidecar's `postStart` hook waits for it. Or
 * not at all, because nothing runs there.
 */
export type ClusterNetwork =
  | { container: { env: object[]; volumeMounts: object[]; [field: string]: unknown }; volumes: object[] }
  | 'none';

/** Repairs a running machine whose node is missing or not Ready. Missing machines are fine; nothing is awaited. */
interface MachineRepair {
  /** Restarts the machine with its disks. */
  restart(ctx: ProviderContext, machine: Machine): Promise<void>;

  /** Deletes the machine with its disks, and requests a replacement. */
  replace(ctx: ProviderContext, machine: Machine): Promise<void>;
}

/** How pods' volumes are created on machines' disks. */
export interface MachineVolumes {
  /** Folder on each machine that lives as long as the machine. */
  readonly folder: string;
  /**
   * Helper pod that creates and removes folders there: an image that each machine has, and folders of the machine with
   * a shell.
   */
  readonly helper: { readonly image: string; readonly folders: readonly string[] };
}

/**
 * Makes machines for hosted control planes. Every method is idempotent, also after a crash at any point; none keeps
 * state outside of the objects that it makes (which have the shoot's labels or tags), and none waits for a machine:
 * they request and return, listMachines shows the result. Errors are CoppiceErrors with a Gardener code where the cause
 * is known.
 *
 * Optional members (managed clusters, DNS, backup buckets) are capabilities that some providers lack.
 */
export interface Provider {
  /** Value of `spec.cloudProvider` and `spec.provider.type`, unless a profile binds a type to another provider. */
  name: string;
  /** Whether nodes are simulated; status and CLI say so prominently. */
  simulated: boolean;

  /** Missing isolation of the machines, as a text for the profile's status. Absent: none missing. */
  noBoundary?: string;

  /**
   * Whether it runs pods in the shoot's namespace of the seed that exceed Pod Security level `restricted`, such as
   * machines. Absent: the namespace refuses such pods.
   */
  privilegedInSeed?: boolean;

  /**
   * Why this operator makes no new clusters with it, and who can change that; existing clusters stay. Absent: it does.
   */
  barred?: string;
  /** Whether machines join by TLS bootstrap, so that ctx.bootstrapKubeconfig must work. */
  needsBootstrapToken: boolean;

  /**
   * Whether machines are in a tenant's account outside of the seed: needs credentials, and a seed whose API servers are
   * reachable from there. Absent: no.
   */
  inCloud?: boolean;

  /**
   * Whether the caller rolls machines: reconcilePool requests up to Pool.maxSurge more, listMachines marks outdated
   * ones, and the caller drains and removes them as new nodes join. Absent: the provider rolls them.
   */
  rolledByCaller?: boolean;

  /** Volumes on machines' disks, for a default StorageClass. Absent: none. */
  readonly machineVolumes?: MachineVolumes;

  /** Repair of worker machines. Absent: unhealthy nodes are only reported. */
  readonly repair?: MachineRepair;

  /** Managed service of the cloud, for mode Managed. */
  readonly managed?: ManagedClusters;

  /** DNS records in zones of an account. */
  readonly dns?: ProviderDNS;
  /** Buckets for backups of hosted control planes. */
  readonly backups?: BackupBuckets;
  /** Control plane machines for mode SelfManaged. The methods below ignore them. */
  readonly controlPlaneMachines?: ControlPlaneMachines;
  /** Control plane machines in a cloud, for mode SelfManaged; a provider has at most one of the two. */
  readonly controlPlaneGroup?: ControlPlaneGroup;

  /** Clusters without control planes, for scale tests. */
  readonly withoutControlPlane?: ClustersWithoutControlPlane;

  /** All problems of the wish; empty: none. Pure: makes no request, throws nothing. */
  validate(wanted: WantedSpec, profile: CloudProfile): Problem[];

  /**
   * How hosted API servers reach machines and pods. Absent or undefined: by a tunnel for machines in a cloud, else by
   * the seed's network. Pure.
   */
  clusterNetwork?(ctx: Pick<ProviderContext, 'machineImage' | 'podCIDR' | 'vni'>): ClusterNetwork | undefined;

  /** Objects beside the control plane in the shoot's namespace of the seed; the caller applies them. */
  controlPlaneExtras?(ctx: ProviderContext): Promise<KubeObject[]>;

  /** Objects inside of the cluster that its machines need; the caller applies them. */
  systemComponents?(): KubeObject[];

  /**
   * Withdraws requested machines that have not started: those of each pool above `count` and `maxSurge`. Called while
   * the cluster does not answer. Absent: reconcilePool does it, or requests start at once.
   */
  withdrawMachines?(ctx: ProviderContext, pools: readonly Pool[]): Promise<void>;

  /**
   * reconcilePool for all pools in one run, for providers with expensive runs. A pool that is left out stays until
   * deletePool.
   */
  reconcilePools?(ctx: ProviderContext, pools: readonly Pool[]): Promise<void>;

  /**
   * Creates missing machines, updates the description for new ones, and rolls outdated ones or leaves that to the
   * caller (`rolledByCaller`). Never removes started machines above `count`: removeMachines does. A renewed token,
   * labels, taints and zones do not make machines outdated; Kubernetes version, machine type, image and spot do.
   * Updates labels and taints of existing nodes. Deletes Node objects of the pool without a machine.
   */
  reconcilePool(ctx: ProviderContext, pool: Pool): Promise<void>;

  /** All machines of the shoot in any order, including those being deleted. */
  listMachines(ctx: ProviderContext): Promise<Machine[]>;

  /**
   * Deletes exactly these drained machines of the pool and leaves `remaining`, without replacement. Missing names are
   * fine. Call again until listMachines no longer shows them.
   */
  removeMachines(ctx: ProviderContext, pool: string, names: readonly string[], remaining: number): Promise<void>;

  /**
   * Deletes terminating pods whose machine should have ended them. Missing pods, and others of the same name, are
   * ignored. Absent: only a kubelet knows whether a pod has ended.
   */
  endPods?(ctx: ProviderContext, pods: readonly Pod[]): Promise<void>;

  /** Deletes the pool with its machines; a missing pool is fine. Needs no working shoot. */
  deletePool(ctx: ProviderContext, name: string): Promise<void>;

  /**
   * Drift in the cloud since the last run, including the control plane's machines, excluding our own changes outside of
   * Pulumi; reverts nothing and takes up to minutes. undefined: a run is in progress. Absent: drift is impossible or
   * reverted automatically.
   */
  drift?(ctx: ProviderContext): Promise<Change[] | undefined>;

  /** Deletes everything that was made for the shoot, in any half-built state. Needs no working shoot. */
  deleteAll(ctx: ProviderContext): Promise<void>;
}

import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { KubeObject } from '../operator/api/meta.ts';
import type { KubeClient } from '../operator/kube/client.ts';
import type { Log } from '../operator/kube/log.ts';
import type { Node, Pod, Taint } from '../operator/kube/resources.ts';
import type { BackupBuckets } from './backup.ts';
import type { Change, CloudContext, ManagedClusters } from './cloud.ts';
import type { ProviderDNS } from './dns.ts';
import type { Problem } from './problem.ts';

export type { BackupBucket, BackupBuckets, BackupContent, BackupContext, BackupObject } from './backup.ts';
export type { Problem };

/** A group of equal machines, as the shoot asks for it. */
export interface Pool {
  /** At most 15 characters, a DNS label, unique in the shoot. */
  name: string;
  /** Name of a machine type of the profile. */
  machineType: string;
  /** How many machines there should be. */
  count: number;
  /** Labels of the nodes, besides those that the provider sets itself (see nodeLabels). */
  labels: Record<string, string>;
  /** Every node has them for as long as it lives. */
  taints: Taint[];
  /** A node has them when it registers; who takes one away does not find it back. None has key and effect of one of `taints`. Absent: none. */
  startupTaints?: Taint[];
  /** Zones that the machines are spread over; may be empty. */
  zones: string[];
  /** Whether the machines may be the cloud's cheaper ones that it takes away at short notice. Absent: no. */
  spot?: boolean;
  /** How many machines above `count` there may be while outdated ones are replaced. Absent: none. */
  maxSurge?: number;
}

/**
 * How many machines a pool has while outdated ones are replaced: never more above its count than there are left to replace, as with
 * Kubernetes' Deployments. Pure.
 */
export const sizeWhileRolling = (
  { count, maxSurge = 0 }: Pick<Pool, 'count' | 'maxSurge'>,
  outdated: number,
): number => (count === 0 ? 0 : count + Math.min(maxSurge, outdated));

/** What a cluster asks for, as far as a provider has a say in it. */
export interface Wanted {
  region: string;
  /** Full version without "v", for example "1.36.3". */
  kubernetesVersion: string;
  /** Address ranges in CIDR notation. */
  networking: { pods: string; services: string; nodes?: string };
  pools: Pool[];
}

export type MachinePhase = 'Pending' | 'Running' | 'Terminating' | 'Failed';

/** A machine that exists, whether or not its node has joined. */
export interface Machine {
  /** Unique in the shoot; what removeMachines takes. */
  name: string;
  pool: string;
  /** Name of the Node that the machine registers, known before it has joined. */
  nodeName: string;
  /** Address within the network of the machines. */
  address?: string;
  /** Absent: nobody tells. */
  zone?: string;
  /** Pending: asked for, not yet up. Running: up. Terminating: on its way out. Failed: will not come up by itself. */
  phase: MachinePhase;
  /** Whether the machine itself is well; whether its node is, the Node says. */
  ready: boolean;
  /** Whether it is another one than its pool describes by now, and its caller has to roll it (see Provider.rolledByCaller). Absent: no. */
  outdated?: boolean;
  /** RFC 3339. */
  createdAt: string;
}

/**
 * What a provider is told about the shoot it works for. Everything that names, addresses or authenticates something is
 * made by the caller and stays the same between calls until it is renewed: a provider writes what it is given into
 * objects, and equal input must mean no write.
 */
export interface ProviderContext {
  /** The seed that hosts the control plane. */
  seed: KubeClient;
  /** The cluster itself, with administrator rights; absent while its API server does not serve. */
  shoot?: KubeClient;
  /** Namespace of the shoot in the seed. */
  namespace: string;
  shootName: string;
  /** Namespace of the Shoot object in the garden. */
  shootNamespace: string;
  /** The shoot's pods in the seed and its nodes as caches have them, for who only tells people of machines. Absent: API servers are asked. */
  seen?: { readonly pods: readonly Pod[]; readonly nodes: readonly Node[] };
  /** Unique in the garden, at most 63 characters: the prefix and the tag of everything made outside the seed. */
  technicalID: string;
  /** UID of the Shoot: tells a cluster from an earlier one of the same name. */
  uid: string;
  region: string;
  /** Full version without "v", for example "1.36.3". */
  kubernetesVersion: string;
  /** `https://host:port`, as machines reach the API server. */
  apiserverURL: string;
  /** PEM: signs the API server's certificate, and the client certificate with which it calls kubelets. */
  clusterCA: string;
  podCIDR: string;
  serviceCIDR: string;
  /** Range of the machines' own addresses, for a provider that makes a network for them. */
  nodeCIDR?: string;
  /** Address of the cluster's DNS Service. */
  dnsIP: string;
  clusterDomain: string;
  /** `https://host:port` or `http://host:port` of a registry mirror (OCI distribution API) that machines ask first. */
  imageMirror?: string;
  /** PEM of the authority of that mirror's certificate. Absent: one of the system's, or the mirror has no TLS. */
  imageMirrorCA?: string;
  /** `name:tag` of the image of machines that are containers, where the seed or the profile names one. */
  machineImage?: string;
  /** How often the keys have changed that API servers on machines encrypt Secrets with. Absent: never. */
  encryptionRevision?: number;
  /** PriorityClass of pods that control planes run in. Absent: the seed has none for them. */
  controlPlanePriority?: string;
  /** VXLAN network identifier (1 to 16777215), unique among the shoots of the seed. */
  vni: number;
  profile: CloudProfile;
  /**
   * A kubeconfig with which a new machine of the pool asks for its certificate (TLS bootstrap).
   * @param machines how many the pool is to have for now; absent: as many as it asks for. As long as fewer have joined, the token is kept fresh
   */
  bootstrapKubeconfig(pool: string, machines?: number): Promise<string>;
  /** A kubeconfig for system:kube-proxy. */
  kubeProxyKubeconfig(): Promise<string>;
  /** A kubeconfig of that name for a component that runs beside the control plane, with the rights of the cluster's administrators. */
  componentKubeconfig(user: string): Promise<string>;
  /** Has reconcilePools compare all with the cloud, and change back what others changed. Absent: no. */
  mend?: boolean;
  /** The tenant's account, for a provider whose machines are in one. Rejects with CoppiceErrors where there is none to be used. */
  cloud?(): Promise<CloudContext>;
  log: Log;
}

/** What the machines of a control plane are told. Files hold the cluster's keys: they are for these machines alone. */
export interface ControlPlaneBootstrap {
  /** Keys of the cluster, with its authorities' certificates, by path below /etc/kubernetes/pki; kubeadm makes the rest from them. */
  keys: Record<string, string>;
  /** What `kubeadm init` and `kubeadm join` are given, as YAML; `@NODE_NAME@` and `@ADDRESS@` stand for the machine's own. */
  init: string;
  join: string;
  /** Address of each machine by its ordinal, which outlives the machine: etcd's members know each other by it. */
  addresses: string[];
  /** Whether machine 0, if it has no data, may begin the cluster. Otherwise it may only join one. */
  mayInitialise: boolean;
  /** Ordinals of machines whose data are known to be in the cluster: without data, such a one waits until it is no longer among them. */
  noted: number[];
}

/** What there is of the machines of a control plane. */
export interface ControlPlaneMachinesSeen {
  /** How many are asked for now; 0: they were never made. */
  asked: number;
  /** Those that exist, by their names (see controlPlaneMachineName), those on their way out included; outdated are those of isOutdated. */
  machines: (Machine & {
    /** See ControlPlaneMachines.close. Absent: it gets new requests. */
    closed?: true;
  })[];
  /** Volumes that keep machines' data, whether or not there is a machine. A machine that gets a new volume has one with another uid. */
  volumes: { ordinal: number; uid: string }[];
}

/**
 * Machines in the seed that run the control plane of their own cluster by kubeadm, numbered from 0. Each keeps its name and its data
 * for as long as it is asked for, also when it is made anew. The caller has made Services that lead to them: to those with the label
 * `app: kube-apiserver` that are ready, and to each by its name.
 */
export interface ControlPlaneMachines {
  observe(ctx: ProviderContext, pool: string): Promise<ControlPlaneMachinesSeen>;

  /** Makes the first `pool.count` machines be, and takes those above away. Those that exist are not replaced. */
  reconcile(ctx: ProviderContext, pool: Pool, bootstrap: ControlPlaneBootstrap): Promise<void>;

  /**
   * Whether the pod is a machine of another Kubernetes version or with other keys of Secrets than are wanted; all else that changes makes
   * none outdated. Pure.
   */
  isOutdated(
    ctx: Pick<ProviderContext, 'kubernetesVersion' | 'machineImage' | 'encryptionRevision'>,
    pod: Pod,
  ): boolean;

  /** Has new requests go to other machines until this one is made anew. One that is not there is fine. */
  close(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Makes a machine that is outdated anew, as reconcile described it last, over its data. Another one is left alone. */
  replace(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Removes the volume of a machine that is no longer asked for; none is fine. */
  removeVolume(ctx: ProviderContext, pool: string, ordinal: number): Promise<void>;

  /** Takes all of them away, data and all, in any half-built state. Needs no working shoot. */
  delete(ctx: ProviderContext, pool: string): Promise<void>;
}

/** Where an API server is reached that is on machines. */
export interface ControlPlaneEndpoint {
  /** A name or an IP address. */
  host: string;
  port: number;
}

/** What machines of a control plane in a cloud are told: to begin the cluster, or to join it. */
export interface ControlPlaneGroupBootstrap {
  /** kubeadm's configuration of the cluster and of who begins it, as YAML; `@NODE_NAME@` and `@ADDRESS@` stand for the machine's own. */
  init: string;
  first:
    | {
        /** Keys of the cluster, with its authorities' certificates, by path below /etc/kubernetes/pki. */
        begin: Record<string, string>;
      }
    | {
        /** What `kubeadm join` is given, as YAML; it names a key for the cluster's keys, which are in the cluster. */
        join: string;
        /** By which the machine finds the cluster, and asks for its certificate; lies at DISCOVERY_FILE. */
        discovery: string;
      };
}

/** Where a machine in a cloud has ControlPlaneGroupBootstrap's `discovery`. */
export const DISCOVERY_FILE = '/etc/coppice/secret/bootstrap.kubeconfig';

/** What there is of a control plane's machines in a cloud. */
export interface ControlPlaneGroupSeen {
  /** How many are asked for now; 0: they were never made. */
  asked: number;
  /** Those that exist, oldest first, those on their way out included. A machine that is lost is not among them. */
  machines: Machine[];
  /** Why there are fewer than asked for, in the cloud's words. */
  failure?: string;
}

/** What of a control plane in a cloud is mended: how it is reached, with the network; or how its machines are made and kept. */
export type ControlPlanePart = 'endpoint' | 'machines';

/**
 * Machines in an account of the tenant that run the control plane of their own cluster by kubeadm. A machine has its data on a disk of
 * its own: one that is lost is a member that is lost, and no machine takes another one's place or name. None is ever replaced or taken
 * away but by `end`. `deleteAll` of the provider takes all of this away, too.
 */
export interface ControlPlaneGroup {
  /** Makes where the API server is reached, in front of all machines that serve, with the network under it. It stays for the cluster's life. */
  endpoint(ctx: ProviderContext, pool: Pool): Promise<ControlPlaneEndpoint>;

  /** As the cloud tells now. Outdated are machines that were made to take other keys of Secrets than those of the context. */
  observe(ctx: ProviderContext, pool: string): Promise<ControlPlaneGroupSeen>;

  /** The machines as they were last seen, some seconds ago at most. */
  list(ctx: ProviderContext, pool: string): Promise<Machine[]>;

  /** Has `pool.count` machines be asked for, never fewer than there are; machines to come are told this. After `endpoint`. */
  reconcile(ctx: ProviderContext, pool: Pool, bootstrap: ControlPlaneGroupBootstrap): Promise<void>;

  /**
   * Changes back what others changed of a control plane that has begun: only what ends no machine, changes no number of machines, and makes
   * neither group nor address anew. Resolves to what differs still; undefined: not now, since its machines are not as many as were asked for.
   */
  mend(ctx: ProviderContext, pool: string, part: ControlPlanePart): Promise<Change[] | undefined>;

  /**
   * Ends these machines, and asks for as many as are left then. Names of machines that are lost or on their way out are fine: they end
   * being counted.
   */
  end(ctx: ProviderContext, pool: string, names: readonly string[]): Promise<void>;
}

/** The machines of a cluster without a control plane at a moment. */
export interface MachinesSeen {
  /** Machines of the control plane: ready once it would serve. */
  controlPlane: Machine[];
  machines: Machine[];
  /** The Node objects that the machines would have registered, without pod ranges. */
  nodes: Node[];
  /** When this will be different although nothing is done: a machine becomes ready, or is lost. Absent: never. */
  changesAt?: Date;
}

/**
 * Clusters that exist as objects only, without a control plane: nothing runs. A ConfigMap in the shoot's namespace lists their machines. The
 * caller reads and applies it.
 */
export interface ClustersWithoutControlPlane {
  /** Whether clusters of the profile are of this kind. Pure. */
  includes(profile: CloudProfile): boolean;

  /** Name of the ConfigMap. */
  readonly configMapName: string;

  /**
   * The ConfigMap with missing machines added and surplus ones removed; equal input gives an equal ConfigMap.
   * `refusal`: why machines are missing still.
   */
  update(
    ctx: ProviderContext,
    wanted: { members: number; pools: readonly Pool[] },
    configMap: KubeObject | undefined,
  ): { configMap: KubeObject; refusal?: Error };

  /** What the ConfigMap says now. Pure but for the clock. */
  read(ctx: ProviderContext, pools: readonly Pool[], configMap: KubeObject | undefined): MachinesSeen;
}

/**
 * How API servers come to the cluster: by a container beside each, which joins its pod to the machines' network and closes every other way
 * that the API server could open, but to the addresses in its environment variable SEED_ADDRESSES (parted by blanks). Only then it writes
 * EGRESS into EGRESS_FILE, without which the API server ends, and its hook `postStart` waits for that. Or not at all, since nothing runs there.
 */
export type ClusterNetwork =
  | { container: { env: object[]; volumeMounts: object[]; [field: string]: unknown }; volumes: object[] }
  | 'none';

/** What can be done about a machine that is up, and whose node is missing or not Ready. Machines that are gone are fine; none is waited for. */
export interface MachineRepair {
  /** Starts the machine again over its disks. */
  restart(ctx: ProviderContext, machine: Machine): Promise<void>;

  /** Takes the machine away, disks and all, and has another one come in its place. */
  replace(ctx: ProviderContext, machine: Machine): Promise<void>;
}

/** How volumes of pods are made on the disks of machines. */
export interface MachineVolumes {
  /** Folder of each machine that lives as long as the machine does. */
  readonly folder: string;
  /** What a pod that makes and removes folders there runs in: an image that each machine has, and folders of the machine with a shell. */
  readonly helper: { readonly image: string; readonly folders: readonly string[] };
}

/**
 * Makes machines for hosted control planes. Every method is idempotent and safe to repeat after a crash at any point;
 * none keeps state outside the objects that it makes (which carry the shoot's labels or tags), and none waits for a
 * machine: they say what should be and return, listMachines tells what is. Errors are CoppiceErrors with a Gardener code
 * where the cause is known.
 *
 * Optional members (managed clusters, DNS, backup buckets) are what not every provider can do: what is absent, it cannot.
 */
export interface Provider {
  /** As in `spec.cloudProvider` and `spec.provider.type`, unless a profile binds a type to another provider. */
  name: string;
  /** Whether nodes only look like nodes; said loudly in status and by the CLI. */
  simulated: boolean;

  /** What who uses its machines can do beyond his own cluster, in words for the status of a profile. Absent: nothing. */
  noBoundary?: string;

  /**
   * Whether it runs pods in the namespace of the shoot in the seed that need more than Pod Security's level `restricted` allows: machines that
   * are pods, say. Absent: that namespace admits no such pod.
   */
  privilegedInSeed?: boolean;

  /** Why this operator makes no new clusters of it, and who can change that; those that it has made stay. Absent: it makes them. */
  barred?: string;
  /** Whether machines join by TLS bootstrap, so that ctx.bootstrapKubeconfig must be able to give a token. */
  needsBootstrapToken: boolean;

  /**
   * Whether machines are in an account of the tenant, outside of the seed: it takes credentials, and a seed whose API servers can
   * be reached from there. Absent: no.
   */
  inCloud?: boolean;

  /**
   * Whether the caller rolls machines: reconcilePool only asks for up to Pool.maxSurge new ones more, listMachines tells which are
   * outdated, and the caller drains and removes these as new ones become nodes. Absent: the provider rolls them by itself.
   */
  rolledByCaller?: boolean;

  /** Volumes on the disks of its machines, for a default StorageClass. Absent: such a cluster has none by itself. */
  readonly machineVolumes?: MachineVolumes;

  /** Repair of its machines for workloads. Absent: a machine whose node is unwell is only told of. */
  readonly repair?: MachineRepair;

  /** The cloud's managed service, for mode Managed. */
  readonly managed?: ManagedClusters;

  /** Records in the zones of an account. */
  readonly dns?: ProviderDNS;
  /** Buckets for backups of control planes that seeds host. */
  readonly backups?: BackupBuckets;
  /** Machines that run control planes, for mode SelfManaged. None of the methods below knows of these. */
  readonly controlPlaneMachines?: ControlPlaneMachines;
  /** The same for a provider whose machines are in a cloud; at most one of the two. */
  readonly controlPlaneGroup?: ControlPlaneGroup;

  /** Clusters without control planes, for scale tests. */
  readonly withoutControlPlane?: ClustersWithoutControlPlane;

  /** What of this cannot be had, all of it at once; empty when all can. Pure: no request is made, nothing is thrown. */
  validate(wanted: Wanted, profile: CloudProfile): Problem[];

  /**
   * How API servers that the seed hosts come to machines and pods. Absent, or undefined: through a tunnel where machines are in a cloud,
   * and as the seed's own network leads them elsewhere. Pure.
   */
  clusterNetwork?(ctx: Pick<ProviderContext, 'machineImage' | 'podCIDR' | 'vni'>): ClusterNetwork | undefined;

  /** Objects for the shoot's namespace in the seed that run beside the control plane; applied by the caller as it applies its own. */
  controlPlaneExtras?(ctx: ProviderContext): Promise<KubeObject[]>;

  /** Objects for the cluster itself, which its machines need; applied by the caller as it applies its own. */
  systemComponents?(): KubeObject[];

  /**
   * Takes back what was asked for and has not started: of each pool, machines above `count` and `maxSurge`. Called while the cluster itself
   * does not answer. Absent: reconcilePool does so, or nothing is asked for before it starts.
   */
  withdrawMachines?(ctx: ProviderContext, pools: readonly Pool[]): Promise<void>;

  /** reconcilePool for all pools in one go, for a provider with which each go is expensive. A pool that is left out stays until deletePool. */
  reconcilePools?(ctx: ProviderContext, pools: readonly Pool[]): Promise<void>;

  /**
   * Makes the pool be as described: makes missing machines, has new ones carry the description, rolls those whose image or configuration is
   * outdated, or has its caller roll them (`rolledByCaller`). Never takes machines away that have started because there are more than
   * `count`: that is removeMachines' task. A renewed token, labels, taints and zones make no machine outdated; another Kubernetes version, machine type,
   * image or spot do. Labels and taints of nodes that exist follow the description. Node objects of the pool whose machine is gone are
   * deleted from the shoot.
   */
  reconcilePool(ctx: ProviderContext, pool: Pool): Promise<void>;

  /** All machines of the shoot, in no particular order, those on their way out included. */
  listMachines(ctx: ProviderContext): Promise<Machine[]>;

  /**
   * Takes exactly these machines of the pool away (the caller has drained them) and leaves `remaining`; no replacement
   * is made for them. Names that are gone already are fine. To be called again until listMachines no longer has them.
   */
  removeMachines(ctx: ProviderContext, pool: string, names: readonly string[], remaining: number): Promise<void>;

  /**
   * Deletes pods from the API server whose machine should have ended them and has not. Those that are gone, or are others of the same name, are
   * fine. Absent: only a kubelet knows whether a pod has ended.
   */
  endPods?(ctx: ProviderContext, pods: readonly Pod[]): Promise<void>;

  /** Takes the pool away, machines and all; a pool that is not there is fine. Needs no working shoot. */
  deletePool(ctx: ProviderContext, name: string): Promise<void>;

  /**
   * What differs in the cloud from what was last made there, the control plane's machines included, without what we changed ourselves by
   * other ways; mends nothing, and takes up to minutes. undefined: it cannot be told now, because something is being made. Absent: others
   * cannot change what it makes, or it mends that by itself.
   */
  drift?(ctx: ProviderContext): Promise<Change[] | undefined>;

  /** Takes away everything that was made for the shoot, in any half-built state. Needs no working shoot. */
  deleteAll(ctx: ProviderContext): Promise<void>;
}

import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { CoppiceError } from '../operator/api/errors.ts';
import type { Log } from '../operator/kube/log.ts';
import type { KubeTaint } from '../operator/kube/resources.ts';
import type { Problem } from './problem.ts';

/**
 * Owner of a cloud resource: becomes tags (labels at GCP) on everything, by which state is rebuilt and orphans are
 * found.
 */
export interface Owner {
  /** Unique in the garden, at most 63 characters, a DNS label: base of physical names. */
  technicalID: string;
  /** UID of the WorkerCluster: distinguishes it from an earlier one of the same name. */
  uid: string;
  /** Name and namespace of the WorkerCluster in the garden. */
  name: string;
  namespace: string;
  /** UID of the garden's namespace kube-system: resources of another garden in the same account are not our orphans. */
  garden?: string;
}

/** Cloud account for a runner. */
export interface CloudAccount {
  /** Scope of the cloud's limits (account, project or subscription id), if known; else the name of the credentials. */
  id: string;
  /** Decoded keys of the credentials' Secret. Never logged, never in a status. */
  credentials: Readonly<Record<string, string>>;
}

/** A group of equal machines of a managed or self-managed cluster. */
export interface CloudPool {
  /** At most 12 characters, a DNS label, unique in the cluster. */
  name: string;
  /** Name of a machine type of the profile. */
  machineType: string;
  minimum: number;
  maximum: number;
  /** Desired number of machines; absent while an autoscaler decides. */
  desired?: number;
  spot: boolean;
  /** GPUs of one machine; 0 for none. */
  gpu: number;
  architecture: 'amd64' | 'arm64';
  labels: Record<string, string>;
  taints: KubeTaint[];
  /** Taints at registration only; a removed one does not come back. Absent: none. */
  startupTaints?: KubeTaint[];
  /** Empty: all zones of the cluster. */
  zones: string[];
  /**
   * Machines of `desired` by zone after named nodes were removed. Absent: evenly spread. Used by clouds that count by
   * zone.
   */
  inZones?: Record<string, number>;
  /** GiB of the root disk. Absent: the provider's default. */
  diskGiB?: number;
  /** EKS: name of the node group, for a leftover pool. */
  nodeGroup?: string;
}

/** Inputs of a provider's program for the layer `network`. */
export interface NetworkInputs {
  owner: Owner;
  region: string;
  /** At least two zones if the region has them. */
  zones: string[];
  /** Ranges in CIDR notation. `pods` is for clouds whose pods use addresses of the network. */
  cidrs: { nodes: string; pods: string; services: string };
}

/** Outputs of a provider's program for the layer `network`, inputs of the layers above. Ids are the cloud's. */
export interface NetworkOutputs {
  network: string;
  /** Private subnets, one per zone; or one without zone at clouds with regional subnets. */
  subnets: { id: string; zone?: string }[];
  /** Values for other layers of the same provider. */
  extra?: Record<string, string>;
}

/** An existing cluster to adopt: never created, never replaced. */
export interface Adoption {
  /** The cloud's name or full id of the cluster. */
  id: string;
  /** On deletion: Release keeps the cluster without what Coppice made in it; Delete destroys it. */
  deletionPolicy: 'Release' | 'Delete';
}

/** Inputs of a provider's program for the layer `cluster`: EKS, GKE or AKS. */
export interface ManagedClusterInputs {
  owner: Owner;
  region: string;
  zones: string[];
  /** Minor or full version, as the cloud accepts it. Empty: the version of the adopted cluster. */
  kubernetesVersion: string;
  cidrs: { nodes: string; pods: string; services: string };
  network: NetworkOutputs;
  pools: CloudPool[];
  /** CIDRs that may reach the API server over the internet; empty: all (for an adopted cluster: unchanged). */
  authorizedNetworks: string[];
  /** Adopt this cluster instead of creating one; `pools` are added to its own. Absent: create. */
  adopt?: Adoption;
  /** Whether pools have no nodes for now; what needs nodes stays declared. */
  asleep?: boolean;
}

/** A group of machines that join a cluster whose control plane Coppice runs. */
export interface MachinePool extends CloudPool {
  /**
   * The cloud's name of the image. AWS: `ami-...`, in the region. GCP: self link of an image or its family. Azure: id
   * of an image (`/subscriptions/.../images/x`), of one in a community gallery (`/CommunityGalleries/...`), or
   * `publisher:offer:sku:version`.
   */
  image: string;
  /** GCP: name of the instance template, for a leftover group. */
  template?: string;
  /** AWS: device name of the image's root volume, for example /dev/sda1; another name would add a second volume. */
  rootDevice?: string;
  /**
   * Hash of the machine's description, as a tag on machines from creation (POOL_HASH_TAG). Absent: made before hashes
   * existed. For a control plane: revision of its encryption keys; absent: never rotated.
   */
  hash?: string;
  /**
   * Text for cloud-init, at most 16 KiB. Contains no lasting secret (except ControlPlanePool): everyone who may
   * describe the machines in the cloud can read it.
   */
  userData: string;
}

/** Inputs of a provider's program for the layer `machines`. */
export interface MachinesInputs {
  owner: Owner;
  region: string;
  /** Zones of the cluster, for pools that name none. */
  zones: string[];
  network: NetworkOutputs;
  pools: MachinePool[];
  /**
   * Source CIDRs of API servers that call kubelets (TCP 10250). Empty: machines connect outwards, nothing is allowed
   * in.
   */
  kubeletClients: string[];
  /** Endpoint of a control plane on the cluster's own machines. Absent: hosted elsewhere. */
  endpoint?: EndpointOutputs;
}

/** Outputs of a provider's program for the layer `machines`. */
export interface MachinesOutputs {
  /** The cloud's name of each pool's machine group. */
  groups: Record<string, string>;
  /** Values for the provider itself, for example the firewall. */
  extra?: Record<string, string>;
}

/** Inputs of a provider's program for the layer `endpoint`: the load balancer of a control plane on machines. */
export interface EndpointInputs {
  owner: Owner;
  region: string;
  zones: string[];
  network: NetworkOutputs;
  /** Port of the API servers and of the load balancer. */
  port: number;
}

/** Outputs of a provider's program for the layer `endpoint`. They never change while the layer exists. */
export interface EndpointOutputs {
  /** DNS name or IP address of the load balancer. */
  host: string;
  port: number;
  /** Values for other layers of the same provider: target groups, and rules between the cluster's machines. */
  extra: Record<string, string>;
}

/** Machines of a control plane. The cloud never replaces or removes one on its own. */
export interface ControlPlanePool extends MachinePool {
  /** Whether the user data contain the cluster's CA keys: such a template is deleted once replaced. */
  holdsKeys: boolean;
}

/** Inputs of a provider's program for the layer `control-plane`. */
export interface ControlPlaneInputs {
  owner: Owner;
  region: string;
  zones: string[];
  network: NetworkOutputs;
  endpoint: EndpointOutputs;
  pool: ControlPlanePool;
}

/** Outputs of a provider's program for the layer `cluster`. */
export interface ManagedClusterOutputs {
  /** The cloud's name of the cluster. */
  name: string;
  /** https://host[:port] */
  endpoint: string;
  /** PEM. */
  certificateAuthority: string;
  /** Running version as reported by the cloud, without "v". */
  version: string;
  /** Values for the provider's kubeconfig(), for example the resource group. */
  extra?: Record<string, string>;
}

/** A change that a run would make or has made. */
export interface Change {
  /** Pulumi's operation: create, update, delete, replace, ... Unchanged resources are left out. */
  operation: string;
  /** Type and logical name, for example `aws:eks/cluster:Cluster cluster`. */
  resource: string;
  /** Differing properties, for updates and replacements. */
  properties?: string[];
}

/** Progress of a run, without secrets. */
export interface CloudProgress {
  /** For example "creating aws:eks/cluster:Cluster cluster". */
  description: string;
  /** Finished resources, and the total if known. */
  done: number;
  total?: number;
}

/** Backend of an owner's stacks, and encryption of its secrets. */
export interface StateBackend {
  /** file://, s3://, gs:// or azblob:// (PULUMI_BACKEND_URL). */
  url: string;
  /** Key management service in Pulumi's form, for example awskms://alias/coppice. Absent: the passphrase. */
  secretsProvider?: string;
  /** Never logged. */
  passphrase?: string;
  /**
   * Environment variables with the engine's credentials for the backend, for example AWS_ACCESS_KEY_ID. Never logged.
   */
  env: Readonly<Record<string, string>>;
  /** Copies of states. Absent: none; a lost state is rebuilt from the cloud alone. */
  copies?: StateCopies;
}

/**
 * Keeps a copy of every stack's state, in case the backend loses it. Copies are small (1 KB), with secrets encrypted.
 */
interface StateCopies {
  /** Called after every run, including failed ones. `stack` is `<technicalID>.<layer>`. */
  save(stack: string, copy: Buffer): Promise<void>;
  /** The last copy. Called when the backend lacks the stack. */
  load(stack: string): Promise<Buffer | undefined>;
  /** Deletes the copy of a destroyed stack. */
  remove(stack: string): Promise<void>;
}

/** Inputs of a call to a cloud. */
export interface CloudContext {
  owner: Owner;
  account: CloudAccount;
  region: string;
  profile: CloudProfile;
  state: StateBackend;
  log: Log;
  signal: AbortSignal;
  now(): Date;
  /** For apply: read the cloud first, and revert drift. */
  refresh?: boolean;
  onProgress?: (progress: CloudProgress) => void;
}

/** A desired managed cluster. */
export type WantedCluster = Omit<ManagedClusterInputs, 'network' | 'owner'>;

/** A kubeconfig that needs no command line tool of the cloud, until it expires. */
export interface CloudKubeconfig {
  /** YAML or JSON with a bearer token or a client certificate. */
  kubeconfig: string;
  /** RFC 3339. Absent: does not expire. */
  expiresAt?: string;
}

/** Result of ManagedClusters.checkAccount. */
export interface AccountCheck {
  /** Account, project or subscription of the credentials. */
  id: string;
  /** Missing permissions in the cloud's names; empty when complete or unknown. */
  missing: string[];
}

/** A cloud resource with our tags. */
export interface TaggedResource {
  /** The cloud's id (ARN, self link, resource id). */
  id: string;
  /** The cloud's type, for example `eks:cluster`. */
  type: string;
  region: string;
  owner: Partial<Owner>;
  /** Logical name in our programs, if known; a pool's group is `pool-<name of the pool>` in every cloud. */
  part?: string;
  /** Machine type of a machine, for its price, if the cloud reports it. */
  machineType?: string;
  /** RFC 3339, if the cloud reports it. */
  createdAt?: string;
}

/** A node of a managed cluster, for calls to its cloud. Not by name alone: clouds reuse names. */
export interface CloudNode {
  name: string;
  /** Node.spec.providerID. */
  providerID: string;
  /** Instance id, for clouds that reuse providerIDs (GKE repairs a machine under its name). */
  instance?: string;
}

/** State of a pool after named nodes were removed. */
export interface PoolLeft {
  /** Desired size, as the cloud reports it. */
  size: number;
  /** See CloudPool.inZones. */
  inZones?: Record<string, number>;
  /** Why some nodes stay: the cloud refused. */
  refused?: CoppiceError;
}

/**
 * A cloud's managed service (EKS, GKE, AKS) with its network. Every method is idempotent, also after a crash at any
 * point. Errors are CoppiceErrors with a Gardener code where the cause is known.
 */
export interface ManagedClusters {
  /**
   * Version of programs and SDKs: clusters applied by another version are applied again. Change it when a program
   * declares something else for equal inputs.
   */
  readonly version: string;
  /** Whether it can adopt existing clusters (ManagedCluster.adopt). Absent: no. */
  readonly adopts?: boolean;
  /** All problems of the wish. Pure. */
  validate(cluster: WantedCluster, profile: CloudProfile): Problem[];
  /** Asks the cloud for identity and permissions of the credentials. Changes nothing. */
  checkAccount(ctx: CloudContext): Promise<AccountCheck>;
  /** Changes that apply would make. Changes nothing. */
  preview(ctx: CloudContext, cluster: WantedCluster): Promise<Change[]>;
  /** Creates or updates network and cluster; takes over resources with our tags. Takes minutes. */
  apply(ctx: CloudContext, cluster: WantedCluster): Promise<ManagedClusterOutputs>;
  /** Drift since the last apply; reverts nothing. */
  drift(ctx: CloudContext, cluster: WantedCluster): Promise<Change[]>;
  /** Deletes everything that was made for the owner, in any half-built state; missing resources are fine. */
  destroy(ctx: CloudContext, cluster: WantedCluster): Promise<void>;
  /**
   * Like destroy, for an orphaned owner of unknown kind: also deletes machine groups and control planes on machines.
   * Tags describe them when the state of their stacks is lost too. Absent: destroy covers everything.
   * @param cluster the place, without pools
   */
  destroyLeftOvers?(ctx: CloudContext, cluster: WantedCluster): Promise<void>;
  /** Issues access with the account's credentials; creates nothing in the cloud. */
  kubeconfig(ctx: CloudContext, outputs: ManagedClusterOutputs): Promise<CloudKubeconfig>;
  /**
   * Ends exactly these drained nodes of a pool with a `desired` size, and lowers the size by their number: no other
   * machine starts or ends. Nodes that are gone, going, or of another pool or owner are ignored. Resolves once the
   * cloud accepted; machines may still be ending. A later `apply` with this size changes nothing. Rejects when the
   * result is unknown. Absent: unsupported.
   */
  removeNodes?(
    ctx: CloudContext,
    outputs: ManagedClusterOutputs,
    pool: string,
    nodes: readonly CloudNode[],
  ): Promise<PoolLeft>;
  /** Everything in the region with our tags, of any owner. */
  tagged?(ctx: Omit<CloudContext, 'owner'>): Promise<TaggedResource[]>;
}

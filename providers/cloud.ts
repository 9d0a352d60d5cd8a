import type { CloudProfile } from '../operator/api/cloudprofile.ts';
import type { CoppiceError } from '../operator/api/errors.ts';
import type { Log } from '../operator/kube/log.ts';
import type { Taint } from '../operator/kube/resources.ts';
import type { Problem } from './problem.ts';

/** Whom a cloud resource belongs to: becomes tags (labels at GCP) on everything, by which state is rebuilt and orphans are found. */
export interface Owner {
  /** Unique in the garden, at most 63 characters, a DNS label: physical names are made of it. */
  technicalID: string;
  /** UID of the WorkerCluster: tells a cluster from an earlier one of the same name. */
  uid: string;
  /** Name and namespace of the WorkerCluster in the garden. */
  name: string;
  namespace: string;
  /** UID of the garden's namespace kube-system: what belongs to another garden in the same account is no orphan of ours. */
  garden?: string;
}

/** A cloud account as a runner uses it. */
export interface CloudAccount {
  /**
   * What limits of the cloud count against (account, project or subscription id), as far as it is known; otherwise the name of the
   * credentials.
   */
  id: string;
  /** Keys of the credentials' Secret, decoded. Never logged, never in a status. */
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
  /** How many there should be now; absent while an autoscaler decides between minimum and maximum. */
  desired?: number;
  spot: boolean;
  /** GPUs of one machine; 0 for none. */
  gpu: number;
  architecture: 'amd64' | 'arm64';
  labels: Record<string, string>;
  taints: Taint[];
  /** A node has them when it registers; who takes one away does not find it back. Absent: none. */
  startupTaints?: Taint[];
  /** Empty: all zones of the cluster. */
  zones: string[];
  /** How many of `desired` are in which zone, once named nodes went. Absent: evenly. Read where the cloud counts by zone, and else ignored. */
  inZones?: Record<string, number>;
  /** GiB of the root disk. Absent: the provider's default. */
  diskGiB?: number;
  /** EKS: name of the node group, of a pool of which nothing else is known any more. */
  nodeGroup?: string;
}

/** Inputs of a provider's program for the layer `network`. */
export interface NetworkInputs {
  owner: Owner;
  region: string;
  /** At least two where the cloud has so many. */
  zones: string[];
  /** Ranges in CIDR notation. `pods` is used by clouds whose pods take addresses of the network. */
  cidrs: { nodes: string; pods: string; services: string };
}

/** Outputs of a provider's program for the layer `network`, and inputs of the layers on it. Ids are the cloud's own. */
export interface NetworkOutputs {
  network: string;
  /** Private subnets, one a zone; one for all zones at clouds whose subnets are regional (zone is then absent). */
  subnets: { id: string; zone?: string }[];
  /** What only this provider's other layers understand. */
  extra?: Record<string, string>;
}

/** A cluster that exists already and is taken over: never made, never replaced. */
export interface Adoption {
  /** The cloud's name of the cluster, or its full id. */
  id: string;
  /** What becomes of it in the end. Release: it stays, without what we made in it; Delete: it goes like one of ours. */
  deletionPolicy: 'Release' | 'Delete';
}

/** Inputs of a provider's program for the layer `cluster`: EKS, GKE or AKS. */
export interface ManagedClusterInputs {
  owner: Owner;
  region: string;
  zones: string[];
  /** Minor or full version, as the cloud takes it. Empty: what the cluster that is taken over runs. */
  kubernetesVersion: string;
  cidrs: { nodes: string; pods: string; services: string };
  network: NetworkOutputs;
  pools: CloudPool[];
  /** Who may reach the API server over the internet, CIDR; empty: everybody who can authenticate (of one taken over: as it is). */
  authorizedNetworks: string[];
  /** Absent: the cluster is made. Present: this one is taken over, and `pools` are ours beside those that it has. */
  adopt?: Adoption;
  /** True: pools have no nodes for a while, and what needs some stays declared. */
  asleep?: boolean;
}

/** A group of machines that join a cluster whose control plane is not the cloud's. */
export interface MachinePool extends CloudPool {
  /**
   * As the cloud names it. AWS: `ami-...`, in the region. GCP: self link of an image or its family. Azure: id of an image
   * (`/subscriptions/.../images/x`), of one of a community gallery (`/CommunityGalleries/...`), or `publisher:offer:sku:version`.
   */
  image: string;
  /** GCP: name of what the machines are made from, of a group of which nothing else is known any more. */
  template?: string;
  /** AWS: device name of the image's root volume, for example /dev/sda1: another would become a second volume. */
  rootDevice?: string;
  /**
   * Tells machines of another description from those of this one; each bears it from when it was made (POOL_HASH_TAG). Absent: made by
   * an operator that did not know of it. Of a control plane: the revision of its keys of Secrets; absent: they have never changed.
   */
  hash?: string;
  /**
   * What cloud-init gets, as text; 16 KiB at most. Holds no lasting secret (but see ControlPlanePool): whoever may describe the
   * machines in the cloud can read it.
   */
  userData: string;
}

/** Inputs of a provider's program for the layer `machines`. */
export interface MachinesInputs {
  owner: Owner;
  region: string;
  /** Of the cluster: for pools that name none. */
  zones: string[];
  network: NetworkOutputs;
  pools: MachinePool[];
  /** From where the API server calls kubelets (TCP 10250), CIDR. Empty: machines dial out, nothing is let in. */
  kubeletClients: string[];
  /** Present: the control plane is on machines of the cluster, beside these. */
  endpoint?: EndpointOutputs;
}

/** Outputs of a provider's program for the layer `machines`. */
export interface MachinesOutputs {
  /** The cloud's name of the group of machines, by name of the pool. */
  groups: Record<string, string>;
  /** What only the provider understands, for example the firewall. */
  extra?: Record<string, string>;
}

/** Inputs of a provider's program for the layer `endpoint`: where the API server of a control plane on machines is reached. */
export interface EndpointInputs {
  owner: Owner;
  region: string;
  zones: string[];
  network: NetworkOutputs;
  /** Of API servers on the machines, and of the load balancer. */
  port: number;
}

/** Outputs of a provider's program for the layer `endpoint`. They stay what they are for as long as the layer exists. */
export interface EndpointOutputs {
  /** A name or an IP address of the load balancer. */
  host: string;
  port: number;
  /** What only this provider's other layers understand: where machines register, and what lets machines of the cluster reach each other. */
  extra: Record<string, string>;
}

/** The machines that run a control plane. None is ever replaced, or taken away, by the cloud. */
export interface ControlPlanePool extends MachinePool {
  /** Whether what it is told holds the keys of the cluster's authorities: such a template goes when another one takes its place. */
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
  /** What the cloud says it runs, without "v". */
  version: string;
  /** What only the provider's kubeconfig() understands, for example the resource group. */
  extra?: Record<string, string>;
}

/** One change that a run would make or has made. */
export interface Change {
  /** As Pulumi names it: create, update, delete, replace, ... Unchanged resources are left out. */
  operation: string;
  /** Type and logical name, for example `aws:eks/cluster:Cluster cluster`. */
  resource: string;
  /** Names of the properties that differ, for updates and replacements. */
  properties?: string[];
}

/** How far a run is; safe to show (no secrets). */
export interface CloudProgress {
  /** For example "creating aws:eks/cluster:Cluster cluster". */
  description: string;
  /** Resources done, and how many there are in all as far as that is known. */
  done: number;
  total?: number;
}

/** Where the state of an owner's stacks is kept, and how the secrets in it are encrypted. */
export interface StateBackend {
  /** file://, s3://, gs:// or azblob://, as Pulumi takes it (PULUMI_BACKEND_URL). */
  url: string;
  /** A key management service as Pulumi names it, for example awskms://alias/coppice. Absent: the passphrase. */
  secretsProvider?: string;
  /** Never logged. */
  passphrase?: string;
  /** Environment by which the engine authenticates at the backend, for example AWS_ACCESS_KEY_ID. Never logged. */
  env: Readonly<Record<string, string>>;
  /** Absent: there are no copies, and a state that the backend loses is rebuilt from the cloud alone. */
  copies?: StateCopies;
}

/** Keeps a copy of every stack's state, in case the backend loses it. Copies are small (1 KB) and secrets in them encrypted. */
export interface StateCopies {
  /** After every run, failed ones too. `stack` is `<technicalID>.<layer>`. */
  save(stack: string, copy: Buffer): Promise<void>;
  /** The last copy. Asked for when the backend does not have the stack. */
  load(stack: string): Promise<Buffer | undefined>;
  /** The stack is gone, and nothing of it is left. */
  remove(stack: string): Promise<void>;
}

/** What a call to a cloud works for, and with. */
export interface CloudContext {
  owner: Owner;
  account: CloudAccount;
  region: string;
  profile: CloudProfile;
  state: StateBackend;
  log: Log;
  signal: AbortSignal;
  now(): Date;
  /** For apply: look at the cloud first, and so mend what others changed there. */
  refresh?: boolean;
  onProgress?: (progress: CloudProgress) => void;
}

/** A managed cluster as it is wanted. */
export type ManagedCluster = Omit<ManagedClusterInputs, 'network' | 'owner'>;

/** A kubeconfig that works without a cloud's command line tool, until it expires. */
export interface CloudKubeconfig {
  /** YAML or JSON text with a bearer token or a client certificate in it. */
  kubeconfig: string;
  /** RFC 3339. Absent: it does not expire by itself. */
  expiresAt?: string;
}

/** Credentials as they were found; see ManagedClusters.checkAccount. */
export interface AccountCheck {
  /** Account, project or subscription that the credentials are of. */
  id: string;
  /** Permissions that are needed and missing, in the cloud's own names; empty when all are there or it cannot be told without trying. */
  missing: string[];
}

/** Something in the cloud that bears our tags. */
export interface TaggedResource {
  /** The cloud's id of it (ARN, self link, resource id). */
  id: string;
  /** The cloud's type, for example `eks:cluster`. */
  type: string;
  region: string;
  owner: Partial<Owner>;
  /** Logical name of it in our programs, where it tells: of a pool's group `pool-<name of the pool>`, in every cloud. */
  part?: string;
  /** Machine type of a machine, where the cloud tells: gives its price. */
  machineType?: string;
  /** RFC 3339, where the cloud tells. */
  createdAt?: string;
}

/** A node of a managed cluster, as its cloud is told of it. Names alone say nothing: clouds give them again. */
export interface CloudNode {
  name: string;
  /** Node.spec.providerID. */
  providerID: string;
  /** Where providerIDs come again too (GKE repairs a machine under its name), what tells this machine from a later one. */
  instance?: string;
}

/** What a cloud asks for in a pool once named nodes were to be removed. */
export interface PoolLeft {
  /** Nodes that it asks for from now on, as it says itself. */
  size: number;
  /** See CloudPool.inZones. */
  inZones?: Record<string, number>;
  /** Why some of the nodes stay: the cloud said no, and is not ending them. */
  refused?: CoppiceError;
}

/**
 * A cloud's managed service (EKS, GKE, AKS) with the network under it. Every method is idempotent and safe to repeat after a
 * crash at any point. Errors are CoppiceErrors with a Gardener code where the cause is known.
 */
export interface ManagedClusters {
  /**
   * Of programs and SDKs: a cluster that was applied by another version is applied again. Change it when a program declares
   * something else for equal inputs.
   */
  readonly version: string;
  /** Whether it can take over clusters that exist (ManagedCluster.adopt). Absent: it cannot. */
  readonly adopts?: boolean;
  /** What of this cannot be had, all of it at once. Pure. */
  validate(cluster: ManagedCluster, profile: CloudProfile): Problem[];
  /** Asks the cloud who the credentials are and what they may do. Makes nothing. */
  checkAccount(ctx: CloudContext): Promise<AccountCheck>;
  /** What apply would change. Makes nothing. */
  preview(ctx: CloudContext, cluster: ManagedCluster): Promise<Change[]>;
  /** Makes network and cluster be as described; adopts what bears our tags already. Takes minutes. */
  apply(ctx: CloudContext, cluster: ManagedCluster): Promise<ManagedClusterOutputs>;
  /** What differs in the cloud from what was last applied; mends nothing. */
  drift(ctx: CloudContext, cluster: ManagedCluster): Promise<Change[]>;
  /** Takes away everything that was made for the owner, in any half-built state; what is gone is fine. */
  destroy(ctx: CloudContext, cluster: ManagedCluster): Promise<void>;
  /**
   * destroy for an owner that is gone, of whom nobody knows what it was: takes away groups of machines and control planes on machines
   * as well. What they were is told by their tags where the state of their stacks is lost too, as far as they tell. Absent: destroy is all.
   * @param cluster what the place is like, without pools
   */
  destroyLeftOvers?(ctx: CloudContext, cluster: ManagedCluster): Promise<void>;
  /** Mints access with the account's credentials; makes nothing in the cloud. */
  kubeconfig(ctx: CloudContext, outputs: ManagedClusterOutputs): Promise<CloudKubeconfig>;
  /**
   * Ends exactly these nodes (the caller has drained them) of a pool that has a `desired` size, and has the cloud ask for as many fewer: no
   * other machine comes or goes for it. Nodes that are gone, going, or of another pool or owner change nothing. Resolves once the cloud
   * counts as told, when machines may still be ending. `apply` with this size is to follow, which then changes nothing in the cloud.
   * Rejects where it cannot be told what was done. Absent: it cannot.
   */
  removeNodes?(
    ctx: CloudContext,
    outputs: ManagedClusterOutputs,
    pool: string,
    nodes: readonly CloudNode[],
  ): Promise<PoolLeft>;
  /** Everything in the region that bears our tags, of whatever owner. */
  tagged?(ctx: Omit<CloudContext, 'owner'>): Promise<TaggedResource[]>;
}

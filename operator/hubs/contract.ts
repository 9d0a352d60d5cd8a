import { LABELS } from '../api/group.ts';
import type { HubSpec, HubTypeName } from '../api/hub.ts';
import type { KubeObject, Pod, Resource } from '../kube/resources.ts';

/** The API server that has an object: the hub's, or the member cluster's. */
export type Side = 'hub' | 'member';

/** Reads from one API server. Answers are bounded; methods throw as KubeClient does. */
export interface Reader {
  get(resource: Resource, name: string, namespace?: string): Promise<KubeObject | undefined>;
  /** Also empty where the kind is not served. */
  list(resource: Resource, options?: { namespace?: string; labelSelector?: string }): Promise<KubeObject[]>;
  /** Whether the kind is served in this version. */
  serves(resource: Resource): Promise<boolean>;
}

/** An object and its API server. */
export interface Place {
  readonly on: Side;
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name: string;
}

/** A desired object. It is labelled as Coppice's when written, and foreign objects are never overwritten. */
export interface WantedObject {
  readonly on: Side;
  readonly resource: Resource;
  readonly object: KubeObject;
  /**
   * Also written, by the subresource `status`, where Coppice is the reporter. Conditions get their lastTransitionTime
   * at the write.
   */
  readonly status?: Record<string, unknown>;
  /** Only this subresource of an existing object is written, for example `approval` of a certificate request. */
  readonly subresource?: string;
  /**
   * Shared with others (a namespace, a list of all members): created when missing, and kept when the cluster leaves.
   * With a resourceVersion in its metadata it is also updated, at that version only: given only where something
   * differs.
   */
  readonly shared?: true;
  /**
   * resourceVersion of the object that was read, where this repeats fields of others (taints). After a change since
   * then, the object is read again before the write, which would otherwise revert that change.
   */
  readonly basedOn?: string | undefined;
}

/**
 * An object that the hub itself creates for a member and may leave behind: deleted when the cluster leaves, if it has
 * these labels.
 */
export interface Trace extends Place {
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * All objects of a kind in a namespace named by the receipt, whoever created them: they are deleted with the namespace.
 */
export interface Contents {
  readonly on: Side;
  readonly resource: Resource;
  /** Name of the namespace. */
  readonly within: string;
}

/** A patch of one field of a foreign object that makes the hub reconcile it again; skipped when the UID differs. */
export interface Touch extends Place {
  readonly uid: string;
  /** JSON merge patch. */
  readonly patch: Readonly<Record<string, unknown>>;
}

/** A foreign registration in the hub of a cluster that shall join it, matched by kube-system UID or by URL. */
export interface ForeignEntry {
  /** Name of the cluster in the hub. */
  readonly name: string;
  /** The object that represents the cluster first, then those that it refers to. */
  readonly places: readonly (Place & { readonly uid: string })[];
  /** Why it cannot be adopted, the beginning of a sentence; absent: it can. */
  readonly whyNot?: string;
}

/** Whether no Coppice operator, of this garden or another, created the object, for a hub or otherwise. */
export const isForeign = ({ metadata: { labels = {} } }: KubeObject): boolean =>
  labels[LABELS.membership] === undefined && labels[LABELS.managedBy] !== 'coppice';

/** The object as a place to adopt; read from the hub. */
export const takenOver = (resource: Resource, { metadata: { namespace, name, uid = '' } }: KubeObject) => ({
  on: 'hub' as const,
  resource,
  ...(namespace && { namespace }),
  name,
  uid,
});

/** Steps of a join in order; each is a condition of the Membership. */
export const JOIN_STEPS = ['IdentityReady', 'CredentialsReady', 'Registered', 'CapacityVisible'] as const;
export type JoinStep = (typeof JOIN_STEPS)[number];

/** A step of a join: its desired objects, and what is still missing once they exist. */
export interface HubStep {
  readonly type: JoinStep;
  /** In order of application. */
  readonly apply?: readonly WantedObject[];
  /** Objects that the hub will create because of them. */
  readonly traces?: readonly Trace[];
  /** What the hub must do before the next step begins: a sentence that names the object. undefined: nothing. */
  readonly waiting?: string | undefined;
}

/** A stage of a leave: the next stage begins when all its objects are gone, finalizers included. */
export interface RemovalStep {
  /** Written first: shared objects without this member, and Coppice's own objects in another form. */
  readonly apply?: readonly WantedObject[];
  /** Objects of the hub whose names could not be recorded before: deleted first, by labels alone. */
  readonly sweep?: readonly Trace[];
  /** Objects named by the receipt, and traces in a namespace that the receipt names. */
  readonly places: readonly (Place | Trace)[];
  /** The stage does not begin before this is over: a sentence that names the obstacle. */
  readonly waiting?: string | undefined;
  /** In a forced leave: deleted, and their finalizers removed, before those of the places. */
  readonly force?: readonly (Place | Trace | Contents)[];
}

/**
 * The ServiceAccount of one side on the other. Created with exactly these rights, with the objects of step
 * IdentityReady.
 */
export interface Identity {
  /** Key of its credentials; unique within the hub type. */
  readonly name: string;
  /** The API server with the account. */
  readonly on: Side;
  readonly account: { readonly namespace: string; readonly name: string };
  readonly rules: readonly Readonly<{
    apiGroups?: string[];
    resources?: string[];
    resourceNames?: string[];
    nonResourceURLs?: string[];
    verbs: string[];
  }>[];
  /**
   * Life of its token in seconds; the token is renewed well before its end. 'forever': the hub cannot take a renewed
   * token, which status reports.
   */
  readonly life: number | 'forever';
}

/** The credential held for an Identity. */
export interface Credential {
  readonly token: string;
  /** RFC 3339; absent: it never expires. */
  readonly expiresAt?: string;
}

/** Address of an API server. `ca` is PEM; absent: a public CA signs its certificate. */
export interface ApiServerEndpoint {
  readonly server: string;
  readonly ca?: string | undefined;
  readonly proxyURL?: string | undefined;
}

/** Amounts as Kubernetes quantities. */
export type HubAmounts = Readonly<Partial<Record<'cpu' | 'memory' | 'gpu', string>>>;

/** A cluster that is joining a hub or has joined it, as known without asking the hub. */
export interface Member {
  /** Name in the hub: derived from namespace and name, within the hub's limit. */
  readonly name: string;
  /** Name of the Hub object: part of the names of objects in the member, since a cluster may be in several hubs. */
  readonly hubName: string;
  /** The WorkerCluster. */
  readonly cluster: { readonly namespace: string; readonly name: string };
  /** UID of its namespace kube-system: identifies the cluster, whatever its names. */
  readonly id: string;
  /** Address for the hub. */
  readonly endpoint: ApiServerEndpoint;
  /** Address of the hub for the member. */
  readonly hub: ApiServerEndpoint;
  /** Provider, region, mode, version and the Hub's own labels, as valid Kubernetes labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly zones: readonly string[];
  /** CIDR ranges of pods and Services; absent: unknown. */
  readonly ranges?: { readonly pods?: string | undefined; readonly services?: string | undefined } | undefined;
  readonly version?: string | undefined;
  /** Allocatable of its nodes now; the planned amount where it scales from zero. */
  readonly capacity: HubAmounts;
  /** Allocatable of one node of each present size, or of each planned size where there are no nodes. */
  readonly nodeSizes: readonly HubAmounts[];
  /** Whether its API server answers; otherwise nothing is written there. */
  readonly answers: boolean;
  /**
   * Why no new workload may be placed on it: Coppice's taint, or the hub's equivalent, keeps the scheduler away.
   * Absent: it is open.
   */
  readonly closed?: 'Initializing' | 'Asleep' | 'Leaving' | undefined;
  /** By Identity; the existing ones. */
  readonly credentials: Readonly<Record<string, Credential>>;
}

/** Effect of a drain on workloads that a hub has placed on a cluster. */
export type DrainEffect =
  /** The hub places them elsewhere before they end here. */
  | 'Moves'
  /** The hub places no new ones; whoever placed them must remove them. */
  | 'Waits'
  /** They end with the membership. */
  | 'Deletes'
  /** The hub cannot drain. */
  | 'None';

/** A workload that a hub has placed on a cluster, for messages: "ResourceBinding shop/web". */
export type Placement = string;

/** A workload that a hub cannot place: a number of pods of one size. */
export interface Demand {
  /** The workload, for messages. Demands of one source are placed as a whole. */
  readonly source: string;
  /** UID of the workload object (a Deployment, a Job), which several hubs of one API server share. Absent: unknown. */
  readonly uid?: string | undefined;
  /** Namespace in the hub; absent: cluster-scoped. */
  readonly namespace?: string | undefined;
  readonly count: number;
  readonly each: HubAmounts;
  /** Other resources requested per pod, by name (huge pages, devices). Absent: none. */
  readonly others?: Readonly<Record<string, string>>;
  /** Node rules of each pod, as in a pod spec. Absent: every node without taints. */
  readonly nodes?: NodeRules;
  /** Scheduling fields of the pod template, where the hub has it. Absent: the three fields above apply. */
  readonly template?: PodTemplate;
  /** RFC 3339. */
  readonly since: string;
  /** Priority of its pods. Absent: the hub does not report it, and it counts as 0, as in Kubernetes. */
  readonly priority?: number | undefined;
  /** The whole source goes to one cluster. Absent: it may be divided. */
  readonly inOneCluster?: true;
  /**
   * The hub places it nowhere until it is told that one cluster has room for all of it. Absent: the hub does not ask.
   */
  readonly isHeld?: true;
  /** Why its requests cannot be read or judged, a sentence: no cluster is bought for it. Absent: they can. */
  readonly problem?: string | undefined;
  /** Whether the hub would place it on such a member, apart from capacity. Absent: on every member. */
  readonly accepts?: (member: KnownMember) => boolean;
  /** The hub places it only where this kind is served. Absent: every cluster serves it, or the hub does not check. */
  readonly customKind?: CustomKind | undefined;
}

/** The fields by which a hub selects a member. */
type KnownMember = Pick<Member, 'name' | 'labels' | 'zones'>;

/**
 * A kind that not every cluster serves, as the hub knows it; one object for all workloads of the kind per observation.
 */
export interface CustomKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly kind: string;
  /** Names of the members that serve it, by the hub's status. */
  readonly servedBy: ReadonlySet<string>;
  /** Whether the hub itself propagates its definition to such a member. */
  readonly isBroughtTo: (member: KnownMember) => boolean;
}

/** Node rules of a pod spec. */
export interface NodeRules {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: { readonly nodeAffinity: { readonly requiredDuringSchedulingIgnoredDuringExecution: object } };
  readonly tolerations?: readonly object[];
}

/** The scheduling fields of a pod template, bounded by the hub's file. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Pod['spec'];
}

/** A workload that a hub has placed on a member. */
export interface PlacedWork
  extends Pick<Demand, 'source' | 'count' | 'each' | 'inOneCluster' | 'accepts' | 'customKind'> {
  /** The object on the member that creates its pods. */
  readonly workload: { readonly kind: string; readonly namespace: string; readonly name: string };
  /**
   * Why the hub would not move it to another cluster with room, the end of a sentence that begins with the source.
   * Absent: it would.
   */
  readonly stays?: string | undefined;
}

/** A workload with pods, and the members on which its hub has placed it. */
export interface PlacedSource {
  /** The workload, for messages: unique in the hub. */
  readonly source: string;
  /** Names of the members. */
  readonly members: readonly string[];
  /** Members of this namespace only, where names are unique within one. Absent: names are unique in the hub. */
  readonly memberNamespace?: string | undefined;
  /** The object on the members that creates its pods. Absent: the hub does not report it. */
  readonly workload?: { readonly namespace: string; readonly name: string } | undefined;
  /** The hub divides replicas by the members' free capacity. Absent: each member may have a copy or a fixed share. */
  readonly isDivided?: true;
}

/** Watched objects that report unplaced workloads. */
export interface DemandWatch {
  readonly resources: readonly Resource[];
  /** Digest of an object's report; undefined: none. */
  readonly says: (object: KubeObject) => string | undefined;
}

/**
 * Answer to a hub about a workload that it holds. Retry: no capacity can be bought for it now, and others may take its
 * turn.
 */
export interface WorkAnswer {
  readonly state: 'Ready' | 'Pending' | 'Retry';
  readonly message: string;
}

/** A part of an object's status in the hub, written only at the version that was read. */
export interface StatusPart {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** Questions of a hub about workloads that it holds until capacity is confirmed. */
export interface Asking {
  /** Sources of these workloads, as in Demand. */
  readonly sources: readonly string[];
  /**
   * Workloads placed a moment ago: their pods may not be visible on their clusters yet, but their capacity is taken.
   * Pure.
   */
  taking(now: Date): readonly Demand[];
  /**
   * The status parts to write, only those that differ, in order of urgency. Pure.
   * @param say answer for a source (undefined: unknown now); undefined: no policy buys for this hub
   */
  answers(say: ((source: string) => WorkAnswer | undefined) | undefined, now: Date): readonly StatusPart[];
}

/**
 * A multi-cluster system. `observe` reads, everything else is pure: the controller records the returned objects,
 * applies them, and deletes only recorded ones. @typeParam Seen result of one observation of hub and member
 */
export interface HubType<Seen = unknown> {
  readonly type: HubTypeName;
  /** Longest permitted name of a member. */
  readonly nameLimit: number;
  /** Kinds in the hub whose objects of Coppice's advance a join: they are watched. */
  readonly watches: readonly Resource[];
  /** Kinds it creates in addition to Secrets and those of identities: leftovers of a member are searched among them. */
  readonly writes?: readonly Pick<Place, 'on' | 'resource'>[];
  /** Which side opens connections. */
  dials(spec: HubSpec): 'HubToMember' | 'MemberToHub' | 'Both' | 'Neither';
  /** Why no cluster can join this hub, as sentences. Nothing is written while there are any. */
  validate(hub: Reader, spec: HubSpec): Promise<readonly string[]>;
  identities(member: Member, spec: HubSpec): readonly Identity[];
  observe(hub: Reader, cluster: Reader | undefined, member: Member, spec: HubSpec): Promise<Seen>;
  /**
   * A foreign registration of the same cluster under any name; read before anything is created. Absent: the hub cannot
   * tell.
   */
  foreignEntry?(hub: Reader, member: Member, spec: HubSpec): Promise<ForeignEntry | undefined>;
  /** The desired objects, the same at each call; also of a cluster that joined long ago. */
  join(member: Member, spec: HubSpec, seen: Seen): readonly HubStep[];
  leave(member: Member, spec: HubSpec, seen: Seen): readonly RemovalStep[];
  /** Effect of a drain with the hub's present setup. */
  drains(spec: HubSpec, seen: Seen): DrainEffect;

  /**
   * Keeps new workloads away: existing objects in their form for a `closed` member; nothing is created. Absent: the hub
   * cannot cordon.
   */
  cordon?(member: Member, spec: HubSpec, seen: Seen): readonly WantedObject[];
  /** Makes the hub move workloads away, in addition to `cordon`. */
  drain?(member: Member, spec: HubSpec, seen: Seen): readonly WantedObject[];
  /** Workloads still placed on the member. Absent: the hub cannot tell, and the drain counts as done. */
  placements?(member: Member, seen: Seen): readonly Placement[];
  /**
   * Unplaced workloads that the hub would not retry by itself although this observation lets the member take more.
   * Applied once, with the steps; bounded by the hub's file.
   */
  requeue?(member: Member, spec: HubSpec, seen: Seen): readonly Touch[];
  /**
   * Removes obstacles to the deletion of a member's object that a person deletes in the hub, and that nobody else would
   * remove.
   */
  release?(member: Member, spec: HubSpec, seen: Seen): readonly Touch[];
  /** Workloads that the hub cannot place for lack of capacity. */
  demand?(hub: Reader, spec: HubSpec, hubName: string): Promise<readonly Demand[]>;
  /**
   * Placements decided by the hub: until their pods are visible, a member would look empty. Absent: the hub does not
   * report them.
   */
  placed?(hub: Reader, spec: HubSpec): Promise<readonly PlacedSource[]>;
  /** Watched so that workloads do not wait for the next observation. Absent: they wait. */
  demandWatch?: DemandWatch;
  /**
   * Workloads held by the hub until Coppice answers; undefined: the hub is not set up to ask. Absent: hubs of this type
   * never ask.
   */
  asks?(hub: Reader, spec: HubSpec, hubName: string): Promise<Asking | undefined>;
  /** Watched to notice that the hub was set up to ask. */
  askWatch?: DemandWatch;
  /**
   * Workloads with pods on a member, read before a cluster is emptied to decide whether they can be moved; a sentence:
   * the hub's setup moves none. Absent: the hub does not report them, and no cluster that could stay is emptied.
   */
  placedWork?(hub: Reader, spec: HubSpec, member: string): Promise<readonly PlacedWork[] | string>;
  /**
   * The part of a node's free amounts that the hub counts, in a cluster with these node sizes. Absent: all of it. The
   * hub places nothing on uncounted amounts, so they are no free capacity.
   */
  counts?(sizes: readonly HubAmounts[], spec: HubSpec): (free: HubAmounts) => HubAmounts;
  /** Free capacity of the member as the hub believes. */
  capacity?(member: Member, seen: Seen): HubAmounts | undefined;
  /**
   * Additional objects that a renewed credential needs before the old one expires (a restart, a changed annotation).
   */
  rotate?(member: Member, spec: HubSpec, seen: Seen): readonly WantedObject[];
}

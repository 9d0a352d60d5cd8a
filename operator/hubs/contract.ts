import { LABELS } from '../api/group.ts';
import type { HubSpec, HubTypeName } from '../api/hub.ts';
import type { KubeObject, Pod, Resource } from '../kube/resources.ts';

/** On which of the two API servers something is: the hub's, or that of the cluster that is its member. */
export type Side = 'hub' | 'member';

/** Reading from one of the two. Answers are bounded; each method throws as KubeClient does. */
export interface Reader {
  get(resource: Resource, name: string, namespace?: string): Promise<KubeObject | undefined>;
  /** Empty also where the kind is not served. */
  list(resource: Resource, options?: { namespace?: string; labelSelector?: string }): Promise<KubeObject[]>;
  /** Whether the kind is served in this version. */
  serves(resource: Resource): Promise<boolean>;
}

/** One object, and where it is. */
export interface Place {
  readonly on: Side;
  readonly resource: Resource;
  readonly namespace?: string;
  readonly name: string;
}

/** An object that is wanted. It is labelled as ours when it is written, and what is not ours is never written over. */
export interface Wanted {
  readonly on: Side;
  readonly resource: Resource;
  readonly object: KubeObject;
  /** Written as well, by the subresource `status`, where we are who reports it. Conditions get their lastTransitionTime when they are written. */
  readonly status?: Record<string, unknown>;
  /** Nothing but this part of an object that is there already is written, for example `approval` of a certificate request. */
  readonly subresource?: string;
  /**
   * Others use it too (a namespace, a list of all members): it is made where it is missing and stays when the cluster leaves. With a
   * resourceVersion in its metadata it is also changed, and only at this version: to be given only where something differs.
   */
  readonly shared?: true;
  /**
   * resourceVersion of the object that was looked at, where this repeats what others write there (taints). Changed since then, it is looked at
   * again before it is written, or what a person has just written would be taken back.
   */
  readonly basedOn?: string | undefined;
}

/** Something that a hub makes by itself for a member and may leave behind: deleted when the cluster leaves, if it has these labels. */
export interface Trace extends Place {
  readonly labels: Readonly<Record<string, string>>;
}

/** All objects of a kind in a namespace that the receipt names, whoever made them: they end with the namespace. */
export interface Contents {
  readonly on: Side;
  readonly resource: Resource;
  /** Name of the namespace. */
  readonly within: string;
}

/** An object of others, of which one field is changed so that the hub looks at it again; nothing, if it is another one by now. */
export interface Touch extends Place {
  readonly uid: string;
  /** A JSON merge patch. */
  readonly patch: Readonly<Record<string, unknown>>;
}

/** What somebody else has made in the hub for a cluster that is to join it: known by the UID of its kube-system, or by its URL. */
export interface ForeignEntry {
  /** Name of the cluster there. */
  readonly name: string;
  /** First what stands for the cluster, then what it refers to. */
  readonly places: readonly (Place & { readonly uid: string })[];
  /** Why we cannot make it ours, the beginning of a sentence; absent: we can. */
  readonly whyNot?: string;
}

/** Whether no operator of ours, of whatever garden, has made it, for a hub or for anything else. */
export const isForeign = ({ metadata: { labels = {} } }: KubeObject): boolean =>
  labels[LABELS.membership] === undefined && labels[LABELS.managedBy] !== 'coppice';

/** It as something to take over; read from the hub. */
export const takenOver = (resource: Resource, { metadata: { namespace, name, uid = '' } }: KubeObject) => ({
  on: 'hub' as const,
  resource,
  ...(namespace && { namespace }),
  name,
  uid,
});

/** Steps of a join in their order; each is a condition of the Membership. */
export const JOIN_STEPS = ['IdentityReady', 'CredentialsReady', 'Registered', 'CapacityVisible'] as const;
export type JoinStep = (typeof JOIN_STEPS)[number];

/** One step: what it wants there, and what is still missing after that. */
export interface Step {
  readonly type: JoinStep;
  /** In the order to apply them. */
  readonly apply?: readonly Wanted[];
  /** What the hub is about to make by itself because of it. */
  readonly traces?: readonly Trace[];
  /** What the hub has to do before the next step may begin: a sentence that names the object. undefined: nothing. */
  readonly waiting?: string | undefined;
}

/** What is to go, in order: the next is begun when all before it are gone, finalizers and all. */
export interface Removal {
  /** Written first: what is shared, without this member; and what is there of ours, in another form. */
  readonly apply?: readonly Wanted[];
  /** What the hub has made by names that nobody could write down before: deleted first, by the labels alone. */
  readonly sweep?: readonly Trace[];
  /** What the receipt names, and traces that lie in a namespace which it names. */
  readonly places: readonly (Place | Trace)[];
  /** Not begun before this is over: a sentence that names what is in the way. */
  readonly waiting?: string | undefined;
  /** When the leave is forced: these are deleted and their finalizers taken off, before those of the places. */
  readonly force?: readonly (Place | Trace | Contents)[];
}

/** Who one side is to be on the other. Made with these rights and no others, beside the objects of step IdentityReady. */
export interface Identity {
  /** Key of its credentials; unique within the hub's type. */
  readonly name: string;
  /** Where it is known. */
  readonly on: Side;
  readonly account: { readonly namespace: string; readonly name: string };
  readonly rules: readonly Readonly<{
    apiGroups?: string[];
    resources?: string[];
    resourceNames?: string[];
    nonResourceURLs?: string[];
    verbs: string[];
  }>[];
  /** Life of its token, in seconds; it is replaced well before its end. 'forever': the hub cannot take another one, and status says so. */
  readonly life: number | 'forever';
}

/** What is held of an Identity. */
export interface Credential {
  readonly token: string;
  /** RFC 3339; absent: it never ends. */
  readonly expiresAt?: string;
}

/** Where an API server is. `ca` is PEM; absent: a public one vouches for it. */
export interface Endpoint {
  readonly server: string;
  readonly ca?: string | undefined;
  readonly proxyURL?: string | undefined;
}

/** Amounts as Kubernetes quantities. */
export type Amounts = Readonly<Partial<Record<'cpu' | 'memory' | 'gpu', string>>>;

/** A cluster on its way into a hub, or in it, as it is known without asking the hub. */
export interface Member {
  /** Name in the hub: computed from namespace and name, within the hub's limit. */
  readonly name: string;
  /** Name of the Hub object: what is made in the member is named by it, as it may be in several hubs. */
  readonly hubName: string;
  /** The WorkerCluster. */
  readonly cluster: { readonly namespace: string; readonly name: string };
  /** UID of its namespace kube-system: which cluster it is, whatever its names. */
  readonly id: string;
  /** As the hub is to reach it. */
  readonly endpoint: Endpoint;
  /** As the member is to reach the hub. */
  readonly hub: Endpoint;
  /** Provider, region, mode, version and what the Hub adds: keys and values are those of Kubernetes labels. */
  readonly labels: Readonly<Record<string, string>>;
  readonly zones: readonly string[];
  /** Ranges of pods and Services; absent: not known. */
  readonly ranges?: { readonly pods?: string | undefined; readonly services?: string | undefined } | undefined;
  readonly version?: string | undefined;
  /** What its nodes offer now; what was planned, where it scales from zero. */
  readonly capacity: Amounts;
  /** What one node offers, of each size that it has now, or is to have where it has none. */
  readonly nodeSizes: readonly Amounts[];
  /** Whether its API server answers; while it does not, nothing is written there. */
  readonly answers: boolean;
  /** Why nothing new is to be placed on it: the hub's scheduler is kept away by our own taint, or whatever it has. Absent: it is open. */
  readonly closed?: 'Initializing' | 'Asleep' | 'Leaving' | undefined;
  /** By Identity; those that are there already. */
  readonly credentials: Readonly<Record<string, Credential>>;
}

/** What becomes of work that a hub has placed on a cluster when it is drained. */
export type DrainEffect =
  /** The hub places it elsewhere before it ends here. */
  | 'Moves'
  /** The hub places nothing new; whoever placed it has to take it away. */
  | 'Waits'
  /** It ends with the membership. */
  | 'Deletes'
  /** The hub does not know of draining. */
  | 'None';

/** Something that a hub has placed on a cluster, in words: "ResourceBinding shop/web". */
export type Placement = string;

/** Work that a hub cannot place: pods of this size. */
export interface Demand {
  /** Whose it is, in words. What is of one source is placed as a whole. */
  readonly source: string;
  /** UID of the workload itself (a Deployment, a Job), by which several hubs of one API server know it. Absent: not known. */
  readonly uid?: string | undefined;
  /** Namespace in the hub; absent: it is in none. */
  readonly namespace?: string | undefined;
  readonly count: number;
  readonly each: Amounts;
  /** What else each asks for, by name of the resource (huge pages, devices). Absent: nothing. */
  readonly others?: Readonly<Record<string, string>>;
  /** On which nodes each can run, as a pod says it. Absent: on all without taints. */
  readonly nodes?: NodeRules;
  /** All that decides where its pods fit, where the hub has the whole pods. Absent: what is said by the three above. */
  readonly template?: PodTemplate;
  /** RFC 3339. */
  readonly since: string;
  /** Of its pods. Absent: the hub does not tell, and it counts as 0, as in Kubernetes. */
  readonly priority?: number | undefined;
  /** All of the source goes to one cluster. Absent: it may be divided. */
  readonly inOneCluster?: true;
  /** The hub places it nowhere before it is told that one cluster has room for all of it. Absent: it has not asked. */
  readonly isHeld?: true;
  /** Why what it asks for cannot be read, or judged, a sentence: it buys nothing. Absent: it can be. */
  readonly problem?: string | undefined;
  /** Whether the hub would place it on such a member, room aside. Absent: on each. */
  readonly accepts?: (member: KnownMember) => boolean;
  /** The hub places it only where this is served. Absent: every cluster serves it, or the hub does not look. */
  readonly customKind?: CustomKind | undefined;
}

/** What a hub chooses a member by. */
type KnownMember = Pick<Member, 'name' | 'labels' | 'zones'>;

/** A kind that not every cluster serves, as the hub knows of it; one object for all work of the kind in one look. */
export interface CustomKind {
  /** API version and kind: `batch.volcano.sh/v1alpha1 Job`. */
  readonly kind: string;
  /** Names of the members that serve it, as the hub says. */
  readonly servedBy: ReadonlySet<string>;
  /** Whether the hub itself has it come to such a member. */
  readonly isBroughtTo: (member: KnownMember) => boolean;
}

/** What a pod says of the nodes that it can run on. */
export interface NodeRules {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: { readonly nodeAffinity: { readonly requiredDuringSchedulingIgnoredDuringExecution: object } };
  readonly tolerations?: readonly object[];
}

/** A template of pods, of which no more than what decides where they fit: bounded by the hub's file. */
export interface PodTemplate {
  readonly labels: Readonly<Record<string, string>>;
  readonly spec: Pod['spec'];
}

/** Work that a hub has placed on a member. */
export interface PlacedWork
  extends Pick<Demand, 'source' | 'count' | 'each' | 'inOneCluster' | 'accepts' | 'customKind'> {
  /** The object on the member that makes its pods. */
  readonly workload: { readonly kind: string; readonly namespace: string; readonly name: string };
  /** Why the hub would not move it to where there is room, the end of a sentence that begins with the source. Absent: it would. */
  readonly stays?: string | undefined;
}

/** A workload with pods, and the members on which its hub has decided to run it. */
export interface PlacedSource {
  /** Whose it is, in words: no two of a hub are the same. */
  readonly source: string;
  /** Names of the members. */
  readonly members: readonly string[];
  /** Only members of this namespace, where names are unique within one. Absent: names are unique in the hub. */
  readonly memberNamespace?: string | undefined;
  /** The object on the members that makes its pods. Absent: the hub does not tell. */
  readonly workload?: { readonly namespace: string; readonly name: string } | undefined;
  /** The hub divides the replicas by the room that members have. Absent: each member may have a copy, or a fixed share. */
  readonly isDivided?: true;
}

/** Objects of which each says what has no place. */
export interface DemandWatch {
  readonly resources: readonly Resource[];
  /** What one of them says; undefined: nothing. */
  readonly says: (object: KubeObject) => string | undefined;
}

/** What a hub is told of work that it holds. Retry: nothing is to be had for it now, and others may have its turn meanwhile. */
export interface Answer {
  readonly state: 'Ready' | 'Pending' | 'Retry';
  readonly message: string;
}

/** A part of the status of an object of the hub's, to be written only at the version that was read. */
export interface StatusPart {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** What a hub asks about work that it holds until it is told that there is room. */
export interface Asking {
  /** Whose that work is, as in Demand. */
  readonly sources: readonly string[];
  /** What was placed a moment ago: its pods may not be seen on their clusters yet, and their room is taken all the same. Pure. */
  taking(now: Date): readonly Demand[];
  /**
   * What is to be written, only what differs; what people wait for comes first. Pure.
   * @param say what becomes of a source (undefined: nobody knows now); undefined: no policy buys for this hub
   */
  answers(say: ((source: string) => Answer | undefined) | undefined, now: Date): readonly StatusPart[];
}

/**
 * A multi-cluster system. `observe` reads, all else is pure: the controller applies what is returned, after writing it down, and deletes
 * only what it wrote down. @typeParam Seen what one look at the hub and the member brings
 */
export interface HubType<Seen = unknown> {
  readonly type: HubTypeName;
  /** Longest name of a member. */
  readonly nameLimit: number;
  /** Kinds in the hub by whose objects of ours a join goes on: they are watched. */
  readonly watches: readonly Resource[];
  /** What else it wants objects of, beside Secrets and what identities are made of: what is left over of a member is looked for among them. */
  readonly writes?: readonly Pick<Place, 'on' | 'resource'>[];
  /** Who opens connections to whom. */
  dials(spec: HubSpec): 'HubToMember' | 'MemberToHub' | 'Both' | 'Neither';
  /** Why no cluster can join this hub: sentences. Nothing is written before there are none. */
  validate(hub: Reader, spec: HubSpec): Promise<readonly string[]>;
  identities(member: Member, spec: HubSpec): readonly Identity[];
  observe(hub: Reader, cluster: Reader | undefined, member: Member, spec: HubSpec): Promise<Seen>;
  /** Somebody else's object for the same cluster, whatever its name; read before anything is made. Absent: the hub cannot tell. */
  foreignEntry?(hub: Reader, member: Member, spec: HubSpec): Promise<ForeignEntry | undefined>;
  /** The same objects each time, as they should be now; also of a cluster that has long joined. */
  join(member: Member, spec: HubSpec, seen: Seen): readonly Step[];
  leave(member: Member, spec: HubSpec, seen: Seen): readonly Removal[];
  /** Of this hub as it is set up now. */
  drains(spec: HubSpec, seen: Seen): DrainEffect;

  /** Keeps new work away: what is there already as it is to be for a member that is `closed`; nothing is made. Absent: the hub has no way to. */
  cordon?(member: Member, spec: HubSpec, seen: Seen): readonly Wanted[];
  /** Has the hub move work away, beyond what `cordon` does. */
  drain?(member: Member, spec: HubSpec, seen: Seen): readonly Wanted[];
  /** What is still placed on the member. Absent: the hub cannot tell, and the drain counts as done. */
  placements?(member: Member, seen: Seen): readonly Placement[];
  /**
   * Work without room that the hub would not look at again by itself, although this look at it is the one after which the member takes more.
   * Done once, when the steps are written; bounded by the hub's file.
   */
  requeue?(member: Member, spec: HubSpec, seen: Seen): readonly Touch[];
  /** What keeps an object of the member from going that somebody deletes in the hub, and that nobody else would change. */
  release?(member: Member, spec: HubSpec, seen: Seen): readonly Touch[];
  /** Work that the hub cannot place for want of room. */
  demand?(hub: Reader, spec: HubSpec, hubName: string): Promise<readonly Demand[]>;
  /** What it has decided to run where: until pods are seen there, a member looks as if it had no work. Absent: it does not tell. */
  placed?(hub: Reader, spec: HubSpec): Promise<readonly PlacedSource[]>;
  /** What is watched for that, so that work does not wait for the next look. Absent: it does. */
  demandWatch?: DemandWatch;
  /** What the hub holds, and waits for our word about; undefined: nothing there is set up to ask. Absent: hubs of this type never ask. */
  asks?(hub: Reader, spec: HubSpec, hubName: string): Promise<Asking | undefined>;
  /** What is watched to hear that something is set up to ask. */
  askWatch?: DemandWatch;
  /**
   * Work with pods that it has placed on a member, of which it is asked whether it can be moved before any is; a sentence: as it is set up
   * it moves none. Absent: it does not tell, and no cluster is emptied that could stay as it is.
   */
  placedWork?(hub: Reader, spec: HubSpec, member: string): Promise<readonly PlacedWork[] | string>;
  /**
   * What the hub counts of a node on which so much is free, in a cluster with nodes of these sizes. Absent: all of it. What it counts less it
   * places nothing on, so nobody may take it for room.
   */
  counts?(sizes: readonly Amounts[], spec: HubSpec): (free: Amounts) => Amounts;
  /** What the hub believes that is free on the member. */
  capacity?(member: Member, seen: Seen): Amounts | undefined;
  /** What else a new credential needs before the old one ends (a restart, a bumped annotation). */
  rotate?(member: Member, spec: HubSpec, seen: Seen): readonly Wanted[];
}

import type { ManagedCluster } from '../../../providers/cloud.ts';
import type { Problem, Provider } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { LastError } from '../../api/meta.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { madeModeOf, WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import type { DividedPool } from '../../capacity/condition.ts';
import type { Decided, Holds } from '../../capacity/desired-sizes.ts';
import type { KnownCapacity } from '../../capacity/offers.ts';
import type { KnownSleepOrder, SleepOrder } from '../../capacity/sleep-order.ts';
import type { GateVerdict, Hold } from '../../clusters/deletion-gate.ts';
import type { Claimant } from '../../cost/admission.ts';
import type { Refusal } from '../../mesh/allocate.ts';
import type { KnownEntry } from '../../mesh/meshes.ts';
import type { Said, SaidAs } from '../conditions.ts';
import type { ManagedFacts } from '../managed/facts.ts';

/** Who runs the control plane of a cluster that is made. */
export type Mode = NonNullable<ReturnType<typeof madeModeOf>>;

/** A cluster's share of what its namespace may have. */
export interface ProjectShare {
  /** All quotas of the namespace. */
  readonly quotas: readonly Quota[];
  /** All other clusters of the namespace. */
  readonly others: readonly Claimant[];
  /** What this cluster was granted before and has not given back. */
  readonly held: ClusterSize | undefined;
}

/** All that a decision about a WorkerCluster rests on. */
export interface WorkerClusterView {
  readonly cluster: WorkerCluster;
  /** The profile that it names, if there is one. */
  readonly profile: CloudProfile | undefined;
  /** Names of all profiles, for the error. */
  readonly profileNames: readonly string[];
  readonly provider: Provider | undefined;
  readonly shoot: Shoot | undefined;
  /** A Shoot of the same name that is not ours. */
  readonly foreignShoot?: boolean;
  /** Who has the technical id already that it would have; absent: nobody. */
  readonly idTakenBy?: string | undefined;
  /** What was seen of it in the cloud; absent: nothing was ever asked of one. */
  readonly managed?: ManagedFacts | undefined;
  /** What is known of machines that are sold out. Absent: nothing is. */
  readonly capacity?: KnownCapacity;
  /** The other places that the spec allows, as the cluster would be written for them. */
  readonly fallbacks?: readonly { readonly cluster: WorkerCluster; readonly profile: CloudProfile | undefined }[];
  /** Where the cluster may go as long as nothing of it is finished here; absent: nowhere. */
  readonly elsewhere?: {
    /** In words, for the condition. */
    readonly name: string;
    /** Whether it was decided already that it goes. */
    readonly decided: boolean;
  };
  /** What its namespace may have, and who shares it; absent: nothing limits it. */
  readonly project?: ProjectShare;
  /** What must let go of it before anything of it is taken apart. */
  readonly holds?: readonly Hold[];
  /** What keeps it awake that is to sleep since then; absent: nothing. */
  readonly keepsAwake?: (since: Date) => readonly Hold[];
  /** What was decided for its pools; absent: nothing is. */
  readonly decided?: Decided;
  /** Whether it was told to sleep, or to be awake; absent: it was not. */
  readonly sleepOrder?: KnownSleepOrder;
  /** What the autoscaler says of its nodes; absent: nothing yet. */
  readonly autoscaled?: Said<'WorkerCluster'> | undefined;
  /** Absent: nobody gives clusters ranges. */
  readonly mesh?: MeshView;
}

/** A cluster and its mesh. */
export interface MeshView {
  /** What it was given; absent: it is in no mesh. */
  readonly known?: KnownEntry | undefined;
  /** Why it was given nothing. */
  readonly refused?: Refusal | undefined;
  /** Clusters of meshes with addresses that it has too. */
  readonly overlapping: readonly string[];
}

/** The same, with what follows for the sizes of its pools: resolved once, for everybody. */
export interface SizedView extends WorkerClusterView {
  /** What each pool should have; empty without a profile. */
  readonly sizes: readonly DesiredPool[];
  /** Whether it can sleep as its spec says: in its mode, and as it is made. */
  readonly maySleep: boolean;
  /** Whether its nodes are to be at zero for a while, and by whose word. */
  readonly asleep?: Holds['asleep'];
  /** Who else than the spec has decided whether it sleeps; absent: nobody. */
  readonly ordered?: SleepOrder;
  /** It is to sleep, and whoever has placed work on it moves that away first; absent: not so. */
  readonly keptAwake?: GateVerdict;
}

/** What a cluster asks for with everything filled in that was left to the profile; absent is what cannot be told. */
export interface Resolved {
  readonly mode: Mode | undefined;
  readonly region: string | undefined;
  readonly zones: readonly string[];
  readonly version: string | undefined;
  /** Parts of pools, each as a pool: see PoolPart. */
  readonly pools: readonly DesiredPool[];
  /** How the pools of the spec are divided. */
  readonly divided: readonly DividedPool[];
  readonly ranges: { pods: string; services: string; nodes: string };
  /** What cannot be had whatever the mode. */
  readonly problems: readonly Problem[];
}

/** The same once there are no problems. */
export interface Settled {
  readonly profile: CloudProfile;
  readonly provider: Provider;
  readonly region: string;
  readonly zones: readonly string[];
  readonly version: string;
  readonly pools: readonly (DesiredPool & { machineType: string })[];
  readonly ranges: Resolved['ranges'];
  /** Its place in its mesh. */
  readonly known?: KnownEntry | undefined;
}

/** What a mode makes of a cluster. With problems nothing is to be made. */
export interface Asked {
  readonly problems: readonly Problem[];
  /** Only quotas stand against it: it is looked at again when they let it. */
  readonly overQuota?: boolean;
  readonly shoot?: Shoot;
  readonly managed?: ManagedCluster;
}

/** What a mode sees of a cluster. */
export interface Observed {
  /** Whether anything was made. */
  readonly exists: boolean;
  /** Condition Ready for what is asked now. */
  readonly ready: SaidAs<'WorkerCluster', 'Ready'>;
  readonly conditions: readonly (Said<'WorkerCluster'> | undefined)[];
  readonly errors: readonly LastError[];
  readonly status: Partial<WorkerClusterStatus>;
  /** Whether it sleeps, so that nobody can work with it. Absent: it does not. */
  readonly sleeps?: boolean;
  /** Whether there is a kubeconfig, and it works as far as anything of the cluster does. */
  readonly usable: boolean;
}

/** What deletion still has to do. */
interface Deletion {
  /** Nothing is left of the cluster. */
  readonly gone: boolean;
  /** Condition Deleting: what it waits for. */
  readonly waiting: SaidAs<'WorkerCluster', 'Deleting'>;
  readonly deleteShoot?: boolean;
  /** Its end has begun: what holds it only now comes too late. */
  readonly begun: boolean;
}

/** Who runs the control plane, and all that follows from it. Pure. */
export interface ModeStrategy {
  /** What of the spec cannot be had in this mode, beyond what no mode can have. */
  limits(view: SizedView): Problem[];
  ask(view: SizedView, settled: Settled): Asked;
  observe(view: SizedView): Observed;
  deletion(view: SizedView): Deletion;
}

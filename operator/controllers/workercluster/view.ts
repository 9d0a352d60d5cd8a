import type { WantedCluster } from '../../../providers/cloud.ts';
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
import type { MeshRefusal } from '../../mesh/allocate.ts';
import type { KnownEntry } from '../../mesh/meshes.ts';
import type { Said, SaidAs } from '../conditions.ts';
import type { ManagedFacts } from '../managed/facts.ts';

/** Mode of a cluster that is made. */
export type Mode = NonNullable<ReturnType<typeof madeModeOf>>;

/** A cluster's share of its namespace's quotas. */
export interface ProjectShare {
  /** All quotas of the namespace. */
  readonly quotas: readonly Quota[];
  /** All other clusters of the namespace. */
  readonly others: readonly Claimant[];
  /** Size granted before and not returned. */
  readonly held: ClusterSize | undefined;
}

/** Inputs of a decision about a WorkerCluster. */
export interface WorkerClusterView {
  readonly cluster: WorkerCluster;
  /** The named profile, if it exists. */
  readonly profile: CloudProfile | undefined;
  /** Names of all profiles, for the error. */
  readonly profileNames: readonly string[];
  readonly provider: Provider | undefined;
  readonly shoot: Shoot | undefined;
  /** A foreign Shoot of the same name. */
  readonly foreignShoot?: boolean;
  /** Who already has its technical id; absent: nobody. */
  readonly idTakenBy?: string | undefined;
  /** Observations in the cloud; absent: never requested. */
  readonly managed?: ManagedFacts | undefined;
  /** Known sold-out machines. Absent: none. */
  readonly capacity?: KnownCapacity;
  /** Other allowed places, with the cluster as written for them. */
  readonly fallbacks?: readonly { readonly cluster: WorkerCluster; readonly profile: CloudProfile | undefined }[];
  /** Place to move to while nothing is completed here; absent: none. */
  readonly elsewhere?: {
    /** Text for the condition. */
    readonly name: string;
    /** Whether the move was decided before. */
    readonly decided: boolean;
  };
  /** Limits of its namespace, and their other users; absent: none. */
  readonly project?: ProjectShare;
  /** Holds that delay its deletion. */
  readonly holds?: readonly Hold[];
  /** Holds that keep it awake although it should sleep since then; absent: none. */
  readonly keepsAwake?: (since: Date) => readonly Hold[];
  /** Decided sizes of its pools; absent: none. */
  readonly decided?: Decided;
  /** Order to sleep or to stay awake; absent: none. */
  readonly sleepOrder?: KnownSleepOrder;
  /** The autoscaler's condition; absent: none yet. */
  readonly autoscaled?: Said<'WorkerCluster'> | undefined;
  /** Absent: nobody gives clusters ranges. */
  readonly mesh?: MeshView;
}

/** A cluster's mesh. */
interface MeshView {
  /** Its allocation; absent: not in a mesh. */
  readonly known?: KnownEntry | undefined;
  /** Why it got no allocation. */
  readonly refused?: MeshRefusal | undefined;
  /** Clusters of meshes with overlapping addresses. */
  readonly overlapping: readonly string[];
}

/** The view with the sizes of its pools, resolved once for all users. */
export interface SizedView extends WorkerClusterView {
  /** Desired size of each pool; empty without a profile. */
  readonly sizes: readonly DesiredPool[];
  /** Whether hibernation works in its mode and infrastructure. */
  readonly maySleep: boolean;
  /** Whether its nodes must be at zero, and by whose decision. */
  readonly asleep?: Holds['asleep'];
  /** Who else decided about its sleep; absent: nobody. */
  readonly ordered?: SleepOrder;
  /** The cluster should sleep, but hubs first move its work away; absent: not so. */
  readonly keptAwake?: GateVerdict;
}

/** A cluster's wish with defaults filled in; absent: unknown. */
export interface Resolved {
  readonly mode: Mode | undefined;
  readonly region: string | undefined;
  readonly zones: readonly string[];
  readonly version: string | undefined;
  /** Parts of pools, each as a pool: see PoolPart. */
  readonly pools: readonly DesiredPool[];
  /** Division of the spec's pools. */
  readonly divided: readonly DividedPool[];
  readonly ranges: { pods: string; services: string; nodes: string };
  /** Problems that hold in any mode. */
  readonly problems: readonly Problem[];
}

/** A resolved cluster without problems. */
export interface Settled {
  readonly profile: CloudProfile;
  readonly provider: Provider;
  readonly region: string;
  readonly zones: readonly string[];
  readonly version: string;
  readonly pools: readonly (DesiredPool & { machineType: string })[];
  readonly ranges: Resolved['ranges'];
  /** Its entry in its mesh. */
  readonly known?: KnownEntry | undefined;
}

/** A mode's result for a cluster. With problems nothing is made. */
export interface ModeRequest {
  readonly problems: readonly Problem[];
  /** Only quotas refuse it: retried when they allow it. */
  readonly overQuota?: boolean;
  readonly shoot?: Shoot;
  readonly managed?: WantedCluster;
}

/** A mode's observation of a cluster. */
export interface Observed {
  /** Whether anything exists. */
  readonly exists: boolean;
  /** Condition Ready for the present spec. */
  readonly ready: SaidAs<'WorkerCluster', 'Ready'>;
  readonly conditions: readonly (Said<'WorkerCluster'> | undefined)[];
  readonly errors: readonly LastError[];
  readonly status: Partial<WorkerClusterStatus>;
  /** Whether it sleeps and cannot be used. Absent: no. */
  readonly sleeps?: boolean;
  /** Whether its kubeconfig exists and works. */
  readonly usable: boolean;
}

/** Remaining deletion. */
interface Deletion {
  /** Nothing is left of the cluster. */
  readonly gone: boolean;
  /** Condition Deleting with the reason to wait. */
  readonly waiting: SaidAs<'WorkerCluster', 'Deleting'>;
  readonly deleteShoot?: boolean;
  /** Destruction has begun: new holds come too late. */
  readonly begun: boolean;
}

/** A mode: who runs the control plane, and everything that depends on it. Pure. */
export interface ModeStrategy {
  /** Problems specific to this mode. */
  limits(view: SizedView): Problem[];
  ask(view: SizedView, settled: Settled): ModeRequest;
  observe(view: SizedView): Observed;
  deletion(view: SizedView): Deletion;
}

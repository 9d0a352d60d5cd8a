import type { Change } from '../../../providers/cloud.ts';
import type {
  ClustersWithoutControlPlane,
  ControlPlanePart,
  Machine,
  Pool,
  Provider,
  ProviderContext,
} from '../../../providers/contract.ts';
import type { WantedName } from '../../accounts/dns-account.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot, ShootStatus } from '../../api/shoot.ts';
import type { SeedAccess } from '../../clusters/seed-access.ts';
import type { Task } from '../../flow/graph.ts';
import type { NetworkPolicy } from '../../kube/network-policy.ts';
import type { PKIData } from '../../shoot/pki.ts';
import type { ControlPlane } from '../../shoot/values.ts';
import type { ShootDependencies } from './dependencies.ts';
import type { ShootState } from './state.ts';

/** What others changed in a part of a control plane and mending did not change back. */
export interface Unmended {
  /** What its machines were spared. */
  readonly changes: readonly Change[];
  /** Why nothing could be changed, a clause. Absent: it could. */
  readonly because?: string;
}

/** One run of the task graph over one shoot. */
export interface Operation {
  readonly deps: ShootDependencies;
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly seed: SeedAccess;
  readonly provider: Provider;
  /** Chosen once, before anything is made: see strategyOf. */
  readonly strategy: ShootStrategy;
  /** Present: the profile says that no control planes are run. */
  readonly withoutControlPlane: ClustersWithoutControlPlane | undefined;
  /** Whether the shoot is to have neither nodes nor a control plane for a while: see isToSleep. */
  readonly sleeps: boolean;
  /** None has any machines while it sleeps. */
  readonly pools: readonly Pool[];
  /** The machines that run the control plane; undefined: it is not on machines. */
  readonly controlPlanePool: Pool | undefined;
  /** What others changed in the account is changed back. */
  readonly mend: boolean;
  /** What became of that where the control plane is on machines in a cloud, by part; grows while the graph runs. */
  readonly unmended: Map<ControlPlanePart, Unmended>;
  readonly vni: number;
  /** Who may connect to whom in the shoot's namespace of the seed. */
  readonly networkPolicies: readonly NetworkPolicy[];
  /** Names of the API server that we keep records for. */
  readonly names: readonly WantedName[];
  /** Aborted when the operation is no longer wanted. */
  readonly signal: AbortSignal;
  /** Grows while the graph runs: addresses come with the Services, the size of etcd with its members. */
  values: ControlPlane;
  pki: PKIData;
  /** Whether this operation has made the namespace in the seed, where there was none: nothing that is ours can be in it yet. */
  namespaceIsNew?: boolean;
  /** Whether API servers have a certificate of an earlier version, with which they call kubelets as system:masters. */
  kubeletsAsMaster?: boolean;
  /** What the provider is told; complete once the certificates are there. */
  context(): ProviderContext;
  /** Writes the status as it is now; resolves when it is there. */
  tell(signal?: AbortSignal): Promise<void>;
  /** Says that something a person would notice has changed. Does not wait for that to be written. */
  notice(): void;
}

/** What stands behind a shoot, and all that follows from it: nobody else asks where its control plane is. */
export interface ShootStrategy {
  /** Whether machines come to API servers in the seed; otherwise these are where the machines are. */
  readonly servesInSeed: boolean;
  /** Whether it can be put to sleep with its data kept. */
  readonly maySleep: boolean;
  /** Whether it stays at the version that it runs, also when its profile offers that no longer. */
  readonly keepsVersion: boolean;
  /** How long it may take until somebody looks again, milliseconds. */
  readonly longestSleepMs: number;
  /** Names of its API server that we keep records for. @param machines name of the provider of its machines */
  names(shoot: Shoot, seed: Seed, machines: string): WantedName[];
  /** The values, and how API servers and machines come to each other. */
  reaching(
    values: ControlPlane,
    seed: Seed,
    provider: Pick<Provider, 'inCloud' | 'clusterNetwork'>,
    vni: number,
  ): ControlPlane;
  /** Why it cannot be made as the shoot asks for it; undefined: it can. Pure. */
  problem(op: Operation): string | undefined;
  /** Why Secrets in its etcd cannot be encrypted with another key; undefined: they can. Pure. */
  rotationProblem(op: Operation): string | undefined;
  reconcileTasks(op: Operation): Task[];
  deletionTasks(op: Operation): Task[];
  /** `shoot`: as it is now, perhaps newer than the operation. */
  status(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus>;
  /** All machines of the shoot, those of its control plane among them. */
  machines(op: Operation): Promise<Machine[]>;
}

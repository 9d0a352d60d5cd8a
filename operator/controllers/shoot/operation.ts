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

/** Drift in a part of a control plane that was not reverted. */
export interface Unmended {
  /** Changes that were skipped to protect its machines. */
  readonly changes: readonly Change[];
  /** Why nothing could be reverted, a clause. Absent: it could. */
  readonly because?: string;
}

/** One run of the task graph for a shoot. */
export interface Operation {
  readonly deps: ShootDependencies;
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly seed: SeedAccess;
  readonly provider: Provider;
  /** Chosen before anything is made: see strategyOf. */
  readonly strategy: ShootStrategy;
  /** Present: the profile runs no control planes. */
  readonly withoutControlPlane: ClustersWithoutControlPlane | undefined;
  /** Whether the shoot must sleep: see isToSleep. */
  readonly sleeps: boolean;
  /** Without machines during hibernation. */
  readonly pools: readonly Pool[];
  /** Machines of the control plane; undefined: not on machines. */
  readonly controlPlanePool: Pool | undefined;
  /** Whether to revert drift in the account. */
  readonly mend: boolean;
  /** Unreverted drift of a control plane on machines in a cloud, by part; grows during the run. */
  readonly unmended: Map<ControlPlanePart, Unmended>;
  readonly vni: number;
  /** NetworkPolicies of the shoot's namespace in the seed. */
  readonly networkPolicies: readonly NetworkPolicy[];
  /** Names of the API server with records of ours. */
  readonly names: readonly WantedName[];
  /** Aborted when the operation is obsolete. */
  readonly signal: AbortSignal;
  /** Completed during the run: Services give addresses, members give etcd's size. */
  values: ControlPlane;
  pki: PKIData;
  /** Whether this operation created the namespace in the seed, so that it is empty. */
  namespaceIsNew?: boolean;
  /** Whether API servers still use an older client certificate for kubelets with group system:masters. */
  kubeletsAsMaster?: boolean;
  /** Context for the provider; complete once the certificates exist. */
  context(): ProviderContext;
  /** Writes the present status; resolves when stored. */
  tell(signal?: AbortSignal): Promise<void>;
  /** Signals a visible change. Does not wait for the write. */
  notice(): void;
}

/** Everything that depends on where a shoot's control plane runs; no other code distinguishes that. */
export interface ShootStrategy {
  /** Whether API servers are in the seed; otherwise they are beside the machines. */
  readonly servesInSeed: boolean;
  /** Whether it supports hibernation. */
  readonly maySleep: boolean;
  /** Whether it keeps its running version even if the profile drops it. */
  readonly keepsVersion: boolean;
  /** Longest time until the next reconcile, milliseconds. */
  readonly longestSleepMs: number;
  /** Names of its API server with records of ours. @param machines name of the provider of its machines */
  names(shoot: Shoot, seed: Seed, machines: string): WantedName[];
  /** Values with the network path between API servers and machines. */
  reaching(
    values: ControlPlane,
    seed: Seed,
    provider: Pick<Provider, 'inCloud' | 'clusterNetwork'>,
    vni: number,
  ): ControlPlane;
  /** Why the shoot cannot be made as requested; undefined: it can. Pure. */
  problem(op: Operation): string | undefined;
  /** Why its encryption key for Secrets cannot be rotated; undefined: it can. Pure. */
  rotationProblem(op: Operation): string | undefined;
  reconcileTasks(op: Operation): Task[];
  deletionTasks(op: Operation): Task[];
  /** `shoot`: the present object, possibly newer than the operation. */
  status(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus>;
  /** All machines of the shoot, including control plane machines. */
  machines(op: Operation): Promise<Machine[]>;
}

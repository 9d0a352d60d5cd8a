import type { Pool, Provider, ProviderContext, RecordedClusters } from '../../../providers/contract.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { PKIData } from '../../shoot/pki.ts';
import type { ControlPlane } from '../../shoot/values.ts';
import type { SeedAccess } from '../seed/seed-access.ts';
import type { WantedName } from './dns-names.ts';
import type { ShootState } from './state.ts';
import type { ShootWorld } from './world.ts';

/** One run of the task graph over one shoot. */
export interface Operation {
  readonly world: ShootWorld;
  readonly shoot: Shoot;
  readonly state: ShootState;
  readonly seed: SeedAccess;
  readonly provider: Provider;
  /** Present: the profile says that no control planes are run. */
  readonly recorded: RecordedClusters | undefined;
  readonly pools: readonly Pool[];
  /** The machines that run the control plane; undefined: it is not on machines. */
  readonly controlPlanePool: Pool | undefined;
  readonly vni: number;
  /** Names of the API server that we keep records for. */
  readonly names: readonly WantedName[];
  /** Aborted when the operation is no longer wanted. */
  readonly signal: AbortSignal;
  /** Grows while the graph runs: addresses come with the Services, the size of etcd with its members. */
  values: ControlPlane;
  pki: PKIData;
  /** What the provider is told; complete once the certificates are there. */
  context(): ProviderContext;
  /** Says that something a person would notice has changed. */
  notice(): void;
}

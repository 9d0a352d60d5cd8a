import type { Log } from '../../kube/log.ts';
import type { EgressStatus } from '../egress/policy.ts';
import type { Supervisor } from '../processes/supervisor.ts';
import type { GardenProgress } from '../state/garden-progress.ts';
import type { GardenState, StateDirectory } from '../state/state.ts';
import type { Toolchain } from '../toolchain/toolchain.ts';

/** The parts of an embedded garden from which its seed is built. */
export interface GardenOfSeed {
  readonly directory: StateDirectory;
  readonly state: GardenState;
  readonly supervisor: Supervisor;
  readonly toolchain: Toolchain;
  readonly log: Log & { error(text: string): void };
  /** Aborted when the garden stops. */
  readonly signal: AbortSignal;
  readonly say: (stage: string, message: string, more?: Partial<GardenProgress>) => void;
  /** Receives the pods' outbound access. */
  readonly onEgress: (status: EgressStatus) => void;
}

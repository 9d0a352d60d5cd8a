import type { Provider } from '../../../providers/contract.ts';
import type { ShootAccounts } from '../../accounts/shoot-accounts.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { CoppiceError } from '../../api/errors.ts';
import type { Seed } from '../../api/seed.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { HoldsOf } from '../../clusters/deletion-gate.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { SeedRegistry } from '../../clusters/seed-access.ts';
import type { TaskDurations } from '../../flow/graph.ts';
import type { Applier } from '../../kube/applier.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { FairQueue } from '../../kube/fair-queue.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { Said } from '../conditions.ts';

/** What is known of the backups of shoots, and done about them when shoots go. */
export interface ShootBackups {
  /** Condition BackupReady; undefined: the shoot has no backups, or nothing is known yet. */
  condition(shoot: Shoot): Said<'Shoot'> | undefined;
  /** Takes a snapshot now, the last before etcd ends for a while; nothing where the shoot has no backups. Rejects with CoppiceErrors. */
  takeLast(shoot: Shoot, signal: AbortSignal): Promise<void>;
  /**
   * How long a snapshot of the shoot stays, milliseconds; 0: none are taken. What was encrypted when it was taken must be readable until
   * then.
   */
  keptMs(shoot: Shoot): number;
  /** No more are taken, and those that there are go or are marked to go. Never rejects but when aborted. */
  retire(shoot: Shoot, signal: AbortSignal): Promise<void>;
}

/** What the controller of shoots works with: injected, so that tests choose it. */
export interface ShootDependencies extends ShootAccounts {
  readonly garden: KubeClient;
  /** How many shoots are reconciled at once. */
  readonly workers: number;
  /** See gardenIdentity. */
  readonly gardenID: string;
  /** Where the operator keeps what is its own, and its pods are. */
  readonly state: { readonly namespace: string };
  /** Writes to the garden that skip no-ops. */
  readonly gardenApplier: Applier;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly profiles: Informer<CloudProfile>;
  readonly registry: SeedRegistry;
  /** Where clusters are entered that this opens. */
  readonly openClusters: OpenClusters;
  /** What holds a cluster: see judgeDeletion. */
  readonly holds: HoldsOf;
  /** As isDeletedByHand, of the Shoot's own WorkerCluster. Absent: it never is. */
  readonly isDeletedByHand?: (shoot: Shoot) => boolean;
  readonly backups: ShootBackups;
  readonly durations: TaskDurations;
  readonly log: Log;
  now(): Date;
  /** @param withAccount somebody has credentials there: clouds are not simulated then */
  provider(profile: CloudProfile, withAccount?: boolean): Provider | undefined;
  /** Looks at records take turns by account: see DNS_LOOKS. */
  readonly dnsTurns: FairQueue;
  /** Looks for drift take turns: see DRIFT_LOOKS. */
  readonly driftTurns: FairQueue;
  /** Has the shoot reconciled once more. */
  again(shoot: Shoot): void;
  readonly recordEvent: RecordEvent;
  /** Says that a place has no machines left for pools of a shoot. */
  depleted(shoot: Shoot, error: CoppiceError): void;
  /** Called for every change of a node, pod or certificate request inside of a shoot. */
  insideChanged(shoot: Shoot, object: KubeObject): void;
}

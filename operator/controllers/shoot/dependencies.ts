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

/** Backups of shoots. */
export interface ShootBackups {
  /** Condition BackupReady; undefined: no backups, or not known yet. */
  condition(shoot: Shoot): Said<'Shoot'> | undefined;
  /** Takes a last snapshot before etcd stops; does nothing without backups. Rejects with CoppiceErrors. */
  takeLast(shoot: Shoot, signal: AbortSignal): Promise<void>;
  /** Retention of the shoot's snapshots, milliseconds; 0: none. Their encryption keys must be kept that long. */
  keptMs(shoot: Shoot): number;
  /** Stops backups, and deletes existing ones or marks them for deletion. Rejects only on abort. */
  retire(shoot: Shoot, signal: AbortSignal): Promise<void>;
}

/** Dependencies of the controller of shoots, injected for tests. */
export interface ShootDependencies extends ShootAccounts {
  readonly garden: KubeClient;
  /** Number of shoots that are reconciled at once. */
  readonly workers: number;
  /** See gardenIdentity. */
  readonly gardenID: string;
  /** Namespace of the operator's own objects and pods. */
  readonly state: { readonly namespace: string };
  /** Applier for the garden that skips no-ops. */
  readonly gardenApplier: Applier;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly profiles: Informer<CloudProfile>;
  readonly registry: SeedRegistry;
  /** Registry of open connections to clusters. */
  readonly openClusters: OpenClusters;
  /** Holds of a cluster: see judgeDeletion. */
  readonly holds: HoldsOf;
  /** See isDeletedByHand, applied to the Shoot's own WorkerCluster. Absent: never. */
  readonly isDeletedByHand?: (shoot: Shoot) => boolean;
  readonly backups: ShootBackups;
  readonly durations: TaskDurations;
  readonly log: Log;
  now(): Date;
  /** @param withAccount whether credentials exist: then clouds are not simulated */
  provider(profile: CloudProfile, withAccount?: boolean): Provider | undefined;
  /** Fair queue of record checks by account: see DNS_LOOKS. */
  readonly dnsTurns: FairQueue;
  /** Fair queue of drift checks: see DRIFT_LOOKS. */
  readonly driftTurns: FairQueue;
  /** Requeues the shoot. */
  again(shoot: Shoot): void;
  readonly recordEvent: RecordEvent;
  /** Reports machine types that are sold out for pools of a shoot. */
  depleted(shoot: Shoot, error: CoppiceError): void;
  /** Called for every change of a node, pod or certificate request inside of a shoot. */
  insideChanged(shoot: Shoot, object: KubeObject): void;
}

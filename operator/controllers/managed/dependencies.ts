import type { AccountCheck, CloudContext, CloudKubeconfig, StateBackend } from '../../../providers/cloud.ts';
import type { Credentials } from '../../accounts/credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { CoppiceError } from '../../api/errors.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { ConnectionListener, KubeconfigConnection } from '../../clusters/kubeconfig-cluster.ts';
import type { Clock } from '../../kube/clock.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Log } from '../../kube/log.ts';
import type { ManagedWish } from './facts.ts';
import type { ManagedReceipt } from './receipt.ts';
import type { LeavingNames } from './removal.ts';

/** A stored kubeconfig with expiry and renewal time. */
export interface StoredKubeconfig extends CloudKubeconfig {
  /** RFC 3339. Absent: never. */
  renewAt?: string;
}

/** Dependencies of the controller of managed clusters, injected for tests. */
export interface ManagedDependencies {
  /** Identity of this garden: see Owner. */
  readonly garden: string;
  readonly log: Log;
  readonly clock: Clock;
  now(): Date;
  /** In [0, 1). */
  random(): number;

  /** Throws CoppiceErrors when unusable. */
  credentials(cluster: WorkerCluster, profile: CloudProfile, signal: AbortSignal): Promise<Credentials>;
  /** Asks the cloud for the identity of credentials; equal questions share one request. */
  checkAccount(wish: ManagedWish, ctx: CloudContext, version: string): Promise<AccountCheck>;
  stateBackend(profile: CloudProfile, signal: AbortSignal): Promise<StateBackend>;

  /** Nodes recorded as leaving a cluster's pools. */
  leaving(cluster: WorkerCluster): LeavingNames;

  readonly receipts: {
    get(key: string): ManagedReceipt | undefined;
    /** @param before what it was made from; see Receipts.save */
    save(receipt: ManagedReceipt, before: ManagedReceipt | undefined, signal?: AbortSignal): Promise<void>;
    remove(key: string, signal?: AbortSignal): Promise<void>;
  };
  readonly kubeconfigs: {
    get(key: string): StoredKubeconfig | undefined;
    save(cluster: WorkerCluster, kubeconfig: StoredKubeconfig, signal?: AbortSignal): Promise<void>;
    remove(cluster: WorkerCluster, signal?: AbortSignal): Promise<void>;
  };
  /** Opens a connection. Rejects when the API server does not answer. */
  connect(
    key: string,
    kubeconfig: string,
    news: ConnectionListener,
    signal: AbortSignal,
  ): Promise<KubeconfigConnection>;

  /** Reports sold-out machines. */
  depleted(wish: ManagedWish, error: CoppiceError): void;
  /** Requeues a key. */
  enqueue(key: string): void;
  /** Notifies that facts of the cluster changed. `inside`: only objects inside of it, which change constantly. */
  changed(key: string, inside?: 'inside'): void;
  /** Removes the operation annotation from a cluster. */
  clearRequest(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  readonly recordEvent: RecordEvent;
}

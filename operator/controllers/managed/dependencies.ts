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

/** A kubeconfig as it is stored for people, with when it ends and when it is replaced. */
export interface StoredKubeconfig extends CloudKubeconfig {
  /** RFC 3339. Absent: never. */
  renewAt?: string;
}

/** What the controller of managed clusters works with: injected, so that tests choose it. */
export interface ManagedDependencies {
  /** What tells this garden from others: see Owner. */
  readonly garden: string;
  readonly log: Log;
  readonly clock: Clock;
  now(): Date;
  /** In [0, 1). */
  random(): number;

  /** Throws CoppiceErrors when there are none that can be used. */
  credentials(cluster: WorkerCluster, profile: CloudProfile, signal: AbortSignal): Promise<Credentials>;
  /** Asks the cloud who the credentials are; equal questions of many clusters are asked once. */
  checkAccount(wish: ManagedWish, ctx: CloudContext, version: string): Promise<AccountCheck>;
  stateBackend(profile: CloudProfile, signal: AbortSignal): Promise<StateBackend>;

  /** Nodes that are to leave the pools of a cluster, by what was decided. */
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

  /** Says that the cloud has no machines left for what was wished. */
  depleted(wish: ManagedWish, error: CoppiceError): void;
  /** Says that a key should be worked on. */
  enqueue(key: string): void;
  /** Says that the facts about a cluster are others. `inside`: only what is in the cluster, which changes all the time. */
  changed(key: string, inside?: 'inside'): void;
  /** Takes the annotation off a cluster by which somebody asked for an operation. */
  clearRequest(cluster: WorkerCluster, signal: AbortSignal): Promise<void>;
  readonly recordEvent: RecordEvent;
}

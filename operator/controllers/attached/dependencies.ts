import type { AddressList } from '../../api/address-range.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { Receipts } from '../../kube/receipt.ts';
import type { AttachedReceipt } from './receipt.ts';

/** Dependencies of the controller of attached clusters. */
export interface AttachedDependencies {
  readonly garden: KubeClient;
  /** The operator's namespace: only administrators attach clusters there. */
  readonly namespace: string;
  readonly log: Log;
  readonly clusters: Pick<Informer<WorkerCluster>, 'get' | 'list'>;
  readonly openClusters: OpenClusters;
  readonly receipts: Receipts<AttachedReceipt>;
  /** All existing receipts. */
  allReceipts(): readonly AttachedReceipt[];
  /** Clusters of the platform: URLs, and names by UID of kube-system. */
  platform(): { readonly servers: readonly string[]; readonly identities: ReadonlyMap<string, string> };
  /** Internal networks of which tenants may attach clusters. */
  readonly allowed: AddressList;
  /** In [0, 1). */
  random(): number;
  /** Requeues a key. */
  enqueue(key: string): void;
  /** Notifies that facts of the cluster changed. `inside`: only objects inside of it, which change constantly. */
  changed(key: string, inside?: 'inside'): void;
}

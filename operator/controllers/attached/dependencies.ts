import type { AddressList } from '../../api/address-range.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { Receipts } from '../../kube/receipt.ts';
import type { AttachedReceipt } from './receipt.ts';

/** What the controller of attached clusters works with. */
export interface AttachedDependencies {
  readonly garden: KubeClient;
  /** The operator's namespace: what is attached there, administrators attach. */
  readonly namespace: string;
  readonly log: Log;
  readonly clusters: Pick<Informer<WorkerCluster>, 'get' | 'list'>;
  readonly openClusters: OpenClusters;
  readonly receipts: Receipts<AttachedReceipt>;
  /** All receipts that there are. */
  allReceipts(): readonly AttachedReceipt[];
  /** Clusters of the platform: where they are, and which they are (UID of kube-system -> in words). */
  platform(): { readonly servers: readonly string[]; readonly identities: ReadonlyMap<string, string> };
  /** Internal networks that tenants may attach clusters of. */
  readonly allowed: AddressList;
  /** In [0, 1). */
  random(): number;
  /** Says that a key should be worked on. */
  enqueue(key: string): void;
  /** Says that the facts about a cluster are others. `inside`: only what is in the cluster, which changes all the time. */
  changed(key: string, inside?: 'inside'): void;
}

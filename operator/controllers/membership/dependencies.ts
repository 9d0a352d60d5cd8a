import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { RecordEvent } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Receipts } from '../../kube/receipt.ts';
import type { Core } from '../core.ts';
import type { HubConnections } from './hub-connections.ts';
import type { MembershipReceipt } from './receipt.ts';

/** Dependencies of the controllers of hubs and memberships. */
export interface MembershipDependencies {
  readonly garden: KubeClient;
  /** See gardenIdentity. */
  readonly gardenID: string;
  readonly hubs: Informer<Hub>;
  /** With indexes BY_CLUSTER and BY_HUB. */
  readonly memberships: Informer<Membership>;
  readonly clusters: Informer<WorkerCluster>;
  readonly profiles: Informer<CloudProfile>;
  /** undefined: none. */
  readonly provider: Core['provider'];
  readonly openClusters: OpenClusters;
  readonly connections: HubConnections;
  readonly receipts: Receipts<MembershipReceipt>;
  now(): Date;
  readonly recordEvent: RecordEvent;
}

/** Index of memberships by the name of their hub. */
export const BY_HUB = 'hub';

import { isTrue } from '../../operator/api/conditions.ts';
import { LABELS } from '../../operator/api/group.ts';
import type { Membership } from '../../operator/api/membership.ts';
import { MEMBERSHIP_RECEIPTS } from '../../operator/controllers/membership/receipt.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import type { KubeClient } from '../../operator/kube/client.ts';
import { Informer } from '../../operator/kube/informer.ts';
import { EVENTS, HUBS, MEMBERSHIPS, SECRETS } from '../../operator/kube/resources.ts';

/** Follows what is written in a garden because clusters join its inventory and leave it. Only the operator writes any of it. */
export class HubWatch {
  readonly memberships: Informer<Membership>;
  readonly informers: readonly Informer<any>[];
  #writes = 0;

  constructor(client: KubeClient) {
    this.memberships = new Informer<Membership>(client, MEMBERSHIPS);
    this.informers = [
      this.memberships,
      new Informer(client, HUBS),
      new Informer(client, CLUSTERPROFILES),
      new Informer(client, SECRETS, { labelSelector: LABELS.membership }),
      new Informer(client, SECRETS, { labelSelector: MEMBERSHIP_RECEIPTS }),
      new Informer(client, EVENTS, { fieldSelector: 'involvedObject.kind=Membership' }),
    ];
    for (const informer of this.informers) informer.onChange(() => this.#writes++);
  }

  /** Versions of these objects that were stored since the watches began: each of them is one write. */
  get writes(): number {
    return this.#writes;
  }

  /** Whether the cluster is in all of its hubs. */
  hasJoined(namespace: string, name: string): boolean {
    const own = this.memberships
      .list()
      .filter(({ metadata, spec }) => metadata.namespace === namespace && spec.cluster === name);
    return own.length > 0 && own.every(({ status }) => isTrue(status?.conditions, 'Ready'));
  }
}

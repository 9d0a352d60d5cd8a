import { ANNOTATIONS } from '../../api/group.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { SeenCluster } from '../../clusters/attached-connection.ts';
import { seedIdentityOf } from '../../clusters/seed-access.ts';
import type { KubeClient } from '../../kube/client.ts';
import { keyOf } from '../../kube/resources.ts';
import type { AttachedDependencies } from './dependencies.ts';
import type { AttachedRefusal } from './facts.ts';
import { judgeIdentity } from './judge-identity.ts';
import type { AttachedReceipt } from './receipt.ts';

/** Registry of attached clusters' identities: each cluster is in the garden once. */
export class Claims {
  readonly #deps: Pick<
    AttachedDependencies,
    'namespace' | 'clusters' | 'openClusters' | 'receipts' | 'allReceipts' | 'platform'
  >;
  /** Claims in progress, by UID of kube-system: two objects opened at the same moment must not both get a cluster. */
  readonly #underway = new Map<string, string>();

  constructor(deps: AttachedDependencies) {
    this.#deps = deps;
  }

  /** Records the cluster's identity. @returns why the claim is refused */
  async claim(
    cluster: WorkerCluster,
    client: KubeClient,
    { identity }: SeenCluster,
    signal: AbortSignal,
  ): Promise<AttachedRefusal | undefined> {
    const deps = this.#deps;
    const key = keyOf(cluster);
    const { name, namespace = '', uid = '', annotations } = cluster.metadata;
    const before = deps.receipts.get(key);
    const pinned = before?.cluster.uid === uid ? before.identity : undefined;
    const made = await this.#madeHere(client, identity, key, signal);
    // No await between this check and the claim: another object may be opened at the same moment.
    const holder = this.#holderOf(identity, key) ?? made;
    const refusal = judgeIdentity({
      seen: identity,
      pinned,
      approved: annotations?.[ANNOTATIONS.approveCluster],
      platform: namespace === deps.namespace ? undefined : deps.platform().identities.get(identity),
      holder: holder === undefined ? undefined : { key: holder, own: holder.startsWith(`${namespace}/`) },
      annotation: ANNOTATIONS.approveCluster,
    });
    if (refusal || pinned === identity) return refusal;
    this.#underway.set(identity, key);
    try {
      await deps.receipts.save(key, { cluster: { namespace, name, uid }, identity }, before, signal);
    } finally {
      this.#underway.delete(identity);
    }
    return undefined;
  }

  #holderOf(identity: string, key: string): string | undefined {
    const { clusters } = this.#deps;
    const claimed = this.#underway.get(identity);
    if (claimed !== undefined && claimed !== key) return claimed;
    const receipt = this.#deps.allReceipts().find(({ identity: known, cluster: { namespace, name, uid } }) => {
      const other = `${namespace}/${name}`;
      return known === identity && other !== key && clusters.get(other)?.metadata.uid === uid;
    });
    return receipt && `${receipt.cluster.namespace}/${receipt.cluster.name}`;
  }

  /**
   * Whether another cluster of this garden, not attached, is the same one: only clusters with equal address or CA are
   * asked.
   */
  async #madeHere(client: KubeClient, identity: string, key: string, signal: AbortSignal): Promise<string | undefined> {
    const { openClusters } = this.#deps;
    for (const other of openClusters.keys()) {
      const open = openClusters.get(other);
      if (!open || other === key || open.identity !== undefined) continue;
      const isNear = open.server === client.server || (open.client.ca !== undefined && open.client.ca === client.ca);
      if (isNear && (await seedIdentityOf(open.client, signal).catch(() => '')) === identity) return other;
    }
    return undefined;
  }

  /** Receipt of the object with this UID. */
  receiptOf(key: string, uid: string): AttachedReceipt | undefined {
    const receipt = this.#deps.receipts.get(key);
    return receipt?.cluster.uid === uid ? receipt : undefined;
  }
}

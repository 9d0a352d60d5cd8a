import type { Quota } from '../../api/quota.ts';
import { nextInLine } from '../../cost/admission.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { writeStatus } from '../status-writer.ts';
import { type ClaimantDependencies, claimantsIn } from './claimants.ts';
import { quotaStatus } from './status.ts';

export interface QuotaDependencies extends ClaimantDependencies {
  readonly garden: KubeClient;
  /** With index BY_NAMESPACE. */
  readonly quotas: Informer<Quota>;
  now(): Date;
  /** Requeues the WorkerCluster of this key. */
  judge(key: string): void;
}

/**
 * Writes a quota's usage to its status, and requeues waiting clusters that fit now. Others stay: a thousand waiting
 * ones must not each cause a write.
 */
export async function reconcileQuota(deps: QuotaDependencies, key: string, signal: AbortSignal): Promise<void> {
  const quota = deps.quotas.get(key);
  if (!quota || quota.metadata.deletionTimestamp) return;
  const { namespace = '' } = quota.metadata;
  const claimants = claimantsIn(deps, namespace);
  const quotas = deps.quotas.byIndex(BY_NAMESPACE, namespace);
  for (const { key: cluster } of nextInLine(claimants, quotas)) deps.judge(cluster);
  await writeStatus(deps.garden, deps.quotas, quota, quotaStatus(quota, claimants, deps.now()), signal);
}

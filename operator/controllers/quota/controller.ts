import type { Quota } from '../../api/quota.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { writeStatus } from '../status-writer.ts';
import { type ClaimantWorld, claimantsIn } from './claimants.ts';
import { quotaStatus } from './status.ts';

export interface QuotaWorld extends ClaimantWorld {
  readonly garden: KubeClient;
  readonly quotas: Informer<Quota>;
  now(): Date;
}

/** Says in the status of a quota how much of it is used. It is enforced where clusters are judged, not here. */
export async function reconcileQuota(world: QuotaWorld, key: string, signal: AbortSignal): Promise<void> {
  const quota = world.quotas.get(key);
  if (!quota || quota.metadata.deletionTimestamp) return;
  const claimants = claimantsIn(world, quota.metadata.namespace ?? '');
  await writeStatus(world.garden, world.quotas, quota, quotaStatus(quota, claimants, world.now()), signal);
}

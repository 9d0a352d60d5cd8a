import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import type { Credentials, CredentialsUse } from '../../accounts/credentials.ts';
import { leftBehind, orphansOf } from '../../accounts/left-behind.ts';
import type { Orphan } from '../../accounts/orphans.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import { API_VERSION } from '../../api/group.ts';
import { checkedRegion } from '../../api/region.ts';
import { type KubeObject, splitKey } from '../../kube/resources.ts';
import type { ManagedDependencies } from './dependencies.ts';
import type { ManagedReceipt } from './receipt.ts';

export interface LeftOverDependencies
  extends Pick<ManagedDependencies, 'garden' | 'log' | 'now' | 'receipts' | 'stateBackend' | 'recordEvent'> {
  profile(name: string): CloudProfile | undefined;
  clouds(profile: CloudProfile): ManagedClusters | undefined;
  credentialsIn(use: CredentialsUse, signal: AbortSignal): Promise<Credentials>;
}

/** Interval of checking for leftovers. */
const AGAIN_MS = 6 * 3600_000;

/**
 * Reports leftovers in the cloud of a force-deleted cluster (its finalizer was removed), repeatedly until none are
 * left. Deletes nothing without permission.
 * @param receipt of the deleted cluster
 */
export async function reportLeftOver(
  deps: LeftOverDependencies,
  key: string,
  receipt: ManagedReceipt,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const what = `WorkerCluster ${key} was deleted by force`;
  let left: Orphan[] | undefined;
  let why = 'the provider cannot list it';
  try {
    left = await leftOf(deps, key, receipt, signal);
  } catch (error) {
    signal.throwIfAborted();
    why = errorText(error);
  }
  if (left?.length === 0) {
    await deps.receipts.remove(key, signal);
    deps.log.info({ cluster: key }, `${what}: nothing is left in the cloud`);
    return undefined;
  }
  const message = leftBehind(what, receipt.account, receipt.owner, left ?? why);
  deps.log.warn({ cluster: key, left: left?.length }, message);
  deps.recordEvent(regarding(key, receipt), 'Warning', 'LeftBehind', message);
  return { requeueAfterMs: AGAIN_MS };
}

/** undefined: the provider cannot tell. */
async function leftOf(
  deps: LeftOverDependencies,
  key: string,
  receipt: ManagedReceipt,
  signal: AbortSignal,
): Promise<Orphan[] | undefined> {
  const { namespace } = splitKey(key);
  const profile = deps.profile(receipt.profile);
  const clouds = profile && deps.clouds(profile);
  if (!profile || !clouds?.tagged) return undefined;
  // Never credentials of another namespace, whatever is recorded: their tenant did not lend them.
  const credentials = await deps.credentialsIn({ ...receipt.credentials, namespace }, signal);
  const ctx: Omit<CloudContext, 'owner'> = {
    account: { id: receipt.account, credentials: credentials.values },
    region: checkedRegion(receipt.cluster.region),
    profile,
    state: await deps.stateBackend(profile, signal),
    log: deps.log,
    signal,
    now: () => deps.now(),
  };
  return orphansOf({ garden: deps.garden, uid: receipt.owner.uid }, clouds, ctx);
}

/** Reference to the deleted cluster for Events. */
function regarding(key: string, { owner }: ManagedReceipt): KubeObject {
  const { namespace, name } = splitKey(key);
  return { apiVersion: API_VERSION, kind: 'WorkerCluster', metadata: { name, namespace, uid: owner.uid } };
}

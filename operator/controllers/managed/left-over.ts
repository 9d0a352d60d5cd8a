import type { CloudContext, ManagedClusters } from '../../../providers/cloud.ts';
import type { Credentials, CredentialsUse } from '../../accounts/credentials.ts';
import { leftBehind, orphansOf } from '../../accounts/left-behind.ts';
import type { Orphan } from '../../accounts/orphans.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { errorText } from '../../api/errors.ts';
import { API_VERSION } from '../../api/group.ts';
import { checkedRegion } from '../../api/region.ts';
import type { KubeObject } from '../../kube/resources.ts';
import type { ManagedRecord } from './record.ts';
import type { ManagedWorld } from './world.ts';

export interface LeftOverWorld
  extends Pick<ManagedWorld, 'garden' | 'log' | 'now' | 'records' | 'stateBackend' | 'record'> {
  profile(name: string): CloudProfile | undefined;
  clouds(profile: CloudProfile): ManagedClusters | undefined;
  credentialsIn(use: CredentialsUse, signal: AbortSignal): Promise<Credentials>;
}

/** How often what was left behind is looked for again. */
const AGAIN_MS = 6 * 3600_000;

/**
 * A cluster was deleted by force (its finalizer was taken off): says what is left of it in the cloud, and goes on saying so
 * until nothing is. It removes nothing: nobody said that it may.
 * @param record what is remembered of the cluster, which is no more
 */
export async function reportLeftOver(
  world: LeftOverWorld,
  key: string,
  record: ManagedRecord,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | undefined> {
  const what = `WorkerCluster ${key} was deleted by force`;
  let left: Orphan[] | undefined;
  let why = 'the provider cannot list it';
  try {
    left = await leftOf(world, key, record, signal);
  } catch (error) {
    signal.throwIfAborted();
    why = errorText(error);
  }
  if (left?.length === 0) {
    await world.records.remove(key, signal);
    world.log.info({ cluster: key }, `${what}: nothing is left in the cloud`);
    return undefined;
  }
  const message = leftBehind(what, record.account, record.owner, left ?? why);
  world.log.warn({ cluster: key, left: left?.length }, message);
  world.record(regarding(key, record), 'Warning', 'LeftBehind', message);
  return { requeueAfterMs: AGAIN_MS };
}

/** undefined: the provider cannot tell. */
async function leftOf(
  world: LeftOverWorld,
  key: string,
  record: ManagedRecord,
  signal: AbortSignal,
): Promise<Orphan[] | undefined> {
  const [namespace = ''] = key.split('/');
  const profile = world.profile(record.profile);
  const clouds = profile && world.clouds(profile);
  if (!profile || !clouds?.tagged) return undefined;
  // Never those of another namespace, whatever is written down: its tenant did not lend them.
  const credentials = await world.credentialsIn({ ...record.credentials, namespace }, signal);
  const ctx: Omit<CloudContext, 'owner'> = {
    account: { id: record.account, credentials: credentials.values },
    region: checkedRegion(record.cluster.region),
    profile,
    state: await world.stateBackend(profile, signal),
    log: world.log,
    signal,
    now: () => world.now(),
  };
  return orphansOf({ garden: world.garden, uid: record.owner.uid }, clouds, ctx);
}

/** The cluster itself is gone: what is said is about what it was. */
function regarding(key: string, { owner }: ManagedRecord): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return { apiVersion: API_VERSION, kind: 'WorkerCluster', metadata: { name, namespace, uid: owner.uid } };
}

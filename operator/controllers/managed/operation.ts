import type { CloudContext, CloudProgress, ManagedClusters } from '../../../providers/cloud.ts';
import { accountKeyOf, type Credentials } from '../../accounts/credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { checkedRegion } from '../../api/region.ts';
import type { ManagedDependencies } from './dependencies.ts';
import type { ManagedWish } from './facts.ts';
import type { ManagedReceipt, Removing } from './receipt.ts';
import type { ManagedState } from './state.ts';
import { ownerOf, unknownCluster } from './wish.ts';

/** One step, with all that it works on. */
export interface ManagedOperation {
  readonly deps: ManagedDependencies;
  readonly key: string;
  readonly state: ManagedState;
  /** As it was when the step was begun. */
  readonly wish: ManagedWish;
  readonly receipt: ManagedReceipt | undefined;
  /** Nodes that are to be removed. */
  readonly removal: Removing | undefined;
  /** Or why there are none. */
  readonly credentials: Credentials | Error;
  readonly signal: AbortSignal;
  /** Says how far the operation is. */
  progress(progress: CloudProgress): void;
}

/** The clouds and the profile of a wish; throws when they are gone. */
export function cloudsOf({ wish: { clouds, profile, cluster } }: Pick<ManagedOperation, 'wish'>): {
  clouds: ManagedClusters;
  profile: CloudProfile;
} {
  if (!profile)
    throw notYetConfigured(
      `the CloudProfile of WorkerCluster ${cluster.metadata.name} does not exist`,
      'Bring it back: without it nothing can be changed in the cloud, nor taken away.',
    );
  if (!clouds) throw configurationProblem(`CloudProfile ${profile.metadata.name} has no managed service`);
  return { clouds, profile };
}

/** What every call to the cloud is told. */
export async function contextOf(op: ManagedOperation): Promise<CloudContext> {
  const { deps, wish, receipt, state, credentials, signal } = op;
  if (credentials instanceof Error) throw credentials;
  const { profile } = cloudsOf(op);
  const { use } = credentials;
  return {
    owner: ownerOf(wish.cluster, deps.garden),
    account: {
      id: state.accepted?.account ?? receipt?.account ?? accountKeyOf(use),
      credentials: credentials.values,
    },
    region: checkedRegion((receipt?.cluster ?? wish.desired ?? unknownCluster(wish)).region),
    profile,
    state: await deps.stateBackend(profile, signal),
    log: deps.log,
    signal,
    now: () => deps.now(),
    onProgress: (progress) => op.progress(progress),
  };
}

import type { CloudContext, CloudProgress, ManagedClusters } from '../../../providers/cloud.ts';
import { accountKeyOf, type Credentials } from '../../accounts/credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { configurationProblem, notYetConfigured } from '../../api/errors.ts';
import { checkedRegion } from '../../api/region.ts';
import type { ManagedDependencies } from './dependencies.ts';
import type { ManagedWish } from './facts.ts';
import type { ManagedReceipt, Removing } from './receipt.ts';
import type { ManagedState } from './state.ts';
import { cloudOwnerOf, unknownCluster } from './wish.ts';

/** A step with its inputs. */
export interface ManagedOperation {
  readonly deps: ManagedDependencies;
  readonly key: string;
  readonly state: ManagedState;
  /** At the start of the step. */
  readonly wish: ManagedWish;
  readonly receipt: ManagedReceipt | undefined;
  /** Nodes to remove. */
  readonly removal: Removing | undefined;
  /** Or why there are none. */
  readonly credentials: Credentials | Error;
  readonly signal: AbortSignal;
  /** Reports progress. */
  progress(progress: CloudProgress): void;
}

/** Cloud and profile of a wish; throws when missing. */
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

/** Context of every call to the cloud. */
export async function contextOf(op: ManagedOperation): Promise<CloudContext> {
  const { deps, wish, receipt, state, credentials, signal } = op;
  if (credentials instanceof Error) throw credentials;
  const { profile } = cloudsOf(op);
  const { use } = credentials;
  return {
    owner: cloudOwnerOf(wish.cluster, deps.garden),
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

import type { CloudProfile } from '../../api/cloudprofile.ts';
import { findCondition } from '../../api/conditions.ts';
import type { ClusterSize } from '../../api/cost.ts';
import { type Shoot, shootProfileName } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { type Decided, desiredSizes } from '../../capacity/desired-sizes.ts';
import type { Claimant } from '../../cost/admission.ts';
import { askedSize, shootSize } from '../../cost/size.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf } from '../../kube/resources.ts';
import { BY_NAMESPACE } from '../by-namespace.ts';
import { type ClusterInPlace, whereItIs } from '../where-it-is.ts';

/** What shares are counted from. */
export interface ClaimantDependencies {
  /** With index BY_NAMESPACE. */
  readonly clusters: Informer<WorkerCluster>;
  /** With index BY_NAMESPACE. */
  readonly shoots: Informer<Shoot>;
  readonly profiles: Informer<CloudProfile>;
  /**
   * Uid of a WorkerCluster -> what was granted to it in this process and is perhaps not yet in its status: two decisions
   * in the same moment must not both be given the last piece.
   */
  readonly granted: Map<string, ClusterSize>;
  /** What was decided for the pools of a cluster. Absent: nobody decides here. */
  readonly decided?: (cluster: WorkerCluster) => Decided;
}

/** The reason of condition SpecAccepted of a cluster that waits for its quota. */
export const OVER_QUOTA = 'QuotaExceeded';

/** Whether the spec as it is now was refused. */
export const isRefused = ({ status }: WorkerCluster): boolean =>
  findCondition(status?.conditions, 'SpecAccepted')?.status === 'False';

/** What the cluster was granted and has not given back. One from before this was kept has what its Shoot says. */
export function heldBy(deps: ClaimantDependencies, cluster: WorkerCluster): ClusterSize | undefined {
  const granted = deps.granted.get(cluster.metadata.uid ?? '') ?? cluster.status?.admitted;
  if (granted) return granted;
  const shoot = deps.shoots.get(keyOf(cluster));
  return shoot && ownerUid(shoot) === cluster.metadata.uid ? shootSize(shoot) : undefined;
}

const ownerUid = (shoot: Shoot): string | undefined =>
  shoot.metadata.ownerReferences?.find((owner) => owner.kind === 'WorkerCluster')?.uid;

/** Whether the cluster asks for something that was not yet judged, or that only a quota stands against. */
function isWaiting({ metadata, status }: WorkerCluster): boolean {
  if (metadata.deletionTimestamp) return false;
  const accepted = findCondition(status?.conditions, 'SpecAccepted');
  return !accepted || status?.observedGeneration !== metadata.generation || accepted.reason === OVER_QUOTA;
}

// Objects of a cache are never changed in place: while they are the same, so is what is asked for.
const remembered = new WeakMap<WorkerCluster, { profile: CloudProfile; decided: Decided; size: ClusterSize }>();

/** @returns undefined where what was decided is unknown: it asks for no more than it holds. */
function asks(
  deps: ClaimantDependencies,
  written: WorkerCluster,
  { cluster, profile }: ClusterInPlace,
): ClusterSize | undefined {
  const decided = deps.decided?.(written) ?? 'none';
  if (decided === 'unknown') return undefined;
  const known = remembered.get(written);
  if (known?.profile === profile && known.decided === decided) return known.size;
  const size = askedSize(cluster, profile, desiredSizes({ cluster, profile, decided }));
  remembered.set(written, { profile, decided, size });
  return size;
}

/** Everybody in the namespace who has a share of its quotas: WorkerClusters, and Shoots that somebody made by hand. */
export function claimantsIn(deps: ClaimantDependencies, namespace: string): Claimant[] {
  const clusters = deps.clusters.byIndex(BY_NAMESPACE, namespace).map((cluster): Claimant => {
    const held = heldBy(deps, cluster);
    // What it holds says first in which of its places it is.
    const there = whereItIs(cluster, deps.profiles, held?.region ?? cluster.status?.region);
    return {
      key: keyOf(cluster),
      createdAt: cluster.metadata.creationTimestamp ?? '',
      profile: there?.profile,
      held,
      asked: there && isWaiting(cluster) ? asks(deps, cluster, there) : undefined,
    };
  });
  const byHand = deps.shoots
    .byIndex(BY_NAMESPACE, namespace)
    .filter((shoot) => ownerUid(shoot) === undefined)
    .map(
      (shoot): Claimant => ({
        key: `Shoot ${keyOf(shoot)}`,
        createdAt: shoot.metadata.creationTimestamp ?? '',
        profile: deps.profiles.get(shootProfileName(shoot.spec) ?? ''),
        held: shootSize(shoot),
        asked: undefined,
      }),
    );
  return [...clusters, ...byHand];
}

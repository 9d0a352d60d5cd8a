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

/** Inputs of quota shares. */
export interface ClaimantDependencies {
  /** With index BY_NAMESPACE. */
  readonly clusters: Informer<WorkerCluster>;
  /** With index BY_NAMESPACE. */
  readonly shoots: Informer<Shoot>;
  readonly profiles: Informer<CloudProfile>;
  /**
   * Granted size by WorkerCluster UID that its status may not show yet: two simultaneous decisions must not both get
   * the last share.
   */
  readonly granted: Map<string, ClusterSize>;
  /** Decided sizes of a cluster's pools. Absent: none. */
  readonly decided?: (cluster: WorkerCluster) => Decided;
}

/** Reason of SpecAccepted while a cluster waits for its quota. */
export const OVER_QUOTA = 'QuotaExceeded';

/** Whether the present spec was refused. */
export const isRefused = ({ status }: WorkerCluster): boolean =>
  findCondition(status?.conditions, 'SpecAccepted')?.status === 'False';

/** Granted size of a cluster that is not returned. For an older cluster, the size of its Shoot. */
export function heldBy(deps: ClaimantDependencies, cluster: WorkerCluster): ClusterSize | undefined {
  const granted = deps.granted.get(cluster.metadata.uid ?? '') ?? cluster.status?.admitted;
  if (granted) return granted;
  const shoot = deps.shoots.get(keyOf(cluster));
  return shoot && ownerUid(shoot) === cluster.metadata.uid ? shootSize(shoot) : undefined;
}

const ownerUid = (shoot: Shoot): string | undefined =>
  shoot.metadata.ownerReferences?.find((owner) => owner.kind === 'WorkerCluster')?.uid;

/** Whether the cluster has an unjudged wish, or one that only quotas refuse. */
function isWaiting({ metadata, status }: WorkerCluster): boolean {
  if (metadata.deletionTimestamp) return false;
  const accepted = findCondition(status?.conditions, 'SpecAccepted');
  return !accepted || status?.observedGeneration !== metadata.generation || accepted.reason === OVER_QUOTA;
}

// Cached objects are immutable: equal objects have equal wishes.
const remembered = new WeakMap<WorkerCluster, { profile: CloudProfile; decided: Decided; size: ClusterSize }>();

/** @returns undefined when decisions are unknown: it asks for no more than it holds */
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

/** All quota users of a namespace: WorkerClusters, and Shoots that people made. */
export function claimantsIn(deps: ClaimantDependencies, namespace: string): Claimant[] {
  const clusters = deps.clusters.byIndex(BY_NAMESPACE, namespace).map((cluster): Claimant => {
    const held = heldBy(deps, cluster);
    // The grant tells which place the cluster is in.
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

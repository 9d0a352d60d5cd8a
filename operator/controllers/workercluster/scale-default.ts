import { ANNOTATIONS } from '../../api/group.ts';
import { isSizedByCloud } from '../../api/pools.ts';
import { MAX_NODES } from '../../api/worker-pool.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import { DEFAULTER, ownersOf } from '../stated-size.ts';
import type { SizedView } from './view.ts';

/**
 * New status.defaultedNodes, which the scale subresource reports when nobody set a number; undefined: somebody did.
 * Pure.
 */
export function nodesToTell(
  { cluster, sizes, asleep, managed }: SizedView,
  nodes: WorkerClusterStatus['nodes'],
): number[] | undefined {
  if (cluster.spec.dataPlaneNodes !== undefined) return undefined;
  const least =
    sizes.length > 0 ? sizes.map(({ count }) => count) : (cluster.spec.pools ?? []).map((pool) => pool.minimum ?? 0);
  const sum = least.reduce((total, count) => total + count, 0);
  // With a cloud's autoscaler, its choice: relative scaling must not start at the minimum.
  const chosen = asleep || cluster.spec.adopt || !managed ? 0 : (nodes?.desired ?? 0);
  const next = Math.min(MAX_NODES, Math.max(sum, sizes.some(isSizedByCloud) ? chosen : 0));
  return [...new Set([cluster.defaulted?.nodes ?? next, next])];
}

/**
 * Fills in spec.dataPlaneNodes from status.defaultedNodes with an annotation that marks it; removes the annotation once
 * somebody set another number. Gives up ownership of the field: otherwise a server-side apply with a number would
 * conflict. Writes only differences, and never over a concurrent change.
 */
export async function fillIn(
  garden: Pick<KubeClient, 'mergePatch'>,
  cache: Pick<Informer<WorkerCluster>, 'get' | 'absorb'>,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<void> {
  const newest = cache.get(keyOf(cluster));
  if (!newest || newest.metadata.uid !== cluster.metadata.uid || newest.metadata.deletionTimestamp) return;
  const nodes = newest.spec.dataPlaneNodes === undefined ? newest.status?.defaultedNodes?.at(-1) : undefined;
  if (nodes === undefined && !newest.hasOldMark) return;
  const { name, namespace, resourceVersion } = newest.metadata;
  const write = (resourceVersion: string | undefined, patch: { metadata?: object; spec?: object }) =>
    garden.mergePatch<WorkerCluster>(
      WORKERCLUSTERS,
      name,
      namespace,
      { ...patch, metadata: { ...patch.metadata, resourceVersion } },
      { fieldManager: DEFAULTER, signal },
    );
  try {
    const { defaulted } = newest;
    if (nodes !== undefined && defaulted?.nodes === nodes && !defaulted.owned && defaulted.marked) return;
    const annotations = { [ANNOTATIONS.filledInNodes]: nodes === undefined ? null : String(nodes) };
    // Unlike the cache, the answer has managedFields.
    let live = await write(resourceVersion, {
      metadata: { annotations },
      ...(nodes !== undefined && { spec: { dataPlaneNodes: nodes } }),
    });
    const owners = ownersOf(live)?.filter((entry) => entry.manager !== DEFAULTER);
    if (owners?.length !== ownersOf(live)?.length)
      live = await write(live.metadata.resourceVersion, { metadata: { managedFields: owners } });
    cache.absorb(live);
  } catch (error) {
    // Conflict: the cache will bring the other write.
    if (!(error instanceof KubeApiError && error.isConflict)) throw error;
  }
}

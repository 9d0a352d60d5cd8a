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
 * status.defaultedNodes: what the scale subresource is to say where nobody wrote a number, after what it says until that is written;
 * undefined: somebody did. Pure.
 */
export function nodesToTell(
  { cluster, sizes, asleep, managed }: SizedView,
  nodes: WorkerClusterStatus['nodes'],
): number[] | undefined {
  if (cluster.spec.dataPlaneNodes !== undefined) return undefined;
  const least =
    sizes.length > 0 ? sizes.map(({ count }) => count) : (cluster.spec.pools ?? []).map((pool) => pool.minimum ?? 0);
  const sum = least.reduce((total, count) => total + count, 0);
  // Where a cloud's autoscaler chooses, it is what that chose: who scales by it must not begin at the minimum.
  const chosen = asleep || cluster.spec.adopt || !managed ? 0 : (nodes?.desired ?? 0);
  const next = Math.min(MAX_NODES, Math.max(sum, sizes.some(isSizedByCloud) ? chosen : 0));
  return [...new Set([cluster.defaulted?.nodes ?? next, next])];
}

/**
 * Fills in what status.defaultedNodes says, with an annotation that says so wherever the object goes; takes the annotation away once
 * somebody has written another number. Lets go of the field: with an owner, a manifest that is applied on the server's side and says a
 * number would conflict. Writes only what differs, and nothing over what somebody else has written meanwhile.
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
    // An answer says who owns what; the cache does not.
    let live = await write(resourceVersion, {
      metadata: { annotations },
      ...(nodes !== undefined && { spec: { dataPlaneNodes: nodes } }),
    });
    const owners = ownersOf(live)?.filter((entry) => entry.manager !== DEFAULTER);
    if (owners?.length !== ownersOf(live)?.length)
      live = await write(live.metadata.resourceVersion, { metadata: { managedFields: owners } });
    cache.absorb(live);
  } catch (error) {
    // Somebody has written meanwhile: the cache brings what.
    if (!(error instanceof KubeApiError && error.isConflict)) throw error;
  }
}

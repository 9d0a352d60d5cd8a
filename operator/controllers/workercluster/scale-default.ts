import { MAX_NODES, type WorkerCluster, type WorkerClusterStatus } from '../../api/workercluster.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { type Informer, LAST_APPLIED } from '../../kube/informer.ts';
import { keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import type { SizedView } from './view.ts';

/** Who fills in spec.dataPlaneNodes: nobody's wish. */
export const DEFAULTER = 'coppice-scale-default';

interface Owned {
  manager?: string;
  operation?: string;
  subresource?: string;
  fieldsV1?: { 'f:spec'?: Record<string, unknown> };
}
const FIELD = 'f:dataPlaneNodes';
const owns = ({ fieldsV1 }: Owned): boolean => fieldsV1?.['f:spec']?.[FIELD] !== undefined;
const ownersOf = ({ metadata }: WorkerCluster): Owned[] | undefined => metadata.managedFields as Owned[] | undefined;

/**
 * A WorkerCluster as people wrote it: without the number of nodes that the operator filled in for the scale subresource. Where that cannot
 * be told from a person's, it is a person's: a size that was fixed by mistake is seen, one that was taken back drains nodes. May change
 * what it gets.
 */
export function asStated(cluster: WorkerCluster): WorkerCluster {
  const { spec, status, metadata } = cluster;
  const nodes = spec?.dataPlaneNodes;
  const owners = ownersOf(cluster);
  // A write to the scale subresource may leave no owner: another number than ours is a person's.
  if (nodes === undefined || !status?.defaultedNodes?.includes(nodes) || !owners) return cluster;
  const whose = owners.filter(owns);
  if (whose.some(({ manager }) => manager !== DEFAULTER) || isInManifest(metadata.annotations?.[LAST_APPLIED]))
    return cluster;
  const { dataPlaneNodes: _, ...stated } = spec;
  return { ...cluster, spec: stated, defaulted: { nodes, owned: whose.length > 0 } };
}

/** Whether a manifest of `kubectl apply` says the number: where it is the one that was there, the API server makes kubectl no owner. */
function isInManifest(lastApplied: string | undefined): boolean {
  try {
    const manifest = JSON.parse(lastApplied ?? '{}') as { spec?: { dataPlaneNodes?: number | null } } | null;
    return typeof manifest?.spec?.dataPlaneNodes === 'number';
  } catch {
    return true;
  }
}

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
  const next = Math.min(MAX_NODES, Math.max(sum, sizes.some(({ sizedBy }) => sizedBy === 'minimum') ? chosen : 0));
  return [...new Set([cluster.defaulted?.nodes ?? next, next])];
}

/**
 * Fills in what status.defaultedNodes says, and lets go of the field: with an owner, a manifest that is applied on the server's side and
 * says a number would conflict. Writes only what differs, and nothing over what somebody else has written meanwhile.
 */
export async function fillIn(
  garden: Pick<KubeClient, 'mergePatch'>,
  cache: Pick<Informer<WorkerCluster>, 'get' | 'absorb'>,
  cluster: WorkerCluster,
  signal: AbortSignal,
): Promise<void> {
  const newest = cache.get(keyOf(cluster));
  const nodes = newest?.status?.defaultedNodes?.at(-1);
  if (!newest || nodes === undefined || newest.metadata.uid !== cluster.metadata.uid) return;
  if (newest.spec.dataPlaneNodes !== undefined || newest.metadata.deletionTimestamp) return;
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
    if (newest.defaulted?.nodes === nodes && !newest.defaulted.owned) return;
    // An answer says who owns what; the cache does not.
    let live = await write(resourceVersion, { spec: { dataPlaneNodes: nodes } });
    const owners = ownersOf(live)?.filter((entry) => entry.manager !== DEFAULTER);
    if (owners?.length !== ownersOf(live)?.length)
      live = await write(live.metadata.resourceVersion, { metadata: { managedFields: owners } });
    cache.absorb(live);
  } catch (error) {
    // Somebody has written meanwhile: the cache brings what.
    if (!(error instanceof KubeApiError && error.isConflict)) throw error;
  }
}

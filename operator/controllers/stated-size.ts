import type { WorkerCluster } from '../api/workercluster.ts';
import { LAST_APPLIED } from '../kube/informer.ts';

/** Who fills in spec.dataPlaneNodes: nobody's wish. */
export const DEFAULTER = 'coppice-scale-default';

export interface Owned {
  manager?: string;
  operation?: string;
  subresource?: string;
  fieldsV1?: { 'f:spec'?: Record<string, unknown> };
}
const FIELD = 'f:dataPlaneNodes';
const owns = ({ fieldsV1 }: Owned): boolean => fieldsV1?.['f:spec']?.[FIELD] !== undefined;
export const ownersOf = ({ metadata }: WorkerCluster): Owned[] | undefined =>
  metadata.managedFields as Owned[] | undefined;

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
  if (nodes === undefined || !owners) return cluster;
  const whose = owners.filter(owns);
  const others = whose.flatMap(({ manager }) => (manager && manager !== DEFAULTER ? [manager] : []));
  if (
    !status?.defaultedNodes?.includes(nodes) ||
    others.length > 0 ||
    isInManifest(metadata.annotations?.[LAST_APPLIED])
  )
    return others.length > 0 ? { ...cluster, statedBy: [...new Set(others)].sort().join(', ') } : cluster;
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

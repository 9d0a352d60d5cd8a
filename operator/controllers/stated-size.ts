import { ANNOTATIONS } from '../api/group.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { LAST_APPLIED } from '../kube/informer.ts';

/** Who fills in spec.dataPlaneNodes: nobody's wish. */
export const DEFAULTER = 'coppice-scale-default';

interface Owned {
  manager?: string;
  operation?: string;
  subresource?: string;
  fieldsV1?: {
    'f:spec'?: Record<string, unknown>;
    'f:metadata'?: { 'f:annotations'?: Record<string, unknown> };
  };
}
const FIELD = 'f:dataPlaneNodes';
const MARK = `f:${ANNOTATIONS.filledInNodes}`;
const owns = ({ fieldsV1 }: Owned): boolean => fieldsV1?.['f:spec']?.[FIELD] !== undefined;
const ownsMark = ({ fieldsV1 }: Owned): boolean => fieldsV1?.['f:metadata']?.['f:annotations']?.[MARK] !== undefined;
export const ownersOf = ({ metadata }: WorkerCluster): Owned[] | undefined =>
  metadata.managedFields as Owned[] | undefined;

/**
 * A WorkerCluster as people wrote it: without the number of nodes that the operator filled in for the scale subresource. That is the
 * operator's where the annotation says the same number, and whoever wrote the one wrote the other: then it came back with an export or a
 * backup. Else where status.defaultedNodes has it and nobody owns it. Where that cannot be told from a person's, it is a person's: a size
 * that was fixed by mistake is seen, one that was taken back drains nodes. May change what it gets.
 */
export function asStated(cluster: WorkerCluster): WorkerCluster {
  const { spec, status, metadata } = cluster;
  const nodes = spec?.dataPlaneNodes;
  const owners = ownersOf(cluster);
  // A write to the scale subresource may leave no owner: another number than ours is a person's.
  if (nodes === undefined || !owners) return cluster;
  const { [ANNOTATIONS.filledInNodes]: mark, [LAST_APPLIED]: lastApplied } = metadata.annotations ?? {};
  const marked = mark === String(nodes) && (spec.pools ?? []).length > 0;
  const whose = owners.filter(owns);
  const others = whose.flatMap((owner) =>
    owner.manager && owner.manager !== DEFAULTER && !(marked && ownsMark(owner)) ? [owner.manager] : [],
  );
  const isOurs =
    (marked || status?.defaultedNodes?.includes(nodes) === true) && others.length === 0 && !isWished(lastApplied);
  if (!isOurs) {
    // Who applies a manifest with it again and again would write it back each time.
    const isApplied = owners.some((owner) => owner.operation === 'Apply' && ownsMark(owner));
    const isOld = mark !== undefined && !isApplied && !lastApplied?.includes(ANNOTATIONS.filledInNodes);
    return {
      ...cluster,
      ...(others.length > 0 && { statedBy: [...new Set(others)].sort().join(', ') }),
      ...(isOld && { hasOldMark: true as const }),
    };
  }
  const { dataPlaneNodes: _, ...stated } = spec;
  const owned = whose.some(({ manager }) => manager === DEFAULTER);
  return { ...cluster, spec: stated, defaulted: { nodes, owned, marked } };
}

interface Manifest {
  metadata?: { annotations?: Record<string, string> };
  spec?: { dataPlaneNodes?: number | null };
}

/**
 * Whether a manifest of `kubectl apply` says the number and does not say that it is ours: where it is the one that was there, the API server
 * makes kubectl no owner.
 */
function isWished(lastApplied: string | undefined): boolean {
  try {
    const manifest = JSON.parse(lastApplied ?? '{}') as Manifest | null;
    const said = manifest?.spec?.dataPlaneNodes;
    if (typeof said !== 'number') return false;
    // An older manifest says another number than the operator has filled in since.
    return manifest?.metadata?.annotations?.[ANNOTATIONS.filledInNodes] !== String(said);
  } catch {
    return true;
  }
}

import { ANNOTATIONS } from '../api/group.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { LAST_APPLIED } from '../kube/informer.ts';

/** Field manager that fills in spec.dataPlaneNodes: nobody's wish. */
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
 * The WorkerCluster as people wrote it, without a number that the operator filled in for the scale subresource. The
 * number is the operator's if the annotation has the same number and the same writer (as after export or backup), or if
 * status.defaultedNodes has it and nobody owns it. In doubt it is a person's: a size fixed by mistake is visible, a
 * removed one drains nodes. May change its argument.
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
    // A repeated apply with the annotation would restore it each time.
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
 * Whether a manifest of `kubectl apply` has the number without our annotation: for an unchanged value the API server
 * makes kubectl no owner.
 */
function isWished(lastApplied: string | undefined): boolean {
  try {
    const manifest = JSON.parse(lastApplied ?? '{}') as Manifest | null;
    const said = manifest?.spec?.dataPlaneNodes;
    if (typeof said !== 'number') return false;
    // An older manifest has an earlier filled-in number.
    return manifest?.metadata?.annotations?.[ANNOTATIONS.filledInNodes] !== String(said);
  } catch {
    return true;
  }
}

import type { Problem } from '../../../providers/contract.ts';
import { NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import { type MeshRequest, RANGE_KINDS } from '../../mesh/allocate.ts';
import type { KnownEntry } from '../../mesh/meshes.ts';
import { meshRequest } from '../../mesh/request.ts';
import { type Said, say } from '../conditions.ts';
import { problem } from '../spec-problems.ts';
import { runningMode } from './resolve.ts';
import type { Mode, Resolved, WorkerClusterView } from './view.ts';

/** Most names in a message. */
const MOST_NAMED = 3;

/** Mesh allocation that an accepted cluster needs first; undefined: none. */
export function meshWanted(view: WorkerClusterView, { mode, pools, ranges }: Resolved): MeshRequest | undefined {
  const { cluster, profile, mesh } = view;
  // A running cluster keeps its ranges, outside of any mesh.
  if (!profile || !mesh || mesh.known || mesh.refused || runningMode(view)) return undefined;
  return meshRequest(cluster, profile, { mode, pools, ranges });
}

export const meshProblems = ({ mesh }: WorkerClusterView): Problem[] =>
  mesh?.refused ? [problem(mesh.refused.field, mesh.refused.message)] : [];

/** Labels of the Shoot of a mesh's cluster, from which a lost receipt is rebuilt. */
export const meshLabels = (known: KnownEntry | undefined): Record<string, string> =>
  known
    ? {
        [LABELS.mesh]: known.mesh,
        [LABELS.clusterID]: String(known.entry.id),
        [LABELS.meshClusterName]: known.entry.name,
      }
    : {};

/** Mesh entry in the labels of its Shoot, which only the operator and administrators write; undefined: none. */
export function knownByShoot({ metadata, spec }: Shoot): KnownEntry | undefined {
  const { [LABELS.mesh]: mesh, [LABELS.clusterID]: id, [LABELS.meshClusterName]: name } = metadata.labels ?? {};
  if (!mesh || !name || !Number.isSafeInteger(Number(id))) return undefined;
  const given = RANGE_KINDS.filter((kind) => spec.networking?.[kind] !== undefined);
  const ranges = Object.fromEntries(given.map((kind) => [kind, spec.networking?.[kind]]));
  return { mesh, entry: { uid: metadata.ownerReferences?.[0]?.uid ?? '', id: Number(id), name, ...ranges, given } };
}

/** Address ranges of the cluster, and its identity in the mesh. */
export function networkingStatus(
  view: WorkerClusterView,
  { ranges }: Resolved,
  exists: boolean,
): Pick<WorkerClusterStatus, 'networking'> {
  const { cluster, shoot, mesh } = view;
  const { pods, services } = shoot?.spec.networking ?? (exists && !cluster.spec.adopt ? ranges : {});
  const known = mesh?.known;
  if (!pods && !services && !known) return {};
  return {
    networking: {
      ...(pods && { pods }),
      ...(services && { services }),
      ...(known && { mesh: known.mesh, clusterID: known.entry.id, clusterName: known.entry.name }),
    },
  };
}

/** Ranges of a cluster that are not allocated exclusively; empty: none. */
export function ownRanges({ spec }: WorkerCluster, known: KnownEntry | undefined): string[] {
  const of = (kind: (typeof RANGE_KINDS)[number]) =>
    known?.entry.given.includes(kind) ? undefined : (known?.entry[kind] ?? spec.networking?.[kind]);
  return RANGE_KINDS.flatMap((kind) => of(kind) ?? []);
}

/** Whether the cluster can be connected with clusters of meshes; undefined: not requested. */
export function rangesCondition({ mesh }: WorkerClusterView): Said<'WorkerCluster'> | undefined {
  const { known, overlapping = [] } = mesh ?? {};
  if (overlapping.length > 0) {
    const [named, more] = [overlapping.slice(0, MOST_NAMED).join(', '), overlapping.length - MOST_NAMED];
    const message = `its addresses overlap with those of WorkerCluster ${named}${more > 0 ? ` and ${more} more` : ''} in a mesh, so they cannot be connected. Create it again with other networking.pods and services`;
    return say('RangesUnique', false, 'Overlap', message);
  }
  if (!known) return undefined;
  return say('RangesUnique', true, 'NoOverlap', `no other cluster of mesh ${known.mesh} has its addresses`);
}

/**
 * Condition that NetworkPolicies have no effect, for networks made by Coppice: the API server accepts them, and nothing
 * else reports that they are not enforced. Clouds' managed networks enforce them.
 */
export function policiesCondition(mode: Mode | undefined): Said<'WorkerCluster'> | undefined {
  if (mode !== 'Hosted' && mode !== 'SelfManaged') return undefined;
  const message =
    'NetworkPolicies are kept and have no effect: each pod reaches all pods of the cluster. Install a network plugin that enforces them, or do not rely on them';
  return say(NETWORK_POLICIES_ENFORCED, false, 'NoEnforcement', message);
}

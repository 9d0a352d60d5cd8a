import type { Problem } from '../../../providers/contract.ts';
import { NETWORK_POLICIES_ENFORCED } from '../../api/conditions.ts';
import { LABELS } from '../../api/group.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import { KINDS, type MeshRequest } from '../../mesh/allocate.ts';
import type { KnownEntry } from '../../mesh/meshes.ts';
import { meshRequest } from '../../mesh/request.ts';
import { type Said, say } from '../conditions.ts';
import { problem } from '../spec-problems.ts';
import { runningMode } from './resolve.ts';
import type { Mode, Resolved, WorkerClusterView } from './view.ts';

/** More names help nobody. */
const MOST_NAMED = 3;

/** What a cluster that is accepted has to be given before anything of it is made; undefined: nothing. */
export function meshWanted(view: WorkerClusterView, { mode, pools, ranges }: Resolved): MeshRequest | undefined {
  const { cluster, profile, mesh } = view;
  // What runs keeps the ranges that it has, in no mesh.
  if (!profile || !mesh || mesh.known || mesh.refused || runningMode(view)) return undefined;
  return meshRequest(cluster, profile, { mode, pools, ranges });
}

export const meshProblems = ({ mesh }: WorkerClusterView): Problem[] =>
  mesh?.refused ? [problem(mesh.refused.field, mesh.refused.message)] : [];

/** Labels of the Shoot of a cluster in a mesh: by them it is known where the receipt is lost. */
export const meshLabels = (known: KnownEntry | undefined): Record<string, string> =>
  known
    ? {
        [LABELS.mesh]: known.mesh,
        [LABELS.clusterID]: String(known.entry.id),
        [LABELS.meshClusterName]: known.entry.name,
      }
    : {};

/** What the labels of its Shoot say, which only the operator and administrators write; undefined: it is in no mesh. */
export function knownByShoot({ metadata, spec }: Shoot): KnownEntry | undefined {
  const { [LABELS.mesh]: mesh, [LABELS.clusterID]: id, [LABELS.meshClusterName]: name } = metadata.labels ?? {};
  if (!mesh || !name || !Number.isSafeInteger(Number(id))) return undefined;
  const given = KINDS.filter((kind) => spec.networking?.[kind] !== undefined);
  const ranges = Object.fromEntries(given.map((kind) => [kind, spec.networking?.[kind]]));
  return { mesh, entry: { uid: metadata.ownerReferences?.[0]?.uid ?? '', id: Number(id), name, ...ranges, given } };
}

/** Which ranges the cluster has, and who it is in its mesh. */
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

/** Ranges of a cluster that were not given to it alone; empty: it has no others. */
export function ownRanges({ spec }: WorkerCluster, known: KnownEntry | undefined): string[] {
  const of = (kind: (typeof KINDS)[number]) =>
    known?.entry.given.includes(kind) ? undefined : (known?.entry[kind] ?? spec.networking?.[kind]);
  return KINDS.flatMap((kind) => of(kind) ?? []);
}

/** Whether the cluster can be connected with those of meshes; undefined: nobody asked for that. */
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
 * That NetworkPolicies have no effect, of clusters whose network is made by Coppice: the API server keeps them, and nothing of the cluster says
 * that they are not obeyed. Clouds' managed ones are made to obey them.
 */
export function policiesCondition(mode: Mode | undefined): Said<'WorkerCluster'> | undefined {
  if (mode !== 'Hosted' && mode !== 'SelfManaged') return undefined;
  const message =
    'NetworkPolicies are kept and have no effect: each pod reaches all pods of the cluster. Install a network plugin that enforces them, or do not rely on them';
  return say(NETWORK_POLICIES_ENFORCED, false, 'NoEnforcement', message);
}

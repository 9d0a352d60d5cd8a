import type { Problem } from '../../../providers/contract.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { WorkerClusterStatus } from '../../api/workercluster.ts';
import { accrue } from '../../cost/accrual.ts';
import { admit, type Claimant } from '../../cost/admission.ts';
import { priceOf } from '../../cost/price.ts';
import { askedSize, nodesSize, runningSize, settledSize } from '../../cost/size.ts';
import type { WorkerClusterView } from './view.ts';

/** Why the namespace's quotas refuse the cluster's size; empty: they allow it. */
export function quotaProblems(
  { cluster, profile, project }: WorkerClusterView,
  pools: readonly DesiredPool[],
): Problem[] {
  if (!profile || !project) return [];
  const { name, namespace, creationTimestamp = '' } = cluster.metadata;
  const claimant: Claimant = {
    key: `${namespace}/${name}`,
    createdAt: creationTimestamp,
    profile,
    held: project.held,
    asked: askedSize(cluster, profile, pools),
  };
  const field = cluster.spec.dataPlaneNodes === undefined ? 'pools' : 'dataPlaneNodes';
  return admit(claimant, project.others, project.quotas).map(({ code, message, metrics }) => ({
    // No field of the spec would change that.
    field: metrics.every((metric) => metric === 'clusters') ? 'metadata.namespace' : field,
    code,
    message,
  }));
}

/** Size and cost in the status. `granted`: the requested size is allowed. */
export function accountStatus(
  view: WorkerClusterView,
  granted: boolean,
  now: Date,
  pools: readonly DesiredPool[],
): Pick<WorkerClusterStatus, 'admitted' | 'cost'> {
  const { cluster, profile } = view;
  const held = view.project?.held ?? cluster.status?.admitted;
  const running = seenSize(view, held);
  const admitted = granted && profile ? settledSize(askedSize(cluster, profile, pools), held, running) : held;
  const before = cluster.status?.cost;
  const cost = running && profile ? accrue(before, now, priceOf(running, profile)) : before;
  return { ...(admitted && { admitted }), ...(cost && { cost }) };
}

/** Observed machines; undefined: unknown. */
function seenSize({ cluster, shoot, managed }: WorkerClusterView, held: ClusterSize | undefined) {
  if (shoot) return runningSize(shoot, held);
  if (managed?.inside) return nodesSize(managed.inside.nodes, held);
  // The cloud charges its fee from the start, before nodes are visible.
  return managed?.outputs && !cluster.status?.cost && held ? { ...held, pools: [] } : undefined;
}

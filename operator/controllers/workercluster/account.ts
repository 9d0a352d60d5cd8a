import type { Problem } from '../../../providers/contract.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { WorkerClusterStatus } from '../../api/workercluster.ts';
import { accrue } from '../../cost/accrual.ts';
import { admit, type Claimant } from '../../cost/admission.ts';
import { priceOf } from '../../cost/price.ts';
import { askedSize, nodesSize, runningSize, settledSize } from '../../cost/size.ts';
import type { WorkerClusterView } from './view.ts';

/** Why the quotas of its namespace do not let the cluster be as large as it asks; empty: they do. */
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
    // No field of the spec makes one cluster more fit.
    field: metrics.every((metric) => metric === 'clusters') ? 'metadata.namespace' : field,
    code,
    message,
  }));
}

/** What status says of the cluster's size and cost. `granted`: it may be as large as it asks. */
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

/** The machines that were seen; undefined while nobody can see them. */
function seenSize({ cluster, shoot, managed }: WorkerClusterView, held: ClusterSize | undefined) {
  if (shoot) return runningSize(shoot, held);
  if (managed?.inside) return nodesSize(managed.inside.nodes, held);
  // The cloud takes its fee from the first moment on, not only from when nodes can be seen.
  return managed?.outputs && !cluster.status?.cost && held ? { ...held, pools: [] } : undefined;
}

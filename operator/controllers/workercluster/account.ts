import type { Problem } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { ClusterSize } from '../../api/cost.ts';
import type { Quota } from '../../api/quota.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster, WorkerClusterStatus } from '../../api/workercluster.ts';
import { accrue } from '../../cost/accrual.ts';
import { admit, type Claimant } from '../../cost/admission.ts';
import { priceOf } from '../../cost/price.ts';
import { askedSize, runningSize, settledSize } from '../../cost/size.ts';

/** What is known of a cluster's share of its project. */
export interface AccountView {
  readonly cluster: WorkerCluster;
  readonly profile: CloudProfile | undefined;
  readonly shoot: Shoot | undefined;
  /** All quotas of the namespace. */
  readonly quotas?: readonly Quota[];
  /** All other clusters of the namespace. */
  readonly others?: readonly Claimant[];
  /** What the cluster was granted before and has not given back. */
  readonly held?: ClusterSize | undefined;
  /** The machines that there are, where no Shoot counts them. */
  readonly running?: ClusterSize | undefined;
}

/** Why quotas do not let the cluster be as large as it asks; empty: they do. */
export function quotaProblems(view: AccountView): Problem[] {
  const { cluster, profile, held, quotas = [], others = [] } = view;
  if (!profile) return [];
  const { name, namespace, creationTimestamp = '' } = cluster.metadata;
  const asked = askedSize(cluster, profile);
  const claimant = { key: `${namespace}/${name}`, createdAt: creationTimestamp, profile, held, asked };
  const field = cluster.spec.dataPlaneNodes === undefined ? 'pools' : 'dataPlaneNodes';
  return admit(claimant, others, quotas).map(({ code, message }) => ({ field, code, message }));
}

/** What status says of the cluster's size and cost. `granted`: it may be as large as it asks. */
export function accountStatus(
  view: AccountView,
  granted: boolean,
  now: Date,
): Pick<WorkerClusterStatus, 'admitted' | 'cost'> {
  const { cluster, profile, shoot, held } = view;
  const running = shoot ? runningSize(shoot, held) : view.running;
  const admitted = granted && profile ? settledSize(askedSize(cluster, profile), held, running) : held;
  const before = cluster.status?.cost;
  const cost = running && profile ? accrue(before, now, priceOf(running, profile)) : before;
  return { ...(admitted && { admitted }), ...(cost && { cost }) };
}

import { clusterStateInSteps } from '../../../operator/burst/fit/cluster.ts';
import type { ClusterState } from '../../../operator/burst/fit/state.ts';
import { planGrowthInSteps } from '../../../operator/burst/nodes/grow.ts';
import { planNodesInSteps } from '../../../operator/burst/nodes/plan.ts';
import { atOnce } from '../../../operator/kube/steps.ts';

/** The decision about a cluster's nodes, without pauses. */
export const planNodes = (view: Parameters<typeof planNodesInSteps>[0]) => atOnce(planNodesInSteps(view));

/** The decision about waiting pods, without pauses. It changes `view.state`. */
export const planGrowth = (view: Parameters<typeof planGrowthInSteps>[0]) => atOnce(planGrowthInSteps(view));

/** State of a cluster, without a pause. */
export const clusterState = (objects: Parameters<typeof clusterStateInSteps>[0]): ClusterState =>
  atOnce(clusterStateInSteps(objects));

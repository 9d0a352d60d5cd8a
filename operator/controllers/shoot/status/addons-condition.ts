import { wantsMetricsServer } from '../../../api/addons.ts';
import { ADDONS_READY } from '../../../api/conditions.ts';
import type { Reason } from '../../../api/reasons.ts';
import { conditionIsTrue, type Pod } from '../../../kube/resources.ts';
import { METRICS_API, METRICS_SERVER_APP } from '../../../shoot/metrics-server.ts';
import { type Said, say } from '../../conditions.ts';
import { codesOfRefusal, refusalByAdmission } from '../../problematic-webhook.ts';
import type { RunningFacts } from './facts.ts';

/** Number of Ready, non-terminating pods with that label `k8s-app`. */
export const readyPodsOf = (app: string, pods: readonly Pod[]): number =>
  pods.filter(
    (pod) =>
      pod.metadata.namespace === 'kube-system' &&
      pod.metadata.labels?.['k8s-app'] === app &&
      conditionIsTrue(pod, 'Ready') &&
      !pod.metadata.deletionTimestamp,
  ).length;

/** Condition AddonsReady; undefined: no addons. Pure. @param desired desired nodes */
export function addonsCondition(
  facts: Pick<RunningFacts, 'shoot' | 'inside' | 'nothingRuns' | 'metricsServer'>,
  desired: number,
): Said<'Shoot'> | undefined {
  if (!wantsMetricsServer(facts.shoot.spec)) return undefined;
  const not = (reason: Reason<'Shoot', 'AddonsReady'>, message: string) =>
    say(ADDONS_READY, false, reason, message, codesOfRefusal(message));
  if (facts.nothingRuns) return not('Simulated', 'metrics-server is not run: nodes are simulated and run no pods');
  if (desired === 0) return not('NoNodes', 'metrics-server is run once there are nodes');
  if (!facts.inside) return say(ADDONS_READY, 'Unknown', 'NotObserved', 'unknown until the API server answers');
  const { foreign, refused, served } = facts.metricsServer ?? {};
  if (foreign !== undefined)
    return not(
      'OthersServe',
      `metrics-server is not run: ${foreign} serves ${METRICS_API} already; delete that APIService, or take addons.metricsServer out of the spec`,
    );
  if (refused !== undefined) {
    const { reason, message } = refusalByAdmission(refused, 'metrics-server');
    return not(reason, message);
  }
  if (readyPodsOf(METRICS_SERVER_APP, facts.inside.pods) === 0 || served === undefined)
    return not(
      'Starting',
      'metrics-server is starting. This takes half a minute, or minutes while its image is built on this machine',
    );
  return say(
    ADDONS_READY,
    true,
    'Serving',
    'metrics-server serves: kubectl top and HorizontalPodAutoscalers have figures',
  );
}

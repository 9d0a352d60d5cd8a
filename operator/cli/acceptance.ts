import { findCondition } from '../api/conditions.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { actionOf } from './actions.ts';
import { follow } from './follow.ts';
import { WORKER_CLUSTER_KIND } from './kinds.ts';

/** The operator refuses a spec within milliseconds. A busy or stopped operator must not keep the person waiting. */
const PATIENCE_MS = 1000;

/**
 * Reason why the operator refuses the current spec of a WorkerCluster. Undefined: the operator accepts the spec, or has not answered in time.
 * The API server stores a spec before the operator judges it.
 * @param patienceMs how long to wait for the answer
 */
export async function specRefusalOf(
  client: KubeClient,
  { name, namespace }: { name: string; namespace: string },
  signal: AbortSignal,
  patienceMs = PATIENCE_MS,
): Promise<string | undefined> {
  const done = new AbortController();
  let refusal: string | undefined;
  const over = AbortSignal.any([signal, done.signal, AbortSignal.timeout(patienceMs)]);
  await follow<WorkerCluster>(
    client,
    WORKER_CLUSTER_KIND.resource,
    { name, namespace },
    ({ object }) => {
      if (!object) return;
      refusal = refusalIn(object);
      if (hasJudged(object)) done.abort();
    },
    over,
    // A person who may write the cluster may lack the right to watch it.
  ).catch(() => {});
  signal.throwIfAborted();
  return refusal;
}

const hasJudged = ({ metadata, status }: WorkerCluster): boolean => status?.observedGeneration === metadata.generation;

/** Message and action of the condition, if the condition is about the current generation. */
function refusalIn(cluster: WorkerCluster): string | undefined {
  const said = findCondition(cluster.status?.conditions, 'SpecAccepted');
  if (!hasJudged(cluster) || said?.status !== 'False') return undefined;
  return [said.message ?? said.reason, actionOf(cluster, said)].filter(Boolean).join('. ');
}

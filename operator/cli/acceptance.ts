import { findCondition } from '../api/conditions.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { actionOf } from './actions.ts';
import { follow } from './follow.ts';
import { WORKER_CLUSTER } from './kinds.ts';

/** The operator says within a few ms what it refuses. Where it is busy or stopped, nobody is kept waiting. */
const PATIENCE_MS = 1000;

/**
 * Why the operator refuses the spec of a WorkerCluster as it is now; undefined where it accepts the spec, or has not said so in time.
 * A change that is stored is not yet one that is carried out.
 * @param patienceMs how long it is waited for
 */
export async function refusalOf(
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
    WORKER_CLUSTER.resource,
    { name, namespace },
    ({ object }) => {
      if (!object) return;
      refusal = refusalIn(object);
      if (hasJudged(object)) done.abort();
    },
    over,
    // Who may write it may not be one who may watch it.
  ).catch(() => {});
  signal.throwIfAborted();
  return refusal;
}

const hasJudged = ({ metadata, status }: WorkerCluster): boolean => status?.observedGeneration === metadata.generation;

/** The condition's message and what to do, of the spec as it is and no earlier one. */
function refusalIn(cluster: WorkerCluster): string | undefined {
  const said = findCondition(cluster.status?.conditions, 'SpecAccepted');
  if (!hasJudged(cluster) || said?.status !== 'False') return undefined;
  return [said.message ?? said.reason, actionOf(cluster, said)].filter(Boolean).join('. ');
}

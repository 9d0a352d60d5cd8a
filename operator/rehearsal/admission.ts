import { MAX_NODES } from '../api/worker-pool.ts';
import type { WorkerClusterSpec } from '../api/workercluster.ts';

/**
 * Why the API server would reject the spec, by the CEL rules that demand can violate; a unit test compares the messages
 * with the rules.
 */
export function demandProblem({ dataPlaneNodes, pools = [], adopt }: WorkerClusterSpec): string | undefined {
  if (pools.length === 0) {
    return dataPlaneNodes === undefined && adopt === undefined
      ? 'say how many nodes: dataPlaneNodes, or pools with a minimum each'
      : undefined;
  }
  const wrong = pools.find(
    ({ minimum, maximum }) => minimum !== undefined && maximum !== undefined && minimum > maximum,
  );
  if (wrong) return `pool ${wrong.name}: minimum is larger than maximum`;
  const least = pools.reduce((sum, pool) => sum + (pool.minimum ?? 0), 0);
  if (least > MAX_NODES) return `a cluster has at most ${MAX_NODES} nodes`;
  if (dataPlaneNodes === undefined) return undefined;
  if (least > dataPlaneNodes) return 'dataPlaneNodes is less than the minimums of the pools together';
  const most = pools.reduce((sum, pool) => sum + (pool.maximum ?? Number.POSITIVE_INFINITY), 0);
  return most < dataPlaneNodes ? 'dataPlaneNodes is more than the maximums of the pools together' : undefined;
}

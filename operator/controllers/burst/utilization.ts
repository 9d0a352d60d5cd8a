import { readBytes, readCount, readCpu } from '../../api/quantity.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import { conditionIsTrue, type Node, type Pod } from '../../kube/resources.ts';

/**
 * Utilization of a cluster's Ready nodes by these pods in percent, rounded down: the highest of cpu, memory and GPUs.
 * undefined: no Ready node. Pure.
 */
export function utilization(nodes: readonly Node[], pods: readonly Pod[]): number | undefined {
  const ready = nodes.filter((node) => conditionIsTrue(node, 'Ready'));
  const { total = {}, available = {} } = clusterResource(ready, pods);
  const shares = [
    [readCpu(total.cpu ?? '0'), readCpu(available.cpu ?? '0')],
    [readBytes(total.memory ?? '0'), readBytes(available.memory ?? '0')],
    [readCount(total.gpu ?? '0'), readCount(available.gpu ?? '0')],
  ].flatMap(([all = 0, free = 0]) => (all > 0 ? [Math.floor((100 * (all - free)) / all)] : []));
  return ready.length > 0 && shares.length > 0 ? Math.max(...shares) : undefined;
}

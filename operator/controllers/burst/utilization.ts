import { readBytes, readCount, readCpu } from '../../api/quantity.ts';
import { clusterResource } from '../../clusters/capacity.ts';
import { conditionIsTrue, type Node, type Pod } from '../../kube/resources.ts';

/**
 * How much of what the Ready nodes of a cluster have these pods request, in percent, rounded down: of cpu, memory or GPUs, whichever is most.
 * undefined: it has no such node. Pure.
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

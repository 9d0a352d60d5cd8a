import { LABELS } from '../../operator/api/group.ts';
import { conditionIsTrue, NODES, type Node } from '../../operator/kube/resources.ts';
import type { Pool, ProviderContext } from '../contract.ts';
import { followPool, type Marks, nodeLabels, ZONE_LABEL } from '../nodes.ts';
import type { KnownMachines } from './known.ts';
import type { CloudMachine } from './machine-cloud.ts';
import { hashOf } from './wanted.ts';

/** Applies labels and taints of pools and zones of the cloud to nodes; deletes nodes without a machine. */
export async function tellNodes(
  known: KnownMachines,
  ctx: ProviderContext,
  pools: readonly Pool[],
  machines: readonly CloudMachine[],
  nodes: readonly Node[],
): Promise<void> {
  const shoot = ctx.shoot!;
  const receipt = (await known.receipt(ctx))!;
  const marks: Record<string, Marks> = {};
  for (const pool of pools) {
    const own: Marks = { labels: nodeLabels(ctx, pool), taints: pool.taints };
    marks[pool.name] = own;
    for (const node of nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === pool.name)) {
      const machine = machines.find(({ nodeName }) => nodeName === node.metadata.name);
      if (machine) {
        const labels = { ...own.labels, ...(machine.zone !== undefined && { [ZONE_LABEL]: machine.zone }) };
        await followPool(shoot, [node], { ...own, labels }, receipt.marks?.[pool.name] ?? own);
      } else if (!conditionIsTrue(node, 'Ready')) {
        ctx.log.info({ node: node.metadata.name, pool: pool.name }, 'node of a machine that is gone is removed');
        // In clouds that reuse machine names, a new machine may have joined as this node meanwhile.
        const { uid, resourceVersion } = node.metadata;
        await shoot.delete(NODES, node.metadata.name, undefined, { preconditions: { uid, resourceVersion } });
      }
    }
  }
  if (hashOf(marks) !== hashOf(receipt.marks ?? {})) await known.save(ctx, { ...receipt, marks }, receipt);
}

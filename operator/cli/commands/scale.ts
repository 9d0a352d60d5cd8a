import { changeSpec } from '../change-spec.ts';
import { inNamespace, isShownAsleep } from '../clusterview.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';

/** `coppice scale NAME --nodes N`: writes the scale subresource, like autoscalers. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, signal } = context;
  const name = positionals[0]!;
  const nodes = options.number('nodes');
  if (nodes === undefined)
    throw new UsageError(
      'scale needs --nodes N',
      `for example: coppice scale ${name}${inNamespace(options.text('namespace'))} --nodes 3`,
    );
  if (nodes < 0) throw new UsageError(`a cluster cannot have ${nodes} nodes`, 'give a number from 0 up');

  const old = await changeSpec(await connect(context), name, () => ({ replicas: nodes }), signal, 'scale');
  const { dataPlaneNodes: before, pools = [] } = old.spec;
  const change = before === undefined ? `${nodes}` : before === nodes ? `${nodes}, as before` : `${before} to ${nodes}`;
  const isFloor = pools.some(({ autoscale }) => autoscale === 'Coppice');
  const floor = isFloor ? ' at least; pools with autoscale: Coppice may have more' : '';
  const asleep = isShownAsleep(old) ? ' It sleeps, and has them when it wakes.' : '';
  terminal.print(`WorkerCluster ${name}: nodes ${change}${floor}.${asleep}`);
}

import { pathOf } from '../../kube/resources.ts';
import { refusalOf } from '../acceptance.ts';
import { inNamespace, isAsleep } from '../clusterview.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError, UsageError } from '../errors.ts';
import { WORKER_CLUSTER } from '../kinds.ts';
import { CLI_FIELD_MANAGER } from './apply.ts';
import { missing } from './get.ts';

interface Scale {
  spec?: { replicas?: number };
}

/** `coppice scale NAME --nodes N`, through the scale subresource as autoscalers do. */
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

  const { client, namespace } = await connect(context);
  const { resource } = WORKER_CLUSTER;
  const old = await client.getOrUndefined(resource, name, namespace, { signal });
  if (old === undefined) throw await missing(client, WORKER_CLUSTER, name, namespace, signal);
  if (old.spec?.mode === 'Attached')
    throw new CliError(`WorkerCluster "${name}" is attached: Coppice does not manage its nodes`, {
      advice: 'scale it with the tool that manages it',
    });
  await client.request<Scale>('PATCH', pathOf(resource, namespace, name, 'scale'), {
    query: { fieldManager: CLI_FIELD_MANAGER },
    body: { spec: { replicas: nodes } },
    contentType: 'application/merge-patch+json',
    signal,
  });
  const refusal = await refusalOf(client, { name, namespace }, signal);
  if (refusal !== undefined)
    throw new CliError(`WorkerCluster ${name} was asked for ${nodes} nodes, which is refused: ${refusal}`, {
      advice: `"coppice describe ${name}${inNamespace(namespace)}" shows what it has`,
    });
  const before = old.spec?.dataPlaneNodes as number | undefined;
  const change = before === undefined ? `${nodes}` : before === nodes ? `${nodes}, as before` : `${before} to ${nodes}`;
  const isFloor = (old.spec?.pools as { autoscale?: string }[] | undefined)?.some(
    ({ autoscale }) => autoscale === 'Coppice',
  );
  const floor = isFloor ? ' at least; pools with autoscale: Coppice may have more' : '';
  const asleep = isAsleep(old) ? ' It sleeps, and has them when it wakes.' : '';
  terminal.print(`WorkerCluster ${name}: nodes ${change}${floor}.${asleep}`);
}

import type { WorkerCluster } from '../../api/workercluster.ts';
import { changeSpec } from '../change-spec.ts';
import { inNamespace } from '../clusterview.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { CliError } from '../errors.ts';
import { askWhetherServes } from '../serving.ts';
import { waitForCluster } from '../waiting.ts';

/** `coppice hibernate NAME` and `coppice wake NAME`: set `spec.hibernation.enabled`. A schedule may change the state again. */
export async function run(context: Context, asleep: boolean): Promise<undefined> {
  const { options, positionals, terminal, signal } = context;
  const name = positionals[0]!;
  const connection = await connect(context);
  await changeSpec(connection, name, (before) => ({ hibernation: { enabled: enabledFor(before, asleep) } }), signal);
  const goal = asleep ? 'Hibernated' : 'Ready';
  if (options.flag('wait')) {
    await waitForCluster(connection, context, {
      name,
      goal,
      timeoutMs: options.number('timeout'),
      serves: asleep ? undefined : await askWhetherServes(connection, context),
    });
    terminal.print(`WorkerCluster ${name} ${asleep ? 'sleeps' : 'is Ready'}.`);
    return;
  }
  const wait = `coppice wait ${name}${inNamespace(connection.namespace)} --for ${goal}`;
  terminal.print(`WorkerCluster ${name} ${asleep ? 'goes to sleep' : 'wakes'}; "${wait}" waits for it.`);
}

/** The operator acts on a change of the field, not on its value. If the field is false and a schedule hibernated the cluster, removing the field wakes it. */
function enabledFor({ spec }: WorkerCluster, asleep: boolean): boolean | null {
  const { enabled } = spec.hibernation ?? {};
  if (!asleep) return enabled === false ? null : false;
  if (enabled !== true || !spec.hibernation?.schedules?.length) return true;
  throw new CliError('spec.hibernation.enabled is true already, and a schedule decides since', {
    advice: 'remove the field first (coppice wake), then run this again',
  });
}

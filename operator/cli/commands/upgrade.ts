import { changeSpec } from '../change-spec.ts';
import { inNamespace } from '../clusterview.ts';
import { connect } from '../connect.ts';
import type { Context } from '../context.ts';
import { UsageError } from '../errors.ts';

/** `coppice upgrade NAME --to VERSION`. */
export async function run(context: Context): Promise<undefined> {
  const { options, positionals, terminal, signal } = context;
  const name = positionals[0]!;
  // kubectl prints versions with a v.
  const version = options.text('to')?.replace(/^v(?=[0-9])/, '');
  if (version === undefined)
    throw new UsageError('upgrade needs --to VERSION', `for example: coppice upgrade ${name} --to 1.36`);
  const connection = await connect(context);
  const before = await changeSpec(connection, name, () => ({ kubernetes: { version } }), signal);
  const running = before.status?.kubernetesVersion;
  const wait = `coppice wait ${name}${inNamespace(connection.namespace)}`;
  const from = running === undefined ? '' : ` from ${running}`;
  terminal.print(`WorkerCluster ${name}: Kubernetes${from} to ${version}; "${wait}" waits for it.`);
}

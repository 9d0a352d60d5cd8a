import type { WorkerCluster } from '../api/workercluster.ts';
import type { KubeClient } from '../kube/client.ts';
import { refusalOf } from './acceptance.ts';
import { inNamespace } from './clusterview.ts';
import { CLI_FIELD_MANAGER } from './commands/apply.ts';
import { missing } from './commands/get.ts';
import type { Connection } from './connect.ts';
import { CliError } from './errors.ts';
import { WORKER_CLUSTER } from './kinds.ts';

/** Where a change is written to. */
interface Target {
  readonly client: KubeClient;
  readonly name: string;
  readonly namespace: string;
  readonly signal: AbortSignal;
}

/**
 * Changes fields of a WorkerCluster's spec, and hears whether the operator refuses them.
 * @param change from the cluster as it is, to a JSON merge patch of its spec
 * @returns the cluster as it was before
 * Throws CliError: not found (3), attached or refused (1).
 */
export const changeSpec = (
  connection: Connection,
  name: string,
  change: (before: WorkerCluster) => object,
  signal: AbortSignal,
): Promise<WorkerCluster> =>
  changeCluster(connection, name, signal, (target, before) =>
    target.client.mergePatch<WorkerCluster>(
      WORKER_CLUSTER.resource,
      name,
      target.namespace,
      { spec: change(before) },
      { fieldManager: CLI_FIELD_MANAGER, signal },
    ),
  );

/** The same, by whatever `write` sends. */
export async function changeCluster(
  { client, namespace }: Connection,
  name: string,
  signal: AbortSignal,
  write: (target: Target, before: WorkerCluster) => Promise<unknown>,
): Promise<WorkerCluster> {
  const { resource } = WORKER_CLUSTER;
  const before = await client.getOrUndefined<WorkerCluster>(resource, name, namespace, { signal });
  if (before === undefined) throw await missing(client, WORKER_CLUSTER, name, namespace, signal);
  if (before.spec.mode === 'Attached')
    throw new CliError(`WorkerCluster "${name}" is attached: others made it, and Coppice changes nothing of it`, {
      advice: 'use the tool that manages it',
    });
  await write({ client, name, namespace, signal }, before);
  const refusal = await refusalOf(client, { name, namespace }, signal);
  if (refusal !== undefined)
    throw new CliError(`the change of WorkerCluster ${name} is refused: ${refusal}`, {
      advice: `"coppice describe ${name}${inNamespace(namespace)}" shows what it has`,
    });
  return before;
}

import type { WorkerCluster } from '../api/workercluster.ts';
import { specRefusalOf } from './acceptance.ts';
import { inNamespace } from './clusterview.ts';
import { CLI_FIELD_MANAGER } from './commands/apply.ts';
import { missingError } from './commands/get.ts';
import type { CliConnection } from './connect.ts';
import { CliError } from './errors.ts';
import { WORKER_CLUSTER_KIND } from './kinds.ts';

/**
 * Changes fields of a WorkerCluster's spec and waits for the operator to accept them.
 * @param change computes the JSON merge patch of the spec from the current cluster
 * @param subresource `scale`: patches the scale subresource. Absent: patches the cluster
 * @returns the cluster before the change
 * Throws CliError: not found (3), attached or refused (1).
 */
export async function changeSpec(
  { client, namespace }: CliConnection,
  name: string,
  change: (before: WorkerCluster) => object,
  signal: AbortSignal,
  subresource?: 'scale',
): Promise<WorkerCluster> {
  const { resource } = WORKER_CLUSTER_KIND;
  const before = await client.getOrUndefined<WorkerCluster>(resource, name, namespace, { signal });
  if (before === undefined) throw await missingError(client, WORKER_CLUSTER_KIND, name, namespace, signal);
  if (before.spec.mode === 'Attached')
    throw new CliError(`WorkerCluster "${name}" is attached: others made it, and Coppice changes nothing of it`, {
      advice: 'use the tool that manages it',
    });
  const options = { fieldManager: CLI_FIELD_MANAGER, signal, ...(subresource && { subresource }) };
  await client.mergePatch(resource, name, namespace, { spec: change(before) }, options);
  const refusal = await specRefusalOf(client, { name, namespace }, signal);
  if (refusal !== undefined)
    throw new CliError(`the change of WorkerCluster ${name} is refused: ${refusal}`, {
      advice: `"coppice describe ${name}${inNamespace(namespace)}" shows what it has`,
    });
  return before;
}

import { existsSync } from 'node:fs';
import type { KubeObject } from '../api/meta.ts';
import type { WorkerClusterSpec } from '../api/workercluster.ts';
import { wayToSeed, whyNoNodes } from '../garden/capabilities.ts';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';
import { gardenDirectory } from './garden.ts';
import { howToCallCoppice } from './invocation.ts';
import { WORKER_CLUSTER } from './kinds.ts';

/**
 * Whether the garden that would be brought up has no seed. Throws CliError when one of `objects` cannot be without:
 * people hear it before tools are compiled for minutes, and not never.
 */
export async function refuseWithoutSeed(
  { env, options }: Pick<Context, 'env' | 'options'>,
  objects: readonly KubeObject[],
): Promise<boolean> {
  if (options.text('seed-kubeconfig') !== undefined || existsSync(gardenDirectory(env).seedKubeconfig)) return false;
  const why = await whyNoNodes();
  if (why === undefined) return false;
  const first = objects.find(isHosted);
  if (first === undefined) return true;
  throw new CliError(`nothing here can host WorkerCluster ${first.metadata.name}: ${why}`, {
    advice: wayToSeed(`${howToCallCoppice(env)} start`),
  });
}

/** Whether a WorkerCluster needs a seed for certain. That of a cloud's profile may be managed, as its profile says. */
function isHosted(object: KubeObject): boolean {
  if (object.kind !== WORKER_CLUSTER.resource.kind) return false;
  const { mode, cloudProvider = '' } = (object.spec ?? {}) as Partial<WorkerClusterSpec>;
  return mode === 'Hosted' || /^(local|simulated)/.test(cloudProvider);
}

/** Whether a cluster comes up in a garden without a seed: what becomes of others is not waited for. */
export const comesWithoutSeed = ({ spec }: { spec: Pick<WorkerClusterSpec, 'mode'> }): boolean =>
  spec.mode === 'Attached';

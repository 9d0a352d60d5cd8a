import { existsSync } from 'node:fs';
import type { KubeObject } from '../api/meta.ts';
import type { WorkerClusterSpec } from '../api/workercluster.ts';
import { seedPossible, wayToSeed } from '../garden/host/capabilities.ts';
import type { Context } from './context.ts';
import { CliError } from './errors.ts';
import { gardenDirectory } from './garden.ts';
import { howToCallCoppice } from './invocation.ts';
import { WORKER_CLUSTER } from './kinds.ts';

/** What the new garden can host. `simulated`: control planes, and simulated nodes. */
interface Hosting {
  kind: 'all' | 'simulated' | 'nothing';
  /** Why not `all`. */
  why: string;
}

/** What a garden on this machine can host, known before tools are compiled for minutes. */
export async function hostingHere({ env, options }: Pick<Context, 'env' | 'options'>): Promise<Hosting> {
  if (options.text('seed-kubeconfig') !== undefined || existsSync(gardenDirectory(env).seedKubeconfig))
    return { kind: 'all', why: '' };
  const { why, rootless } = await seedPossible();
  return { kind: why ? 'nothing' : rootless ? 'simulated' : 'all', why: why ?? rootless ?? '' };
}

/** Throws CliError if one of `objects` can never become Ready here, so that nobody waits for it. */
export function refuseImpossible({ kind, why }: Hosting, objects: readonly KubeObject[], env: Context['env']): void {
  const isImpossible = { all: () => false, simulated: isOfLocalMachines, nothing: isHosted }[kind];
  const first = objects.find((object) => object.kind === WORKER_CLUSTER.resource.kind && isImpossible(object));
  if (first === undefined) return;
  const what = kind === 'nothing' ? 'host' : 'create the nodes of';
  throw new CliError(`this garden cannot ${what} WorkerCluster ${first.metadata.name}: ${why}`, {
    advice: wayToSeed(`${howToCallCoppice(env)} start`),
  });
}

const specOf = (object: KubeObject) => (object.spec ?? {}) as Partial<WorkerClusterSpec>;
const isOfLocalMachines = (object: KubeObject): boolean => /^local\b/.test(specOf(object).cloudProvider ?? '');
/** True only if certain: the profile of a cloud decides whether its clusters are managed. */
const isHosted = (object: KubeObject): boolean =>
  specOf(object).mode === 'Hosted' || /^(local|simulated)/.test(specOf(object).cloudProvider ?? '');

/** Whether a cluster becomes Ready in a garden without a seed. Others are not waited for. */
export const comesWithoutSeed = ({ spec }: { spec: Pick<WorkerClusterSpec, 'mode'> }): boolean =>
  spec.mode === 'Attached';

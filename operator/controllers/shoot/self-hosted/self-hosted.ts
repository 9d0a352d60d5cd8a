import type { Pool, Provider } from '../../../../providers/contract.ts';
import { controlPlaneWorker } from '../../../api/shoot.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import { controlPlaneLabels } from '../../../shoot/values.ts';
import type { Operation } from '../operation.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';

const SIZES = [1, 3, 5];

/** ConfigMap in the shoot's namespace of the seed: exists for ever once the API server has served. */
const INITIALISED = 'control-plane-initialised';
/** Key with the name of the control plane's pool. */
const POOL_NOTED = 'pool';

export const noteIn = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): KubeObject | undefined =>
  seed.configMaps.get(`${values.namespace}/${INITIALISED}`);

/**
 * Records that the cluster was initialised. Resolves with whether that was new.
 * @param more further data: which machines hold the cluster's state
 */
export async function writeNote(
  { seed, values }: Operation,
  pool: Pool,
  more: Record<string, string>,
  signal: AbortSignal,
): Promise<boolean> {
  const note: KubeObject = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: INITIALISED, namespace: values.namespace, labels: controlPlaneLabels(values) },
    data: { [POOL_NOTED]: pool.name, ...more },
  };
  const { object, changed } = await seed.applier.apply(note, signal);
  if (changed) seed.configMaps.absorb(object);
  return changed;
}

/** Whether a provider makes control plane machines, in any place. */
export const makesControlPlanes = (provider: Provider): boolean =>
  provider.controlPlaneMachines !== undefined || provider.controlPlaneGroup !== undefined;

/** Why the control plane cannot run on the requested machines; undefined: it can. */
export function selfHostedProblem(
  op: Operation,
  infrastructure: Pick<ControlPlaneInfrastructure, 'problem' | 'versionProblem'>,
): string | undefined {
  const { provider, shoot, values } = op;
  const worker = controlPlaneWorker(shoot.spec);
  if (!worker) return undefined;
  if (!makesControlPlanes(provider)) return `provider ${provider.name} cannot make machines for a control plane`;
  const marked = (shoot.spec.provider.workers ?? []).filter(({ controlPlane }) => controlPlane !== undefined);
  if (marked.length > 1)
    return `a control plane is on one pool of machines, not on ${marked.map(({ name }) => name).join(' and ')}`;
  if (!SIZES.includes(worker.minimum) || worker.maximum !== worker.minimum)
    return `pool ${worker.name} runs the control plane: it has 1, 3 or 5 machines (minimum and maximum are equal)`;
  const noted = (noteIn(op)?.data as Record<string, string> | undefined)?.[POOL_NOTED];
  if (noted !== undefined && noted !== worker.name)
    return `the control plane is on the machines of pool ${noted}, which cannot change: give that name back to the pool with controlPlane`;
  if ((worker.providerConfig as { spot?: boolean } | undefined)?.spot === true)
    return `pool ${worker.name} runs the control plane: it cannot be on spot machines, which the cloud takes away`;
  const unfit = infrastructure.problem(values);
  if (unfit) return unfit;
  if (shoot.spec.dns?.domain) return NO_NAMES;
  const running = shoot.status?.kubernetesVersion;
  return running === undefined || running === values.version ? undefined : infrastructure.versionProblem(op, running);
}

/** Why an API server on machines has no DNS name. */
export const NO_NAMES = 'an API server on machines cannot have a name in DNS yet: remove spec.dns, or use mode Hosted';

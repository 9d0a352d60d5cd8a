import type { ControlPlaneMachines, Machine, Pool } from '../../../../providers/contract.ts';
import { controlPlaneWorker } from '../../../api/shoot.ts';
import type { KubeObject } from '../../../kube/resources.ts';
import type { Operation } from '../operation.ts';

const SIZES = [1, 3, 5];

/** ConfigMap in the shoot's namespace in the seed: is there once the API server has served, for ever. */
export const INITIALISED = 'control-plane-initialised';
/** Its key with the name of the pool that the control plane is on. */
export const POOL_NOTED = 'pool';

export const noteIn = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): KubeObject | undefined =>
  seed.configMaps.get(`${values.namespace}/${INITIALISED}`);

/** Why the control plane cannot be on the machines that the shoot asks for; undefined: it can, or is not meant to be on any. */
export function selfHostedProblem(op: Operation): string | undefined {
  const { provider, shoot, values } = op;
  const worker = controlPlaneWorker(shoot.spec);
  if (!worker) return undefined;
  if (!provider.controlPlaneMachines && !provider.controlPlaneGroup)
    return `provider ${provider.name} cannot make machines for a control plane`;
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
  if (!provider.controlPlaneGroup && (values.exposure ?? 'ClusterIP') !== 'ClusterIP')
    return 'a control plane on machines needs a seed whose Services are reached as they are (exposure ClusterIP): its certificates do not follow a new address yet';
  if (shoot.spec.dns?.domain) return NO_NAMES;
  const running = shoot.status?.kubernetesVersion;
  if (running !== undefined && running !== values.version) return versionIsFixed(running, values.version);
  return undefined;
}

/** Why an API server on machines has no name. */
export const NO_NAMES =
  'an API server on machines cannot have a name in DNS yet: leave spec.dns away, or have the control plane hosted';

/** Why the version of a control plane on machines stays as it is. */
export const versionIsFixed = (running: string, wanted: string): string =>
  `a control plane on machines cannot be upgraded yet: it stays at ${running}, not ${wanted}`;

/** The machines of the control plane and who makes them. Throws for a shoot that has none. */
export function controlPlaneOf({ controlPlanePool, provider }: Operation): {
  pool: Pool;
  machines: ControlPlaneMachines;
} {
  if (!controlPlanePool || !provider.controlPlaneMachines)
    throw new Error('the control plane of this shoot is not on machines');
  return { pool: controlPlanePool, machines: provider.controlPlaneMachines };
}

/** All machines of the shoot, those of its control plane among them. */
export async function allMachines(op: Operation): Promise<Machine[]> {
  const { controlPlanePool, provider } = op;
  const context = op.context();
  const own = controlPlanePool && provider.controlPlaneMachines?.observe(context, controlPlanePool.name);
  const inCloud = controlPlanePool && provider.controlPlaneGroup?.list(context, controlPlanePool.name);
  const [workers, seen, listed] = await Promise.all([provider.listMachines(context), own, inCloud]);
  return [...workers, ...(seen?.machines ?? []), ...(listed ?? [])];
}

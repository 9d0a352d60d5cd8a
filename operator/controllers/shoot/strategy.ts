import type { ControlPlaneMachines, Pool, Provider } from '../../../providers/contract.ts';
import { COMPONENTS } from '../../api/names.ts';
import { keyOf } from '../../kube/resources.ts';
import type { ControlPlane } from '../../shoot/values.ts';
import { reachValues } from './control-plane-values.ts';
import { deletionTasks } from './deletion/deletion-tasks.ts';
import { wantedNames } from './dns/dns-names.ts';
import { hibernationStatus } from './hosted/hibernation-status.ts';
import { hibernationTasks } from './hosted/hibernation-tasks.ts';
import { hostedStatus } from './hosted/hosted-status.ts';
import { reconcileTasks } from './hosted/hosted-tasks.ts';
import type { Operation, ShootStrategy } from './operation.ts';
import { rotationProblem } from './self-hosted/encryption.ts';
import { inCloud } from './self-hosted/in-cloud.ts';
import { inSeed } from './self-hosted/in-seed.ts';
import type { ControlPlaneInfrastructure } from './self-hosted/infrastructure.ts';
import { selfHostedProblem } from './self-hosted/self-hosted.ts';
import { selfHostedStatus } from './self-hosted/self-hosted-status.ts';
import { selfHostedTasks } from './self-hosted/self-hosted-tasks.ts';
import { statusWithoutControlPlane } from './without-control-plane/status.ts';
import { deletionTasksWithoutControlPlane, tasksWithoutControlPlane } from './without-control-plane/tasks.ts';

/** Longest interval of certificate checks. */
const LONGEST_SLEEP_MS = 12 * 3600_000;

/** A control plane in pods of the seed. */
const hosted: ShootStrategy = {
  servesInSeed: true,
  maySleep: true,
  keepsVersion: false,
  longestSleepMs: LONGEST_SLEEP_MS,
  names: wantedNames,
  reaching: reachValues,
  problem: () => undefined,
  rotationProblem: () => undefined,
  reconcileTasks: (op) => (op.sleeps ? hibernationTasks(op) : reconcileTasks(op)),
  deletionTasks: (op) => deletionTasks(op),
  status: (op, shoot, now) => (op.sleeps ? hibernationStatus(op, shoot, now) : hostedStatus(op, shoot, now)),
  machines: (op) => op.provider.listMachines(op.context()),
};

/** A cluster that exists as objects only, without a control plane. */
const withoutControlPlane: ShootStrategy = {
  ...hosted,
  maySleep: false,
  reconcileTasks: tasksWithoutControlPlane,
  deletionTasks: deletionTasksWithoutControlPlane,
  status: statusWithoutControlPlane,
};

/** A control plane on the cluster's own machines, in the seed or in a cloud. */
const selfHosted = (infrastructure: ControlPlaneInfrastructure): ShootStrategy => ({
  servesInSeed: false,
  maySleep: false,
  keepsVersion: true,
  longestSleepMs: infrastructure.lookAgainMs ?? LONGEST_SLEEP_MS,
  // kubeadm makes the certificates of API servers on machines, without further names.
  names: () => [],
  reaching: (values) => values,
  problem: (op) => selfHostedProblem(op, infrastructure),
  rotationProblem,
  reconcileTasks: (op) => selfHostedTasks(op, infrastructure),
  deletionTasks: (op) => deletionTasks(op, () => infrastructure.delete(op)),
  status: (op, shoot, now) => selfHostedStatus(op, infrastructure, shoot, now),
  machines: async (op) => (await Promise.all([op.provider.listMachines(op.context()), infrastructure.list(op)])).flat(),
});

/** Placeholder for a provider without control plane machines: its `problem` says so, and deletion works. */
const NO_MACHINES: ControlPlaneMachines = {
  observe: async () => ({ asked: 0, machines: [], volumes: [] }),
  reconcile: () => Promise.reject(new Error('the provider makes no machines for a control plane')),
  isOutdated: () => false,
  close: async () => {},
  replace: async () => {},
  removeVolume: async () => {},
  delete: async () => {},
};

const infrastructureOf = (
  pool: Pool,
  { controlPlaneGroup, controlPlaneMachines = NO_MACHINES }: Provider,
): ControlPlaneInfrastructure =>
  controlPlaneGroup ? inCloud(pool, controlPlaneGroup) : inSeed(pool, controlPlaneMachines);

/** Inputs of strategyOf. */
type Deciding = Pick<Operation, 'controlPlanePool' | 'provider' | 'withoutControlPlane' | 'seed' | 'shoot'> & {
  readonly values: Pick<ControlPlane, 'namespace'>;
};

/**
 * The strategy of a shoot. A changed profile must not hide an existing control plane, whose pods would run for ever.
 */
export const strategyOf = (shoot: Deciding): ShootStrategy => {
  if (shoot.controlPlanePool) return selfHosted(infrastructureOf(shoot.controlPlanePool, shoot.provider));
  return shoot.withoutControlPlane && !hasControlPlane(shoot) ? withoutControlPlane : hosted;
};

function hasControlPlane({ seed, shoot, values }: Deciding): boolean {
  const inSeed = (component: string) => `${values.namespace}/${component}`;
  return (
    seed.statefulSets.get(inSeed(COMPONENTS.etcd)) !== undefined ||
    seed.deployments.get(inSeed(COMPONENTS.apiServer)) !== undefined ||
    seed.podsOf(keyOf(shoot)).length > 0
  );
}

import { COMPONENTS } from '../../api/names.ts';
import type { Shoot, ShootStatus } from '../../api/shoot.ts';
import type { Task } from '../../flow/graph.ts';
import { keyOf } from '../../kube/resources.ts';
import { deletionTasks } from './deletion.ts';
import { reconcileTasks } from './hosted/hosted-tasks.ts';
import type { Operation } from './operation.ts';
import { recordedStatus } from './recorded/recorded-status.ts';
import { recordedDeletionTasks, recordedTasks } from './recorded/recorded-tasks.ts';
import { selfHostedGroupTasks } from './self-hosted/self-hosted-group-tasks.ts';
import { selfHostedStatus } from './self-hosted/self-hosted-status.ts';
import { selfHostedTasks } from './self-hosted/self-hosted-tasks.ts';
import { hostedStatus } from './status.ts';

/** What stands behind a shoot, and all that follows from it. */
export interface ShootStrategy {
  reconcileTasks(op: Operation): Task[];
  deletionTasks(op: Operation): Task[];
  /** `shoot`: as it is now, perhaps newer than the operation. */
  status(op: Operation, shoot: Shoot, now: Date): Promise<ShootStatus>;
}

/** A control plane of pods in the seed. */
const hosted: ShootStrategy = { reconcileTasks, deletionTasks, status: hostedStatus };
/** Nothing: the cluster is on record only. */
const recorded: ShootStrategy = {
  reconcileTasks: recordedTasks,
  deletionTasks: recordedDeletionTasks,
  status: recordedStatus,
};

/** A control plane on machines of the cluster itself, which are where its other machines are: in the seed, or in a cloud. */
const selfHosted: ShootStrategy = {
  reconcileTasks: (op) => (op.provider.controlPlaneGroup ? selfHostedGroupTasks(op) : selfHostedTasks(op)),
  deletionTasks,
  status: selfHostedStatus,
};

/** A profile that says something else by now takes no control plane out of our sight: its pods would run for ever. */
export const strategyOf = (op: Operation): ShootStrategy => {
  if (op.controlPlanePool) return selfHosted;
  return op.recorded && !hasControlPlane(op) ? recorded : hosted;
};

function hasControlPlane({ seed, shoot, values }: Operation): boolean {
  const inSeed = (component: string) => `${values.namespace}/${component}`;
  return (
    seed.statefulSets.get(inSeed(COMPONENTS.etcd)) !== undefined ||
    seed.deployments.get(inSeed(COMPONENTS.apiServer)) !== undefined ||
    seed.podsOf(keyOf(shoot)).length > 0
  );
}

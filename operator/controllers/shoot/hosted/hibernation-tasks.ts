import { errorText } from '../../../api/errors.ts';
import { ANNOTATIONS, FIELD_MANAGER } from '../../../api/group.ts';
import { matchesLabels } from '../../../api/label-selector.ts';
import { COMPONENTS } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { hasEnded } from '../../../kube/pods.ts';
import {
  DEPLOYMENTS,
  type Deployment,
  keyOf,
  type Pod,
  STATEFULSETS,
  type StatefulSet,
} from '../../../kube/resources.ts';
import { webhookIn } from '../../problematic-webhook.ts';
import { closeConnection } from '../close-connection.ts';
import { connectToShoot } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { keepKeys } from '../stored-keys.ts';
import { machineTasks } from '../tasks/machine-tasks.ts';
import { namespaceTask } from '../tasks/namespace-task.ts';
import { givenUpInSilence } from '../tasks/while-answered.ts';
import { addressTasks } from './addresses.ts';

const MINUTE = 60_000;

/**
 * Task graph of hibernation: removes machines, then clients of the API server, the API server, and etcd. Volumes, keys,
 * addresses and the kubeconfig stay. Tasks do nothing when done already. Waking uses the usual graph.
 */
export function hibernationTasks(op: Operation): Task[] {
  const { seed, deps } = op;
  // The API server stops last before etcd; if it is down, all machines are drained.
  const isUp = isServing(op);
  return [
    namespaceTask(op),
    ...addressTasks(op, 'Keeping addresses'),
    {
      id: 'keys',
      title: 'Keeping keys',
      after: ['services'],
      expectedMs: 5,
      // Without its keys a cluster could never wake.
      run: (signal) => keepKeys(op, signal),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for the API server',
      after: ['keys'],
      skip: !isUp,
      expectedMs: 50,
      timeoutMs: 5 * MINUTE,
      run: (signal) => connectToShoot(op, signal),
    },
    ...machineTasks(op, [], ['api-server-serves']).map((task) => ({
      ...(task.id === 'withdraw-machines' ? task : notHeldByWebhooks(op, givenUpInSilence(op, task))),
      title: 'Taking machines away',
      // Machines that have not started can be withdrawn without the API server.
      skip: task.skip === true || (!isUp && task.id !== 'withdraw-machines'),
    })),
    {
      id: 'machines-left',
      title: 'Checking for machines that remain',
      after: ['roll'],
      skip: isUp,
      expectedMs: 20,
      run: () => removeLeft(op),
    },
    {
      id: 'clients-end',
      title: 'Ending controller manager and scheduler',
      after: ['machines-left'],
      expectedMs: 5000,
      timeoutMs: 3 * MINUTE,
      run: (signal) => endDeployments(op, (name) => name !== COMPONENTS.apiServer, signal),
    },
    {
      id: 'api-server-ends',
      title: 'Ending the API server',
      after: ['clients-end'],
      expectedMs: 10_000,
      timeoutMs: 3 * MINUTE,
      run: async (signal) => {
        // Close the connection first, or its break would be reported as an outage.
        await closeConnection(op.state);
        await endDeployments(op, (name) => name === COMPONENTS.apiServer, signal);
      },
    },
    {
      id: 'last-snapshot',
      title: 'Taking a last snapshot',
      after: ['api-server-ends'],
      // Nobody can write any more, so the snapshot is complete. If etcd has ended, the snapshot was taken before.
      skip: sizeOf(etcdOf(op)) === 0,
      expectedMs: 50,
      timeoutMs: 30 * MINUTE,
      run: (signal) => deps.backups.takeLast(op.shoot, signal),
    },
    {
      id: 'etcd-ends',
      title: 'Ending etcd',
      after: ['last-snapshot'],
      expectedMs: 3000,
      timeoutMs: 3 * MINUTE,
      run: async (signal) => {
        const live = etcdOf(op);
        if (!live) return;
        const size = sizeOf(live);
        if (size > 0) {
          // One write for both: with replicas 0 and no recorded size, the wake-up would start an etcd without members.
          const annotations = { [ANNOTATIONS.sizeAwake]: String(size) };
          const patch = { metadata: { annotations }, spec: { replicas: 0 } };
          const { name, namespace } = live.metadata;
          const options = { fieldManager: FIELD_MANAGER, signal };
          seed.statefulSets.absorb(
            await seed.client.mergePatch<StatefulSet>(STATEFULSETS, name, namespace, patch, options),
          );
        }
        await podsEnd(op, (pod) => pod.metadata.labels?.app === COMPONENTS.etcd, signal);
        op.state.etcdSettled = undefined;
      },
    },
  ];
}

/** Longest time for removing machines while the cluster's webhooks answer late or never. */
const MACHINES_GO_MS = 20 * MINUTE;

/**
 * The task, which succeeds when its only failure is a refusal by a webhook of the cluster, and has its own deadline.
 * machines-left removes remaining machines, and waking removes their Nodes.
 */
const notHeldByWebhooks = (op: Operation, task: Task): Task => ({
  ...task,
  timeoutMs: task.timeoutMs ?? MACHINES_GO_MS,
  run: async (signal, acts) => {
    try {
      await task.run(signal, acts);
    } catch (error) {
      if (webhookIn(errorText(error)) === undefined) throw error;
      op.deps.log.warn(
        { shoot: keyOf(op.shoot), task: task.id, err: error },
        'a webhook does not keep the cluster awake',
      );
    }
  },
});

/** Number of etcd's members when awake; undefined: never made. */
export function etcdSizeAwake(live: StatefulSet | undefined): number | undefined {
  if (!live) return undefined;
  return sizeOf(live) || Number(live.metadata.annotations?.[ANNOTATIONS.sizeAwake]) || undefined;
}

/** Names of a hibernating shoot's remaining pods in the seed. */
export const podsLeft = ({ seed, shoot }: Pick<Operation, 'seed' | 'shoot'>): string[] =>
  seed
    .podsOf(keyOf(shoot))
    .filter(isLeft)
    .map(({ metadata }) => metadata.name)
    .sort();

/** Whether any part of the control plane has replicas. */
export const isAnythingUp = (op: Pick<Operation, 'seed' | 'shoot' | 'values'>): boolean =>
  [etcdOf(op), ...deploymentsOf(op)].some((live) => sizeOf(live) > 0);

/** Whether the API server has replicas. */
export const isServing = (op: Pick<Operation, 'seed' | 'values'>): boolean => sizeOf(apiServer(op)) > 0;

const etcdOf = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): StatefulSet | undefined =>
  seed.statefulSets.get(`${values.namespace}/${COMPONENTS.etcd}`);

const apiServer = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): Deployment | undefined =>
  seed.deployments.get(`${values.namespace}/${COMPONENTS.apiServer}`);

const deploymentsOf = ({ seed, shoot, values }: Pick<Operation, 'seed' | 'shoot' | 'values'>): Deployment[] =>
  seed.deploymentsOf(keyOf(shoot)).filter(({ metadata }) => metadata.namespace === values.namespace);

const sizeOf = (live: Deployment | StatefulSet | undefined): number => (live ? (live.spec.replicas ?? 1) : 0);

/** Whether the pod runs or terminates. A pod that ended, such as an evicted one, stays until its owner is gone. */
const isLeft = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || !hasEnded(pod);

/** Scales Deployments of the shoot's namespace to zero, and waits until their pods have ended. */
async function endDeployments(op: Operation, which: (name: string) => boolean, signal: AbortSignal): Promise<void> {
  const { seed } = op;
  const ending = deploymentsOf(op).filter(({ metadata }) => which(metadata.name));
  await Promise.all(
    ending
      .filter((live) => sizeOf(live) > 0)
      .map(async ({ metadata: { name, namespace } }) => {
        const options = { fieldManager: FIELD_MANAGER, signal };
        const patch = { spec: { replicas: 0 } };
        seed.deployments.absorb(await seed.client.mergePatch<Deployment>(DEPLOYMENTS, name, namespace, patch, options));
      }),
  );
  const isOf = ({ metadata }: Pod, { spec }: Deployment) => matchesLabels(metadata.labels ?? {}, spec.selector);
  await podsEnd(op, (pod) => ending.some((live) => isOf(pod, live)), signal);
}

async function podsEnd(op: Operation, which: (pod: Pod) => boolean, signal: AbortSignal): Promise<void> {
  const { seed, shoot } = op;
  const left = () => seed.podsOf(keyOf(shoot)).filter((pod) => which(pod) && isLeft(pod));
  await waitFor([seed.pods], () => left().length === 0, {
    timeoutMs: 2 * MINUTE,
    signal,
    what: () =>
      `pods ${left()
        .map(({ metadata }) => metadata.name)
        .join(', ')} to end`,
  });
}

/**
 * Deletes machines that started after the API server stopped: they join nothing, and would cost money until the cluster
 * wakes.
 */
async function removeLeft(op: Operation): Promise<void> {
  const { provider } = op;
  const alive = (await provider.listMachines(op.context())).filter(({ phase }) => phase !== 'Terminating');
  for (const pool of new Set(alive.map((machine) => machine.pool))) {
    const names = alive.filter((machine) => machine.pool === pool).map(({ name }) => name);
    await provider.removeMachines(op.context(), pool, names, 0);
  }
}

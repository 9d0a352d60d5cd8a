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
import { connect } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { keepKeys } from '../stored-keys.ts';
import { machineTasks } from '../tasks/machine-tasks.ts';
import { namespaceTask } from '../tasks/namespace-task.ts';
import { givenUpInSilence } from '../tasks/while-answered.ts';
import { addressTasks } from './addresses.ts';

const MINUTE = 60_000;

/**
 * The task graph of a shoot that is to sleep: its machines go, then what works through its API server, that, and etcd. Volumes, keys,
 * addresses and the kubeconfig stay. Every task does nothing where nothing is to be done. It wakes by the usual graph.
 */
export function hibernationTasks(op: Operation): Task[] {
  const { seed, deps } = op;
  // It goes last but etcd, so without it no machine is left to be drained.
  const isUp = isServing(op);
  return [
    namespaceTask(op),
    ...addressTasks(op, 'Keeping addresses'),
    {
      id: 'keys',
      title: 'Keeping keys',
      after: ['services'],
      expectedMs: 5,
      // A cluster that fell asleep without its keys would never wake.
      run: (signal) => keepKeys(op, signal),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for the API server',
      after: ['keys'],
      skip: !isUp,
      expectedMs: 50,
      timeoutMs: 5 * MINUTE,
      run: (signal) => connect(op, signal),
    },
    ...machineTasks(op, [], ['api-server-serves']).map((task) => ({
      ...(task.id === 'withdraw-machines' ? task : notHeldByWebhooks(op, givenUpInSilence(op, task))),
      title: 'Taking machines away',
      // Machines that have not started are withdrawn without the cluster.
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
        // First: a connection that breaks would be told as an outage.
        await closeConnection(op.state);
        await endDeployments(op, (name) => name === COMPONENTS.apiServer, signal);
      },
    },
    {
      id: 'last-snapshot',
      title: 'Taking a last snapshot',
      after: ['api-server-ends'],
      // Nobody can write any more, so it has everything. Of an etcd that has ended it was taken.
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
          // One write: with the size forgotten, members that have data would be taken for none.
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

/** The longest that machines of a cluster are taken away for which webhooks of the cluster answer late, or never. */
const MACHINES_GO_MS = 20 * MINUTE;

/**
 * The task, which ends well where all that failed is what a webhook of the cluster refused, and has a deadline of its own. What it leaves is removed
 * by machines-left, in the seed or in the cloud, and Nodes without a machine when the cluster wakes.
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

/** How many members etcd has when it is awake; undefined: it was never made. */
export function etcdSizeAwake(live: StatefulSet | undefined): number | undefined {
  if (!live) return undefined;
  return sizeOf(live) || Number(live.metadata.annotations?.[ANNOTATIONS.sizeAwake]) || undefined;
}

/** Pods in the seed that a shoot which sleeps has yet to lose, by name. */
export const podsLeft = ({ seed, shoot }: Pick<Operation, 'seed' | 'shoot'>): string[] =>
  seed
    .podsOf(keyOf(shoot))
    .filter(isLeft)
    .map(({ metadata }) => metadata.name)
    .sort();

/** Whether anything of the control plane is asked for yet. */
export const isAnythingUp = (op: Pick<Operation, 'seed' | 'shoot' | 'values'>): boolean =>
  [etcdOf(op), ...deploymentsOf(op)].some((live) => sizeOf(live) > 0);

/** Whether its API server is asked for yet. */
export const isServing = (op: Pick<Operation, 'seed' | 'values'>): boolean => sizeOf(apiServer(op)) > 0;

const etcdOf = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): StatefulSet | undefined =>
  seed.statefulSets.get(`${values.namespace}/${COMPONENTS.etcd}`);

const apiServer = ({ seed, values }: Pick<Operation, 'seed' | 'values'>): Deployment | undefined =>
  seed.deployments.get(`${values.namespace}/${COMPONENTS.apiServer}`);

const deploymentsOf = ({ seed, shoot, values }: Pick<Operation, 'seed' | 'shoot' | 'values'>): Deployment[] =>
  seed.deploymentsOf(keyOf(shoot)).filter(({ metadata }) => metadata.namespace === values.namespace);

const sizeOf = (live: Deployment | StatefulSet | undefined): number => (live ? (live.spec.replicas ?? 1) : 0);

/** Whether it is there, or on its way out. One that ended by itself, as one that was evicted, stays until its owner has gone. */
const isLeft = (pod: Pod): boolean => pod.metadata.deletionTimestamp !== undefined || !hasEnded(pod);

/** Has Deployments of the shoot's namespace run nothing, and waits until their pods have ended. */
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

/** Machines that came after the API server had gone join nothing, and would be paid for until the cluster wakes. */
async function removeLeft(op: Operation): Promise<void> {
  const { provider } = op;
  const alive = (await provider.listMachines(op.context())).filter(({ phase }) => phase !== 'Terminating');
  for (const pool of new Set(alive.map((machine) => machine.pool))) {
    const names = alive.filter((machine) => machine.pool === pool).map(({ name }) => name);
    await provider.removeMachines(op.context(), pool, names, 0);
  }
}

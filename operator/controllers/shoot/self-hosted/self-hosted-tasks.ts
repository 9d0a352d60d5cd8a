import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { clusterInfo } from '../../../shoot/kubeadm.ts';
import { pkiParameters } from '../../../shoot/pki.ts';
import { machineAccess } from '../../../shoot/system-components.ts';
import { connectToShoot } from '../connect.ts';
import type { Operation } from '../operation.ts';
import { takeRequest } from '../operation-request.ts';
import { accessTasks } from '../tasks/access-tasks.ts';
import { shootConnection } from '../tasks/apply-inside.ts';
import { type EncryptingServers, encryptionTask } from '../tasks/encryption-task.ts';
import { issueCertificates } from '../tasks/issue-certificates.ts';
import { kubeconfigTask } from '../tasks/kubeconfig-task.ts';
import { machineTasks, nodesReadyTask } from '../tasks/machine-tasks.ts';
import { certificatesOfAddons, metricsServerTask } from '../tasks/metrics-server-task.ts';
import { namespaceTask } from '../tasks/namespace-task.ts';
import { systemComponentsTask, systemReadyTask } from '../tasks/system-components-tasks.ts';
import { volumeTasks } from '../tasks/volume-tasks.ts';
import { isChangingKeys, wantsAnotherKey, withSecretsKey } from './encryption.ts';
import type { ControlPlaneInfrastructure } from './infrastructure.ts';
import { notReady } from './not-ready.ts';
import { noteIn } from './self-hosted.ts';

/** Interval for checking machines' certificates without other changes. */
const LOOK_AGAIN_MS = 24 * 3600_000;

/**
 * Task graph of create and reconcile for a self-hosted control plane, in any place. The first machine runs `kubeadm
 * init`, others join one by one. Tasks do nothing when done already.
 */
export function selfHostedTasks(op: Operation, infrastructure: ControlPlaneInfrastructure): Task[] {
  const { tasks } = infrastructure;
  return [
    namespaceTask(op),
    { ...tasks.endpoint, after: ['namespace'], run: (signal) => makeEndpoint(op, infrastructure, signal) },
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: [tasks.endpoint.id],
      expectedMs: 50,
      run: async (signal) => {
        const parameters = { ...pkiParameters(op.values), ...certificatesOfAddons(op), selfHosted: true };
        await issueCertificates(op, parameters, signal, (pki) => withSecretsKey(op, pki));
        // A refused request stays: a condition gives the reason meanwhile.
        if (wantsAnotherKey(op)) await takeRequest(op, signal);
      },
    },
    {
      id: 'control-plane-machines',
      ...tasks.machines,
      after: ['certificates'],
      run: () => infrastructure.begin(op),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for kubeadm to start the control plane',
      after: ['control-plane-machines'],
      ...tasks.serves,
      run: (signal) => connectUnlessHopeless(op, infrastructure, signal),
    },
    {
      id: 'initialised',
      title: 'Writing down that the cluster was initialised',
      after: ['api-server-serves'],
      expectedMs: 30,
      // Recorded before anybody gets access, and never removed: from here on there may be data, and no machine without
      // data may initialise the cluster again.
      run: async (signal) => {
        if (!noteIn(op)) await infrastructure.noteBegun(op, signal);
      },
    },
    ...accessTasks(op, 'initialised'),
    kubeconfigTask(op),
    systemComponentsTask(op, () => [
      clusterInfo(op.values, op.pki),
      ...machineAccess(),
      ...infrastructure.systemComponents(op),
    ]),
    {
      id: 'control-plane-size',
      title: 'Scaling the control plane',
      after: ['system-components'],
      ...tasks.size,
      run: (signal) => reconcileSize(op, infrastructure, signal),
    },
    ...machineTasks(op, infrastructure.isOutdated(op) ? ['control-plane-size'] : []),
    nodesReadyTask(op, []),
    systemReadyTask(op, []),
    ...volumeTasks(op),
    metricsServerTask(op),
    {
      id: 'control-plane-ready',
      title: 'Waiting for the control plane',
      after: ['control-plane-size'],
      expectedMs: 10_000,
      timeoutMs: tasks.readyMs,
      run: (signal) => untilReady(op, infrastructure, signal),
    },
    encryptionTask(op, serversOnMachines(op, infrastructure)),
  ];
}

async function untilReady(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  signal: AbortSignal,
): Promise<void> {
  const { nodes, pods } = shootConnection(op);
  const missing = () => notReady(op, infrastructure);
  await waitFor([...infrastructure.informers(op), nodes, pods], () => missing().length === 0, {
    timeoutMs: infrastructure.tasks.readyMs,
    signal,
    what: () => `${missing().join(', ')} to be ready`,
  });
}

/** Encryption of API servers on machines: machines are recreated for new keys, as for an upgrade. */
const serversOnMachines = (op: Operation, infrastructure: ControlPlaneInfrastructure): EncryptingServers => ({
  // Backups of such an etcd include its keys.
  keptMs: () => 0,
  timeoutMs: infrastructure.tasks.rotationMs,
  untilAllHave: async (signal) => {
    await reconcileSize(op, infrastructure, signal);
    await untilReady(op, infrastructure, signal);
  },
  tell: async (signal) => {
    await infrastructure.begin(op);
    await reconcileSize(op, infrastructure, signal);
  },
});

async function makeEndpoint(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  signal: AbortSignal,
): Promise<void> {
  await infrastructure.makeEndpoint(op, signal);
  await infrastructure.mend?.(op, false);
}

async function reconcileSize(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  signal: AbortSignal,
): Promise<void> {
  const { deps, mend, state, values } = op;
  const lookedAt = state.machinesSettled;
  // Only the cloud knows which keys its machines have.
  const isSettled =
    lookedAt !== undefined &&
    +deps.now() - +lookedAt < LOOK_AGAIN_MS &&
    state.etcdSettled === values.replicas &&
    !isChangingKeys(op) &&
    !infrastructure.isOutdated(op) &&
    notReady(op, infrastructure).length === 0;
  // Repair also has to find surplus machines.
  if (mend || !isSettled) {
    // An interruption leaves surplus machines.
    state.etcdSettled = undefined;
    await infrastructure.reconcileSize(op, signal);
    // During a rotation there may be stand-in machines, which leave at its end.
    state.etcdSettled = isChangingKeys(op) ? undefined : values.replicas;
    state.machinesSettled = deps.now();
  }
  await infrastructure.mend?.(op, true);
}

/** Connects, or fails as soon as the control plane is known not to come. */
async function connectUnlessHopeless(
  op: Operation,
  infrastructure: ControlPlaneInfrastructure,
  signal: AbortSignal,
): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const hopeless = infrastructure.untilHopeless(op, either);
  // Its result is unused once the connection succeeded.
  hopeless.catch(() => {});
  const connected = connectToShoot(op, either, infrastructure.apiServer);
  connected.catch(() => {});
  try {
    await Promise.race([connected, hopeless]);
  } finally {
    over.abort();
  }
}

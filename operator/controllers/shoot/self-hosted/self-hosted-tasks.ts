import { controlPlaneMachineName } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import type { Service } from '../../../kube/resources.ts';
import { controlPlaneMachineService } from '../../../shoot/control-plane-services.ts';
import { clusterInfo, kubeletAccess } from '../../../shoot/kubeadm.ts';
import { pkiParameters } from '../../../shoot/pki.ts';
import { services } from '../../../shoot/services.ts';
import { machineAccess } from '../../../shoot/system-components.ts';
import { connect } from '../connect.ts';
import { expose } from '../expose.ts';
import {
  accessTasks,
  inside,
  kubeconfigTask,
  machineTasks,
  nodesReadyTask,
  systemComponentsTask,
  systemReadyTask,
} from '../inside-tasks.ts';
import type { Operation } from '../operation.ts';
import { issueCertificates, namespaceTask } from '../shared-steps.ts';
import { controlPlaneOf } from './self-hosted.ts';
import {
  applyControlPlaneMachines,
  noteInitialised,
  notReady,
  reconcileControlPlaneSize,
  untilLost,
} from './self-hosted-size.ts';

const MINUTE = 60_000;
/** The image of such machines may still be made: kubeadm is built when everything else is there. */
const KUBEADM_BUILT_MS = 20 * MINUTE;

/**
 * The task graph for create and reconcile of a shoot whose control plane is on machines of its own. The first machine begins the
 * cluster by `kubeadm init`; the others join it one by one. Every task does nothing where nothing is to be done.
 */
export function selfHostedTasks(op: Operation): Task[] {
  return [
    namespaceTask(op),
    {
      id: 'services',
      title: 'Reserving addresses',
      after: ['namespace'],
      expectedMs: 60,
      timeoutMs: 12 * MINUTE,
      run: (signal) => reserveAddresses(op, signal),
    },
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: ['services'],
      expectedMs: 50,
      run: (signal) => issueCertificates(op, { ...pkiParameters(op.values), selfHosted: true }, signal),
    },
    {
      id: 'control-plane-machines',
      title: 'Making the machines of the control plane',
      after: ['certificates'],
      expectedMs: 50,
      run: () => applyControlPlaneMachines(op),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for kubeadm to start the control plane',
      after: ['control-plane-machines'],
      expectedMs: 30_000,
      timeoutMs: KUBEADM_BUILT_MS,
      run: (signal) => connectUnless(op, (until) => untilLost(op, until), signal, KUBEADM_BUILT_MS),
    },
    {
      id: 'initialised',
      title: 'Noting that the cluster has begun',
      after: ['api-server-serves'],
      expectedMs: 30,
      run: (signal) => noteInitialised(op, signal),
    },
    ...accessTasks(op, 'initialised'),
    kubeconfigTask(op),
    systemComponentsTask(op, () => [clusterInfo(op.values, op.pki), kubeletAccess(), ...machineAccess()]),
    {
      id: 'control-plane-size',
      title: 'Bringing the control plane to its size',
      after: ['system-components'],
      expectedMs: 1000,
      timeoutMs: 30 * MINUTE,
      run: (signal) => reconcileControlPlaneSize(op, signal),
    },
    ...machineTasks(op),
    nodesReadyTask(op, []),
    systemReadyTask(op, []),
    {
      id: 'control-plane-ready',
      title: 'Waiting for the control plane',
      after: ['control-plane-size'],
      expectedMs: 10_000,
      timeoutMs: 5 * MINUTE,
      run: async (signal) => {
        const { nodes, pods } = inside(op);
        await waitFor([op.seed.pods, nodes, pods], () => notReady(op).length === 0, {
          timeoutMs: 5 * MINUTE,
          signal,
          what: () => `${notReady(op).join(', ')} to be ready`,
        });
      },
    },
  ];
}

/**
 * A control plane that cannot come back is not waited for.
 * @param untilHopeless rejects when it cannot
 */
export async function connectUnless(
  op: Operation,
  untilHopeless: (signal: AbortSignal) => Promise<never>,
  signal: AbortSignal,
  patienceMs: number,
): Promise<void> {
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const hopeless = untilHopeless(either);
  // Nobody listens any more once the other has come first.
  hopeless.catch(() => {});
  const connected = connect(op, either, patienceMs);
  connected.catch(() => {});
  try {
    await Promise.race([connected, hopeless]);
  } finally {
    over.abort();
  }
}

/** Addresses outlive machines: certificates and etcd's members carry them. */
async function reserveAddresses(op: Operation, signal: AbortSignal): Promise<void> {
  const { seed, values } = op;
  const { pool } = controlPlaneOf(op);
  let members = values.replicas;
  // An address once given stays: a machine on its way out still has it.
  while (seed.services.get(`${values.namespace}/${controlPlaneMachineName(pool.name, members)}`)) members++;
  const ofMachines = Array.from({ length: members }, (_, ordinal) =>
    controlPlaneMachineService(values, pool.name, ordinal),
  );
  const wanted = [...services(values, 0), ...ofMachines];
  const made = await Promise.all(wanted.map((object) => seed.applier.apply(object, signal)));
  const [apiServer = '', ...etcd] = made.map(({ object }) => (object as Service).spec.clusterIP ?? '');
  const endpoint = await expose(op, made[0]!.object as Service, signal);
  op.values = { ...values, addresses: { apiServer, etcd }, ...(endpoint && { endpoint }) };
}

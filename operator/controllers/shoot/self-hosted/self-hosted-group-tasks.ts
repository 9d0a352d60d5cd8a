import type { Task } from '../../../flow/graph.ts';
import { waitFor } from '../../../kube/informer.ts';
import { clusterInfo, kubeletAccess } from '../../../shoot/kubeadm.ts';
import { pkiParameters } from '../../../shoot/pki.ts';
import { machineAccess } from '../../../shoot/system-components.ts';
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
import {
  beginControlPlane,
  groupNotReady,
  noteBegun,
  reconcileControlPlaneGroup,
  reserveEndpoint,
  untilGroupLost,
} from './self-hosted-group.ts';
import { mendControlPlane } from './self-hosted-group-mend.ts';
import { connectUnless } from './self-hosted-tasks.ts';

const MINUTE = 60_000;
/** From a machine that is asked for to an API server behind the load balancer. */
const BEGUN_MS = 20 * MINUTE;

/**
 * The task graph for create and reconcile of a shoot whose control plane is on machines of its own in a cloud. The first machine begins
 * the cluster by `kubeadm init`; the others join it one by one. Every task does nothing where nothing is to be done.
 */
export function selfHostedGroupTasks(op: Operation): Task[] {
  return [
    namespaceTask(op),
    {
      id: 'endpoint',
      title: 'Making the endpoint of the API server',
      after: ['namespace'],
      expectedMs: 5 * MINUTE,
      // A cloud's network takes minutes, and several clusters of an account take turns.
      timeoutMs: 45 * MINUTE,
      run: async () => {
        await reserveEndpoint(op);
        await mendControlPlane(op, false);
      },
    },
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: ['endpoint'],
      expectedMs: 50,
      run: (signal) => issueCertificates(op, { ...pkiParameters(op.values), selfHosted: true }, signal),
    },
    {
      id: 'control-plane-machines',
      title: 'Making the first machine of the control plane',
      after: ['certificates'],
      expectedMs: MINUTE,
      timeoutMs: 30 * MINUTE,
      run: () => beginControlPlane(op),
    },
    {
      id: 'api-server-serves',
      title: 'Waiting for kubeadm to start the control plane',
      after: ['control-plane-machines'],
      expectedMs: 4 * MINUTE,
      timeoutMs: BEGUN_MS,
      run: (signal) => connectUnless(op, (until) => untilGroupLost(op, until), signal, BEGUN_MS),
    },
    {
      id: 'initialised',
      title: 'Noting that the cluster has begun',
      after: ['api-server-serves'],
      expectedMs: 30,
      run: (signal) => noteBegun(op, signal),
    },
    ...accessTasks(op, 'initialised'),
    kubeconfigTask(op),
    systemComponentsTask(op, () => [
      clusterInfo(op.values, op.pki),
      kubeletAccess(),
      ...machineAccess(),
      // What nodes of clouds do for the network, nodes of the control plane do, too.
      ...(op.provider.systemComponents?.() ?? []),
    ]),
    {
      id: 'control-plane-size',
      title: 'Bringing the control plane to its size',
      after: ['system-components'],
      expectedMs: MINUTE,
      timeoutMs: 60 * MINUTE,
      run: async (signal) => {
        await reconcileControlPlaneGroup(op, signal);
        await mendControlPlane(op, true);
      },
    },
    ...machineTasks(op),
    nodesReadyTask(op, []),
    systemReadyTask(op, []),
    {
      id: 'control-plane-ready',
      title: 'Waiting for the control plane',
      after: ['control-plane-size'],
      expectedMs: 10_000,
      timeoutMs: 10 * MINUTE,
      run: async (signal) => {
        const { nodes, pods } = inside(op);
        await waitFor([nodes, pods], () => groupNotReady(op).length === 0, {
          timeoutMs: 10 * MINUTE,
          signal,
          what: () => `${groupNotReady(op).join(', ')} to be ready`,
        });
      },
    },
  ];
}

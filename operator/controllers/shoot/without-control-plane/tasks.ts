import { NO_API_SERVER } from '../../../api/names.ts';
import type { Task } from '../../../flow/graph.ts';
import { sleep } from '../../../kube/clock.ts';
import { adminKubeconfig } from '../../../shoot/kubeconfigs.ts';
import { pkiParameters } from '../../../shoot/pki.ts';
import { API_SERVER_PORT, type ControlPlane, endpointURL } from '../../../shoot/values.ts';
import { closeNamespace, removeKubeconfig } from '../deletion/deletion-tasks.ts';
import type { Operation } from '../operation.ts';
import { issueCertificates } from '../tasks/issue-certificates.ts';
import { storeKubeconfig } from '../tasks/kubeconfig-task.ts';
import { namespaceTask } from '../tasks/namespace-task.ts';

const MINUTE = 60_000;
/** A documentation address (RFC 5737) for the certificate of an API server that does not exist. */
const NOBODYS_ADDRESS = '192.0.2.1';

/** Values with an endpoint whose name says that it does not exist. */
const valuesOf = ({ values }: Operation): ControlPlane => ({
  ...values,
  addresses: { apiServer: NOBODYS_ADDRESS, etcd: [] },
  endpoint: { host: `${values.namespace}.${NO_API_SERVER}`, port: API_SERVER_PORT },
});

/** Nominal endpoint of a cluster without a control plane. */
export const endpointWithoutControlPlane = (op: Operation): string => endpointURL(valuesOf(op));

/** Present machines in the shoot's ConfigMap. */
export const machinesNow = (op: Operation) =>
  op.withoutControlPlane!.read(
    op.context(),
    op.pools,
    op.seed.configMaps.get(`${op.values.namespace}/${op.withoutControlPlane!.configMapName}`),
  );

/**
 * Task graph of create and reconcile for a cluster without a control plane: namespace, keys, kubeconfig and machines as
 * usual, but nothing runs.
 */
export function tasksWithoutControlPlane(op: Operation): Task[] {
  const { seed, state, values, deps } = op;
  return [
    namespaceTask(op),
    {
      id: 'certificates',
      title: 'Issuing certificates',
      after: ['namespace'],
      expectedMs: 100,
      run: (signal) => issueCertificates(op, pkiParameters(valuesOf(op)), signal),
    },
    {
      id: 'kubeconfig',
      title: 'Storing the kubeconfig',
      after: ['certificates'],
      expectedMs: 30,
      run: (signal) => storeKubeconfig(op, adminKubeconfig(valuesOf(op), op.pki), signal),
    },
    {
      id: 'machines',
      title: 'Storing machines',
      after: ['namespace'],
      expectedMs: 30,
      run: async (signal) => {
        const { withoutControlPlane, pools } = op;
        const before = seed.configMaps.get(`${values.namespace}/${withoutControlPlane!.configMapName}`);
        const wanted = { members: values.replicas, pools };
        const { configMap, refusal } = withoutControlPlane!.update(op.context(), wanted, before);
        const { object, changed } = await seed.applier.apply(configMap, signal);
        if (changed) seed.configMaps.absorb(object);
        // Thrown last: granted machines are stored first.
        if (refusal) throw refusal;
      },
    },
    {
      id: 'machines-ready',
      title: 'Waiting for machines',
      after: ['machines'],
      expectedMs: 5,
      timeoutMs: 60 * MINUTE,
      run: async (signal) => {
        for (;;) {
          const { controlPlane, machines, changesAt } = machinesNow(op);
          state.machinesChangeAt = changesAt;
          const pending = [...controlPlane, ...machines].some(({ phase }) => phase === 'Pending');
          if (!pending || !changesAt) return;
          await sleep(+changesAt - +deps.now(), signal);
          signal.throwIfAborted();
        }
      },
    },
  ];
}

/** Task graph of deletion, from any half-built state. Stored machines go with the namespace. */
export function deletionTasksWithoutControlPlane(op: Operation): Task[] {
  return [
    {
      id: 'kubeconfig',
      title: 'Removing the kubeconfig',
      expectedMs: 20,
      run: (signal) => removeKubeconfig(op, signal),
    },
    {
      id: 'namespace',
      title: 'Deleting the namespace in the seed',
      expectedMs: 20,
      run: (signal) => closeNamespace(op, signal),
    },
    {
      id: 'machines',
      title: 'Removing machines',
      after: ['namespace'],
      expectedMs: 5,
      run: () => op.provider.deleteAll(op.context()),
    },
  ];
}

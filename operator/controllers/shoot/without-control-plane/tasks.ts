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
/** For documentation only (RFC 5737), so nobody's: the certificate of an API server that does not exist names it. */
const NOBODYS_ADDRESS = '192.0.2.1';

/** The values of a control plane whose endpoint says by its name that it is not there. */
const valuesOf = ({ values }: Operation): ControlPlane => ({
  ...values,
  addresses: { apiServer: NOBODYS_ADDRESS, etcd: [] },
  endpoint: { host: `${values.namespace}.${NO_API_SERVER}`, port: API_SERVER_PORT },
});

/** Where the API server of a cluster without a control plane would be. */
export const endpointWithoutControlPlane = (op: Operation): string => endpointURL(valuesOf(op));

/** The machines that the ConfigMap of the shoot names, as they are now. */
export const machinesNow = (op: Operation) =>
  op.withoutControlPlane!.read(
    op.context(),
    op.pools,
    op.seed.configMaps.get(`${op.values.namespace}/${op.withoutControlPlane!.configMapName}`),
  );

/**
 * The task graph for create and reconcile of a cluster without a control plane: the same namespace, keys, kubeconfig and
 * machines through the same controllers, but nothing that runs.
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
        // Last: what the cloud does give is in the ConfigMap, whatever it refuses.
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

/** The task graph for deletion, from any half-built state. What is stored goes with the namespace. */
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

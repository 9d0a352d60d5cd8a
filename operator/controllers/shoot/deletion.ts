import { kubeconfigSecretName } from '../../api/names.ts';
import type { Task } from '../../flow/graph.ts';
import { sleep } from '../../kube/clock.ts';
import { waitFor } from '../../kube/informer.ts';
import {
  DEPLOYMENTS,
  NAMESPACES,
  type PersistentVolume,
  PODS,
  PVCS,
  PVS,
  REPLICASETS,
  SECRETS,
  STATEFULSETS,
} from '../../kube/resources.ts';
import type { Operation } from './operation.ts';

/** Nothing of what ends here is needed again, so nobody gets longer than this to say goodbye. */
const GRACE_SECONDS = 1;

/**
 * The task graph for deletion, from any half-built state. The control plane is not woken up for it: nothing inside of a hosted
 * cluster holds anything outside of the seed (design section 3).
 */
export function deletionTasks(op: Operation): Task[] {
  const { seed, shoot, state, values, world, provider } = op;
  const ns = values.namespace;
  const { name, namespace } = shoot.metadata;
  return [
    {
      id: 'disconnect',
      title: 'Closing the line to the API server',
      expectedMs: 10,
      run: async () => {
        const connection = state.connection;
        state.connection = undefined;
        state.usable = undefined;
        await connection?.stop();
      },
    },
    {
      id: 'kubeconfig',
      title: 'Removing the kubeconfig',
      expectedMs: 20,
      run: async (signal) => {
        const secret = kubeconfigSecretName(name);
        await world.garden.delete(SECRETS, secret, namespace, { signal });
      },
    },
    {
      id: 'machines',
      title: 'Removing machines',
      after: ['disconnect'],
      expectedMs: 100,
      run: async () => provider.deleteAll(op.context()),
    },
    {
      id: 'workloads',
      title: 'Stopping the control plane',
      after: ['disconnect'],
      expectedMs: 200,
      run: async (signal) => {
        // Owners first, from the top down, or they make anew what they own. Their pods are left to the next task: the garbage
        // collector would give each its full grace, and a kubelet that has begun to wait does not hurry up.
        const options = { namespace: ns, propagationPolicy: 'Orphan', signal } as const;
        await Promise.all([
          seed.client.deleteCollection(DEPLOYMENTS, options),
          seed.client.deleteCollection(STATEFULSETS, options),
        ]);
        await seed.client.deleteCollection(REPLICASETS, options);
      },
    },
    {
      id: 'pods',
      title: 'Ending pods',
      after: ['machines', 'workloads'],
      expectedMs: 1500,
      timeoutMs: 120_000,
      run: async (signal) => {
        const left = () => seed.pods.list().filter((pod) => pod.metadata.namespace === ns);
        // Before their namespace: its controller gives pods their full grace, and looks again only after as long.
        await seed.client.deleteCollection(PODS, { namespace: ns, gracePeriodSeconds: GRACE_SECONDS, signal });
        await seed.client.deleteCollection(PVCS, { namespace: ns, signal });
        await waitFor([seed.pods], () => left().length === 0, {
          timeoutMs: 110_000,
          signal,
          what: () =>
            `pods ${left()
              .map((pod) => pod.metadata.name)
              .join(', ')} in namespace ${ns} of seed ${seed.name} to end`,
        });
      },
    },
    {
      id: 'namespace',
      title: 'Removing the namespace in the seed',
      after: ['pods'],
      expectedMs: 1000,
      timeoutMs: 120_000,
      run: async (signal) => {
        const found = () => seed.namespaces.get(ns);
        await seed.client.delete(NAMESPACES, ns, undefined, { signal });
        await waitFor([seed.namespaces], () => !found(), {
          timeoutMs: 110_000,
          signal,
          what: () => {
            const reasons = (found()?.status?.conditions ?? []) as { status: string; message?: string }[];
            const why = reasons
              .filter((condition) => condition.status === 'True' && condition.message)
              .map((condition) => condition.message);
            return `namespace ${ns} of seed ${seed.name} to be gone${why.length > 0 ? ` (${why.join('; ')})` : ''}`;
          },
        });
      },
    },
    {
      id: 'volumes',
      title: 'Removing volumes',
      after: ['pods'],
      expectedMs: 300,
      timeoutMs: 120_000,
      run: async (signal) => {
        for (;;) {
          const { items } = await seed.client.list<PersistentVolume>(PVS, { signal });
          // A class that retains volumes has decided that they outlive their claims.
          const left = items.filter(
            (pv) => pv.spec.claimRef?.namespace === ns && pv.spec.persistentVolumeReclaimPolicy !== 'Retain',
          );
          if (left.length === 0) return;
          signal.throwIfAborted();
          await sleep(200, signal);
        }
      },
    },
  ];
}

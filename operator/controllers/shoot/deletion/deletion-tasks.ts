import { LABELS } from '../../../api/group.ts';
import { kubeconfigOwner, kubeconfigSecret, removeKubeconfigSecret } from '../../../clusters/kubeconfig-secret.ts';
import type { Task } from '../../../flow/graph.ts';
import { sleep } from '../../../kube/clock.ts';
import { waitFor } from '../../../kube/informer.ts';
import {
  CONFIGMAPS,
  DEPLOYMENTS,
  type KubeObject,
  NAMESPACES,
  type PersistentVolume,
  PVCS,
  PVS,
  SECRETS,
  SERVICES,
  STATEFULSETS,
} from '../../../kube/resources.ts';
import { closeConnection } from '../close-connection.ts';
import { removeRecords } from '../dns/dns-records.ts';
import type { Operation } from '../operation.ts';
import { namespaceIn, notOurs, otherOwnerIn } from '../ownership.ts';
import { endPods, podsGone } from './end-pods.ts';

/** Objects of a control plane in the seed, besides pods. */
const OBJECTS = [DEPLOYMENTS, STATEFULSETS, SERVICES, SECRETS, CONFIGMAPS, PVCS];

/** Polling of volumes: local ones are deleted at once, a cloud's in seconds, and a seed may have thousands. */
const FIRST_PAUSE_MS = 10;
const LAST_PAUSE_MS = 1000;

/**
 * Task graph of the deletion, from any half-built state. A sleeping control plane is not woken: nothing inside of a
 * hosted cluster holds resources outside of the seed (design section 3).
 * @param deleteOwn deletes what the provider's deleteAll does not cover for this kind of control plane
 */
export function deletionTasks(op: Operation, deleteOwn?: () => Promise<void>): Task[] {
  const { seed, state, values, provider } = op;
  const ns = values.namespace;
  return [
    {
      id: 'disconnect',
      title: 'Closing the connection to the API server',
      expectedMs: 10,
      run: () => closeConnection(state),
    },
    {
      id: 'kubeconfig',
      title: 'Removing the kubeconfig',
      expectedMs: 20,
      run: (signal) => removeKubeconfig(op, signal),
    },
    {
      id: 'dns-records',
      title: 'Removing DNS records',
      skip: op.names.length === 0,
      expectedMs: 500,
      timeoutMs: 60_000,
      run: (signal) => removeRecords(op, signal),
    },
    {
      id: 'backups',
      title: 'Marking backups for deletion',
      expectedMs: 50,
      timeoutMs: 120_000,
      run: (signal) => op.deps.backups.retire(op.shoot, signal),
    },
    {
      id: 'namespace',
      title: 'Deleting the namespace in the seed',
      after: ['disconnect'],
      expectedMs: 20,
      run: (signal) => closeNamespace(op, signal),
    },
    {
      id: 'pods',
      title: 'Ending pods',
      after: ['namespace'],
      expectedMs: 20,
      run: (signal) => endPods(seed, ns, signal),
    },
    {
      id: 'machines',
      title: 'Removing machines',
      after: ['pods'],
      expectedMs: 50,
      run: async () => {
        await provider.deleteAll(op.context());
        await deleteOwn?.();
      },
    },
    {
      id: 'objects',
      title: 'Removing the control plane',
      after: ['machines'],
      expectedMs: 50,
      run: async (signal) => {
        const options = { namespace: ns, labelSelector: LABELS.shoot, signal };
        await Promise.all(OBJECTS.map((resource) => seed.client.deleteCollection(resource, options)));
      },
    },
    {
      id: 'processes',
      title: 'Waiting for pods to end',
      after: ['pods'],
      expectedMs: 1500,
      timeoutMs: 120_000,
      run: (signal) => podsGone(seed, ns, 110_000, signal),
    },
    {
      id: 'volumes',
      title: 'Removing volumes',
      after: ['objects', 'processes'],
      expectedMs: 300,
      timeoutMs: 120_000,
      run: async (signal) => {
        for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(2 * pause, LAST_PAUSE_MS)) {
          const { items } = await seed.client.list<PersistentVolume>(PVS, { signal });
          // Volumes with policy Retain outlive their claims on purpose.
          const left = items.filter(
            (pv) => pv.spec.claimRef?.namespace === ns && pv.spec.persistentVolumeReclaimPolicy !== 'Retain',
          );
          if (left.length === 0) return;
          signal.throwIfAborted();
          await sleep(pause, signal);
        }
      },
    },
  ];
}

/** Deletes the kubeconfig Secret of the user. */
export async function removeKubeconfig({ shoot, deps }: Operation, signal: AbortSignal): Promise<void> {
  const owner = kubeconfigOwner('Shoot', shoot);
  const known = deps.gardenApplier.known(kubeconfigSecret(owner, ''));
  await removeKubeconfigSecret(deps.garden, owner, { known, signal });
}

/**
 * Deletes the namespace, so that nothing can be created in it again. Kubernetes empties a namespace only 5 s later
 * (namespaceDeletionGracePeriod), so pods are deleted one by one before.
 */
export async function closeNamespace({ seed, shoot, values, deps }: Operation, signal: AbortSignal): Promise<void> {
  const ns = values.namespace;
  const live = await namespaceIn(seed, ns, signal);
  const otherOwner = otherOwnerIn(live, shoot, deps.gardenID);
  if (otherOwner) throw notOurs(seed.name, ns, otherOwner);
  const uid = live?.metadata.uid;
  if (live) await seed.client.delete(NAMESPACES, ns, undefined, { signal, preconditions: { ...(uid && { uid }) } });
  // A cluster that is made again reads the cache, which must show the deletion.
  await waitFor([seed.namespaces], () => isClosed(seed.namespaces.get(ns)), {
    timeoutMs: 30_000,
    signal,
    what: `the deletion of namespace ${ns} in seed ${seed.name} to be known`,
  });
}

const isClosed = (namespace: KubeObject | undefined): boolean =>
  namespace?.metadata.deletionTimestamp !== undefined || namespace === undefined;

/**
 * Waits until the namespace of an earlier cluster of the same name is gone: Kubernetes takes at least 5 s for an empty
 * one. Rejects with what holds it.
 */
export async function earlierNamespaceGone({ seed, values }: Operation, signal: AbortSignal): Promise<void> {
  const found = () => seed.namespaces.get(values.namespace);
  await waitFor([seed.namespaces], () => !found()?.metadata.deletionTimestamp, {
    timeoutMs: 110_000,
    signal,
    what: () => {
      const reasons = (found()?.status?.conditions ?? []) as { status: string; message?: string }[];
      const why = reasons.filter(({ status, message }) => status === 'True' && message).map(({ message }) => message);
      const because = why.length > 0 ? ` (${why.join('; ')})` : '';
      return `namespace ${values.namespace} of an earlier cluster in seed ${seed.name} to be gone${because}`;
    },
  });
}

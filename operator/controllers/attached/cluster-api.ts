import { isDeepStrictEqual } from 'node:util';
import { ANNOTATIONS, API_VERSION, LABELS } from '../../api/group.ts';
import { KUBECONFIG_KEY, kubeconfigSecretName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import { includesFields } from '../../kube/applier.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isNotFound } from '../../kube/errors.ts';
import { Informer } from '../../kube/informer.ts';
import {
  type KubeObject,
  keyOf,
  type Resource,
  SECRETS,
  type Secret,
  splitKey,
  WORKERCLUSTERS,
} from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { onlyStatusChanged } from '../status-writer.ts';

const GROUP = 'cluster.x-k8s.io';
/** A Cluster of Cluster API 1.11 or newer. */
export const CAPI_CLUSTERS: Resource = {
  group: GROUP,
  version: 'v1beta2',
  plural: 'clusters',
  kind: 'Cluster',
  namespaced: true,
};

/** Inputs of the decision whether a Cluster of Cluster API is attached. */
export interface CapiView {
  /** Absent: deleted, or no longer selected. */
  readonly capi: KubeObject | undefined;
  /** Whether its kubeconfig exists. */
  readonly hasKubeconfig: boolean;
  readonly cluster: WorkerCluster | undefined;
}

/** Next step; undefined: none. */
type CapiStep =
  | { readonly do: 'apply'; readonly object: WorkerCluster }
  /** `destroyed`: Cluster API destroys the cluster with its content. */
  | { readonly do: 'delete'; readonly destroyed: boolean };

/** Whether the object was made for a Cluster of Cluster API; the name alone proves nothing. */
const isOurs = ({ metadata }: KubeObject): boolean =>
  metadata.labels?.[LABELS.managedBy] === 'coppice' &&
  (metadata.ownerReferences?.some(({ kind, apiVersion }) => kind === 'Cluster' && apiVersion.startsWith(`${GROUP}/`)) ??
    false);

/** Decides about a Cluster of Cluster API. Pure. */
export function judgeCapi({ capi, hasKubeconfig, cluster }: CapiView): CapiStep | undefined {
  const isGoing = capi?.metadata.deletionTimestamp !== undefined;
  if (!capi || isGoing) {
    const isWanted = !cluster || !isOurs(cluster) || cluster.metadata.deletionTimestamp;
    return isWanted ? undefined : { do: 'delete', destroyed: isGoing };
  }
  if (cluster ? !isOurs(cluster) || cluster.metadata.deletionTimestamp : !hasKubeconfig) return undefined;
  const object = attachedTo(capi);
  // A label removed from the Cluster must be removed here too.
  const isSame = cluster && includesFields(cluster, object) && isDeepStrictEqual(ownLabels(cluster), ownLabels(capi));
  return isSame ? undefined : { do: 'apply', object };
}

/** Labels of users. Labels with a domain are for the programs that own them. */
const ownLabels = ({ metadata }: KubeObject): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(([key]) => !key.includes('/')));

function attachedTo(capi: KubeObject): WorkerCluster {
  const { name, namespace = '', uid = '' } = capi.metadata;
  return {
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: {
      name,
      namespace,
      labels: { ...ownLabels(capi), [LABELS.clusterName]: name, [LABELS.managedBy]: 'coppice' },
      // Without a running operator the garbage collector deletes it.
      ownerReferences: [{ apiVersion: `${GROUP}/${CAPI_CLUSTERS.version}`, kind: 'Cluster', name, uid }],
    },
    spec: {
      mode: 'Attached',
      attached: { kubeconfigSecretRef: { name: kubeconfigSecretName(name), key: KUBECONFIG_KEY } },
    } as WorkerCluster['spec'],
  };
}

/** Takes a step. Idempotent. */
async function takeCapiStep(
  garden: KubeClient,
  step: CapiStep,
  cluster: WorkerCluster | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (step.do === 'apply') {
    await garden.apply(step.object, { signal });
    return;
  }
  const { name, namespace, uid = '' } = cluster!.metadata;
  try {
    if (step.destroyed) {
      const metadata = { uid, annotations: { [ANNOTATIONS.destroyed]: 'true' } };
      await garden.mergePatch(WORKERCLUSTERS, name, namespace, { metadata }, { signal });
    }
    await garden.delete(WORKERCLUSTERS, name, namespace, { preconditions: { uid }, signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** The part that attaches Clusters of Cluster API. */
export function wireClusterAPI(core: Core): Part {
  const { garden, log, clusters, clusterAPI } = core;
  if (clusterAPI === '') return { controllers: [] };
  const queue = core.queue('cluster-api');
  // Not among the caches that start-up waits for: the kind may be installed later, or never.
  const capis = new Informer(garden, CAPI_CLUSTERS, { log, labelSelector: clusterAPI, transform: onlyMetadata });
  const secrets = new Informer<Secret>(garden, SECRETS, {
    log,
    labelSelector: LABELS.clusterName,
    fieldSelector: `type=${GROUP}/secret`,
    transform: onlyMetadata,
  });
  capis.onChange(({ object }) => queue.add(keyOf(object)));
  secrets.onChange(({ object }) => {
    const { namespace, labels } = object.metadata;
    queue.add(`${namespace}/${labels?.[LABELS.clusterName]}`);
  });
  clusters.onChange((event) => {
    if (!onlyStatusChanged(event)) queue.add(keyOf(event.object));
  });
  return {
    async prepare() {
      for (const cache of [capis, secrets]) cache.start();
    },
    controllers: [
      {
        name: 'cluster-api',
        queue,
        async reconcile(key, signal) {
          // A missing object in an unsynced cache is not deleted.
          for (const cache of [capis, secrets]) await cache.whenSynced(signal);
          const { namespace, name } = splitKey(key);
          const cluster = clusters.get(key);
          const hasKubeconfig = secrets.get(`${namespace}/${kubeconfigSecretName(name)}`) !== undefined;
          const step = judgeCapi({ capi: capis.get(key), hasKubeconfig, cluster });
          if (step) await takeCapiStep(garden, step, cluster, signal);
        },
      },
    ],
    async close() {
      await Promise.all([capis.stop(), secrets.stop()]);
    },
  };
}

const onlyMetadata = <T extends KubeObject>({ apiVersion, kind, metadata }: T): T =>
  ({ apiVersion, kind, metadata }) as T;

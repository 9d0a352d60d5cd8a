import type { Provider } from '../../providers/contract.ts';
import type { DNSProviders } from '../accounts/dns-account.ts';
import type { StateOptions } from '../accounts/state-backend.ts';
import { type AddressList, addressList } from '../api/address-range.ts';
import type { CloudProfile } from '../api/cloudprofile.ts';
import { LABELS } from '../api/group.ts';
import type { Quota } from '../api/quota.ts';
import type { Seed } from '../api/seed.ts';
import type { Shoot } from '../api/shoot.ts';
import type { WorkerCluster } from '../api/workercluster.ts';
import { DepletedOffers } from '../capacity/depleted-offers.ts';
import type { Decided } from '../capacity/desired-sizes.ts';
import { OpenClusters } from '../clusters/open-clusters.ts';
import { SeedRegistry } from '../clusters/seed-access.ts';
import { Applier, knownBy } from '../kube/applier.ts';
import type { KubeClient } from '../kube/client.ts';
import { type ControllerOptions, queueMetrics } from '../kube/controller.ts';
import { EventRecorder, type RecordEvent } from '../kube/events.ts';
import { Informer } from '../kube/informer.ts';
import type { Log } from '../kube/log.ts';
import type { Registry } from '../kube/metrics.ts';
import type { PodDialer } from '../kube/pod-tunnel.ts';
import {
  CLOUDPROFILES,
  keyOf,
  QUOTAS,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from '../kube/resources.ts';
import { WorkQueue } from '../kube/workqueue.ts';
import type { Meshes } from '../mesh/meshes.ts';
import { openMeshes } from '../mesh/wiring.ts';
import { byNamespace } from './by-namespace.ts';
import { DECIDED_SELECTOR, DecidedSizes } from './decided-sizes.ts';
import { gardenIdentity } from './garden-identity.ts';
import { byTechnicalID } from './same-technical-id.ts';
import { asStated } from './stated-size.ts';

/** Parallel operations on clusters, which mostly wait for nodes and clouds. */
export const OPERATIONS_AT_ONCE = 256;
/** Most workers for clusters of one namespace: hundreds of slow clusters of a tenant leave room for others. */
export const workersOfNamespace = (workers: number): number => Math.floor((workers * 3) / 4);

/** Start options of the operator. */
export interface CoreOptions {
  readonly garden: KubeClient;
  readonly log: Log;
  readonly metrics: Registry;
  /** Provider of a profile, with or without an account; undefined: none. */
  readonly provider: (profile: CloudProfile, withAccount?: boolean) => Provider | undefined;
  /** DNS providers. Absent: none. */
  readonly dns?: DNSProviders;
  /** Dialer for pods of a garden whose Services cannot be reached. Absent: they can. */
  readonly dialPod?: PodDialer | undefined;
  /** Default state backend for clouds without their own. */
  readonly state: Omit<StateOptions, 'garden'>;
  readonly now?: () => Date;
  /** Whether clusters may have machines that are pods of a seed. Absent: no. */
  readonly localMachines?: boolean;
  /** Internal networks of which tenants may attach clusters. Absent: none. */
  readonly attachable?: AddressList;
  /** Label selector of Cluster API's Clusters to attach. Absent or empty: none. */
  readonly clusterAPI?: string;
}

/** Shared parts of all controllers, passed to each `wire...`. Knows no controller. */
export interface Core extends Required<Omit<CoreOptions, 'dialPod'>> {
  /** See gardenIdentity. */
  readonly gardenID: string;
  /** Records an Event about an object. */
  readonly recordEvent: RecordEvent;

  /** With index BY_NAMESPACE, as have shoots and quotas. */
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly profiles: Informer<CloudProfile>;
  readonly quotas: Informer<Quota>;
  /** Kubeconfig Secrets of clusters, written by the operator. */
  readonly kubeconfigs: Informer<Secret>;
  /** Secrets with decided sizes. */
  readonly decidedSecrets: Informer<Secret>;
  /** All of these caches, not started. */
  readonly caches: readonly Informer<any>[];

  /** Queues of WorkerClusters and Shoots by `namespace/name`, for other controllers. */
  readonly queues: { readonly clusters: WorkQueue; readonly shoots: WorkQueue };
  /**
   * A queue for the named controller. `maxDelayMs`: longest back-off; `perNamespace`: most keys of a namespace in work.
   */
  queue(name: string, options?: { maxDelayMs?: number; perNamespace?: number }): WorkQueue;

  /** Applier for Shoots and kubeconfigs that skips no-ops. */
  readonly gardenApplier: Applier;
  readonly registry: SeedRegistry;
  readonly openClusters: OpenClusters;
  /** Stored sizes of clusters' pools. */
  readonly sizes: DecidedSizes;
  /** Stored sizes of one cluster. */
  decided(cluster: WorkerCluster): Decided;
  /** Mesh allocations of clusters. */
  readonly meshes: Meshes;
  /** Known sold-out offers. */
  readonly capacity: DepletedOffers;
}

/** A controller's part of the operator, returned by its `wire...`. */
export interface Part {
  /** Own caches, in addition to the core's. */
  readonly caches?: readonly Informer<any>[];
  /** Called when all caches are synced; controllers start after it. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Controllers, started once all parts are prepared. */
  readonly controllers: readonly Omit<ControllerOptions, 'log' | 'metrics'>[];
  /** Called when all controllers have ended. */
  close?(): Promise<void>;
}

/** Creates the shared parts. Rejects when the garden cannot be identified. */
export async function openCore(options: CoreOptions, signal: AbortSignal): Promise<Core> {
  const {
    garden,
    log,
    metrics,
    dns = () => undefined,
    now = () => new Date(),
    localMachines = false,
    attachable = addressList([]),
    clusterAPI = '',
  } = options;
  const recorder = new EventRecorder({ client: garden, component: 'coppice', log });
  const queue: Core['queue'] = (name, more) => new WorkQueue({ observer: queueMetrics(metrics, name), ...more });

  const indexes = { ...byNamespace, ...byTechnicalID };
  const clusters = new Informer<WorkerCluster>(garden, WORKERCLUSTERS, { log, indexes, transform: asStated });
  const shoots = new Informer<Shoot>(garden, SHOOTS, { log, indexes });
  const seeds = new Informer<Seed>(garden, SEEDS, { log });
  const profiles = new Informer<CloudProfile>(garden, CLOUDPROFILES, { log });
  const quotas = new Informer<Quota>(garden, QUOTAS, { log, indexes: byNamespace });
  const kubeconfigs = new Informer<Secret>(garden, SECRETS, {
    log,
    labelSelector: `${LABELS.clusterName},${LABELS.managedBy}=coppice`,
  });
  const { namespace } = options.state;
  const decidedSecrets = new Informer<Secret>(garden, SECRETS, { log, fieldSelector: DECIDED_SELECTOR, namespace });
  const sizes = new DecidedSizes(garden, namespace, decidedSecrets);
  const { meshes, meshSecrets } = openMeshes(garden, namespace, log, { clusters, shoots, seeds, profiles });
  return {
    ...options,
    dns,
    now,
    localMachines,
    attachable,
    clusterAPI,
    gardenID: await gardenIdentity(garden, signal),
    recordEvent: (object, type, reason, message) => recorder.record(object, type, reason, message),
    clusters,
    shoots,
    seeds,
    profiles,
    quotas,
    kubeconfigs,
    decidedSecrets,
    caches: [clusters, shoots, seeds, profiles, quotas, kubeconfigs, decidedSecrets, meshSecrets],
    queues: {
      clusters: queue('workercluster'),
      shoots: queue('shoot', { perNamespace: workersOfNamespace(OPERATIONS_AT_ONCE) }),
    },
    queue,
    gardenApplier: new Applier(garden, (object) => knownBy(object.kind === 'Shoot' ? shoots : kubeconfigs, object)),
    registry: new SeedRegistry(garden, log, options.dialPod),
    openClusters: new OpenClusters(),
    sizes,
    decided: (cluster) => sizes.get(keyOf(cluster), cluster.metadata.uid ?? ''),
    meshes,
    capacity: new DepletedOffers(now),
  };
}

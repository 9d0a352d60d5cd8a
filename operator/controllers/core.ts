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

/** Operations of clusters wait for nodes and clouds nearly all the time: so many may be under way at once. */
export const OPERATIONS_AT_ONCE = 256;
/**
 * Of so many workers, those that clusters of one namespace have at most. One with hundreds that all wait, for nodes, clouds or API servers of a
 * tenant that are slow on purpose, leaves room for those of others.
 */
export const workersOfNamespace = (workers: number): number => Math.floor((workers * 3) / 4);

/** What the operator is started with. */
export interface CoreOptions {
  readonly garden: KubeClient;
  readonly log: Log;
  readonly metrics: Registry;
  /** The provider of a profile for somebody with or without an account there; undefined when this operator has none. */
  readonly provider: (profile: CloudProfile, withAccount?: boolean) => Provider | undefined;
  /** Who keeps DNS zones. Absent: nobody does. */
  readonly dns?: DNSProviders;
  /** The way to pods of the garden, for one whose Services cannot be reached. Absent: they can. */
  readonly dialPod?: PodDialer | undefined;
  /** Where the state of clouds is kept that have no backend of their own. */
  readonly state: Omit<StateOptions, 'garden'>;
  readonly now?: () => Date;
  /** Whether clusters may be made whose machines are pods of a seed. Absent: they may not. */
  readonly localMachines?: boolean;
  /** Internal networks that clusters of tenants may be in which are attached. Absent: none. */
  readonly attachable?: AddressList;
  /** Label selector of the Clusters of Cluster API that are attached. Absent or empty: none are. */
  readonly clusterAPI?: string;
}

/** What the controllers of all kinds share: each `wire...` takes it. It knows no controller. */
export interface Core extends Required<Omit<CoreOptions, 'dialPod'>> {
  /** See gardenIdentity. */
  readonly gardenID: string;
  /** Writes an Event about an object. */
  readonly recordEvent: RecordEvent;

  /** With index BY_NAMESPACE, as have shoots and quotas. */
  readonly clusters: Informer<WorkerCluster>;
  readonly shoots: Informer<Shoot>;
  readonly seeds: Informer<Seed>;
  readonly profiles: Informer<CloudProfile>;
  readonly quotas: Informer<Quota>;
  /** Secrets with kubeconfigs of clusters, which the operator wrote. */
  readonly kubeconfigs: Informer<Secret>;
  /** Secrets with sizes that were decided. */
  readonly decidedSecrets: Informer<Secret>;
  /** All of these, not started yet. */
  readonly caches: readonly Informer<any>[];

  /** Where other kinds say that a WorkerCluster or a Shoot is to be looked at again, by `namespace/name`. */
  readonly queues: { readonly clusters: WorkQueue; readonly shoots: WorkQueue };
  /**
   * A queue for the controller of that name. `maxDelayMs`: the longest that a key waits after failures; `perNamespace`: how many keys of a
   * namespace are worked on at once.
   */
  queue(name: string, options?: { maxDelayMs?: number; perNamespace?: number }): WorkQueue;

  /** Writes of Shoots and kubeconfigs to the garden, which skip no-ops. */
  readonly gardenApplier: Applier;
  readonly registry: SeedRegistry;
  readonly openClusters: OpenClusters;
  /** What was decided for pools of clusters, as it is stored. */
  readonly sizes: DecidedSizes;
  /** The same, of one cluster. */
  decided(cluster: WorkerCluster): Decided;
  /** What clusters were given in their meshes. */
  readonly meshes: Meshes;
  /** What places had no machines left of. */
  readonly capacity: DepletedOffers;
}

/** The part of one kind in the operator: what its `wire...` returns, besides what others may use of it. */
export interface Part {
  /** Its own caches, besides those of the core. */
  readonly caches?: readonly Informer<any>[];
  /** Called when the caches of all parts are complete; no controller runs before it has ended. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** They run from when all parts are prepared. */
  readonly controllers: readonly Omit<ControllerOptions, 'log' | 'metrics'>[];
  /** Called when the controllers of all parts have ended: lets go of what it has open. */
  close?(): Promise<void>;
}

/** Makes what controllers share. Rejects where the garden does not say which one it is. */
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

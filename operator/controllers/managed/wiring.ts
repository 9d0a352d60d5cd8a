import type { Provider } from '../../../providers/contract.ts';
import { AccountChecks } from '../../accounts/account-checks.ts';
import type { BucketSource } from '../../accounts/bucket-account.ts';
import type { DNSProviders } from '../../accounts/dns-account.ts';
import { IdentityTokens } from '../../accounts/identity-tokens.ts';
import { usersOf } from '../../accounts/shoot-account.ts';
import { type ShootAccounts, shootAccounts } from '../../accounts/shoot-accounts.ts';
import type { StateOptions } from '../../accounts/state-backend.ts';
import { usedCredentials } from '../../accounts/used-credentials.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { CredentialsBinding } from '../../api/credentialsbinding.ts';
import type { Shoot } from '../../api/shoot.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { WorkloadIdentity } from '../../api/workloadidentity.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Controller, queueMetrics, runController } from '../../kube/controller.ts';
import { type ChangeEvent, Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { Registry } from '../../kube/metrics.ts';
import { CREDENTIALSBINDINGS, keyOf, SECRETS, type Secret, WORKLOADIDENTITIES } from '../../kube/resources.ts';
import { WorkQueue } from '../../kube/workqueue.ts';
import { CREDENTIALS_SELECTOR, type CredentialsWorld, reconcileCredentials } from '../credentials/controller.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { ManagedController } from './controller.ts';
import { moveEarlierRecords } from './earlier-records.ts';
import { gardenWorld } from './garden-world.ts';
import { reportLeftOver } from './left-over.ts';
import { clusterOfRecord, managedReceipts, RECORD_SELECTOR, recordIn } from './record.ts';
import type { ManagedWorld } from './world.ts';

/** What the controllers of clouds share with the others. */
export interface CloudsOptions {
  readonly garden: KubeClient;
  readonly gardenID: string;
  readonly log: Log;
  readonly metrics: Registry;
  readonly clusters: Informer<WorkerCluster>;
  readonly profiles: Informer<CloudProfile>;
  readonly kubeconfigs: Informer<Secret>;
  readonly shoots: Informer<Shoot>;
  /** Where facts about clusters are made into status. */
  readonly clusterQueue: WorkQueue;
  readonly shootQueue: WorkQueue;
  readonly state: Omit<StateOptions, 'garden'>;
  now(): Date;
  provider(profile: CloudProfile, withAccount: boolean): Provider | undefined;
  readonly openClusters: OpenClusters;
  readonly dns: DNSProviders;
  readonly record: ManagedWorld['record'];
  readonly depleted: ManagedWorld['depleted'];
}

/** The controllers of clouds, wired: caches to start, then controllers. */
export interface Clouds {
  readonly caches: readonly Informer<any>[];
  readonly managed: ManagedController;
  /** What the controller of shoots asks about accounts. */
  readonly accounts: ShootAccounts;
  /** Credentials of accounts that buckets of seeds are in. */
  readonly bucketAccounts: Pick<BucketSource, 'binding' | 'credentials'>;
  /** To be called when all caches are complete. */
  start(signal: AbortSignal): Promise<Controller[]>;
}

/** Operations take minutes and wait for the cloud all the time; how many run at once is bounded where they run, by account. */
const CLUSTERS_AT_ONCE = 256;
const OPERATION_LIMIT_MS = 3 * 3600_000;
/** Pods of a cluster come and go all the time: its status follows at this pace. */
const INSIDE_CHANGES_MS = 500;

/** Makes the controllers of managed clusters and of credentials, and has changes lead to the right keys. */
export function wireClouds(options: CloudsOptions): Clouds {
  const { garden, gardenID, log, metrics, clusters, profiles, kubeconfigs, clusterQueue, record, depleted } = options;
  const managedQueue = new WorkQueue({ observer: queueMetrics(metrics, 'managed') });
  const credentialsQueue = new WorkQueue({ observer: queueMetrics(metrics, 'credentials') });
  const bindings = new Informer<CredentialsBinding>(garden, CREDENTIALSBINDINGS, { log });
  const credentials = new Informer<Secret>(garden, SECRETS, { log, labelSelector: CREDENTIALS_SELECTOR });
  const identities = new Informer<WorkloadIdentity>(garden, WORKLOADIDENTITIES, { log });
  const { namespace } = options.state;
  // Only where no tenant writes.
  const recordSecrets = new Informer<Secret>(garden, SECRETS, { log, labelSelector: RECORD_SELECTOR, namespace });
  const records = managedReceipts(garden, namespace, recordSecrets);
  const side = {
    garden,
    gardenID,
    log,
    clusters,
    bindings,
    credentials,
    identities,
    tokens: new IdentityTokens(garden, () => options.now()),
    kubeconfigs,
    records,
    recordSecrets,
    checks: new AccountChecks(),
    openClusters: options.openClusters,
    state: { garden, ...options.state },
    now: () => options.now(),
  };
  const world = gardenWorld(side, {
    enqueue: (key) => managedQueue.add(key),
    changed: (key, inside) => (inside ? clusterQueue.addAfter(key, INSIDE_CHANGES_MS) : clusterQueue.add(key)),
    record,
    depleted,
  });
  const managed = new ManagedController(world);
  const clouds = (profile: CloudProfile) => options.provider(profile, true)?.managed;
  const credentialsWorld: CredentialsWorld = {
    ...side,
    profiles,
    clouds,
    accepted(binding) {
      const users = usersOf(binding, clusters.list(), options.shoots.list());
      for (const key of users.clusters) managed.credentialsAccepted(key);
      for (const key of users.shoots) options.shootQueue.add(key);
    },
  };
  const leftOverWorld = {
    ...world,
    profile: (name: string) => profiles.get(name),
    clouds,
    credentialsIn: (use: Parameters<typeof usedCredentials>[1], stop: AbortSignal) => usedCredentials(side, use, stop),
  };

  const usersIn = (namespace: string | undefined) => {
    credentialsQueue.add(namespace ?? '');
    for (const cluster of clusters.list()) {
      if (cluster.metadata.namespace === namespace && cluster.spec.credentialsRef) managedQueue.add(keyOf(cluster));
    }
  };
  const clusterChanged = async (event: ChangeEvent<WorkerCluster>) => {
    const key = keyOf(event.object);
    if (onlyStatusChanged(event)) return;
    if ([event.object, event.old].some((cluster) => cluster?.spec.credentialsRef || cluster?.spec.dns?.providers))
      credentialsQueue.add(event.object.metadata.namespace ?? '');
    if (event.type === 'deleted' && (await managed.forget(key))) managedQueue.add(key);
  };
  const follow = () => {
    clusters.onChange((event) => {
      clusterChanged(event).catch((error: unknown) => log.warn({ err: error }, 'a line to a cluster did not close'));
    });
    bindings.onChange((event) => {
      if (!onlyStatusChanged(event)) usersIn(event.object.metadata.namespace);
    });
    credentials.onChange((event) => usersIn(event.object.metadata.namespace));
    identities.onChange((event) => {
      if (!onlyStatusChanged(event)) usersIn(event.object.metadata.namespace);
    });
    // Of clusters that were deleted by force while no operator ran, only the record tells.
    for (const secret of recordSecrets.list()) {
      const record = recordIn(secret);
      if (record) managedQueue.add(clusterOfRecord(record));
    }
  };

  return {
    caches: [bindings, credentials, identities, recordSecrets],
    managed,
    accounts: shootAccounts(side, options.dns, profiles),
    bucketAccounts: {
      binding: (namespace, name) => bindings.get(`${namespace}/${name}`),
      credentials: (use, stop) => usedCredentials(side, use, stop),
    },
    async start(signal) {
      const { records: kept } = world;
      await moveEarlierRecords(
        {
          garden: gardenID,
          client: garden,
          namespace,
          log,
          record,
          records: kept,
          cluster: (key) => clusters.get(key),
          profile: (name) => profiles.get(name),
        },
        signal,
      );
      follow();
      return [
        runController({
          name: 'managed',
          queue: managedQueue,
          concurrency: CLUSTERS_AT_ONCE,
          timeoutMs: OPERATION_LIMIT_MS,
          log,
          metrics,
          async reconcile(key, stop) {
            const left = clusters.get(key) ? undefined : world.records.get(key);
            return left ? reportLeftOver(leftOverWorld, key, left, stop) : managed.reconcile(key, stop);
          },
        }),
        runController({
          name: 'credentials',
          queue: credentialsQueue,
          concurrency: 8,
          log,
          metrics,
          reconcile: (namespace, stop) => reconcileCredentials(credentialsWorld, namespace, stop),
        }),
      ];
    },
  };
}

import { isDeepStrictEqual } from 'node:util';
import type { Provider } from '../providers/contract.ts';
import type { DNSProviders } from './accounts/dns-account.ts';
import type { CloudProfile } from './api/cloudprofile.ts';
import type { ClusterSize } from './api/cost.ts';
import { LABELS } from './api/group.ts';
import type { Quota } from './api/quota.ts';
import type { Seed } from './api/seed.ts';
import { type Shoot, shootProfileName } from './api/shoot.ts';
import type { WorkerCluster } from './api/workercluster.ts';
import { DepletedOffers } from './capacity/depleted-offers.ts';
import { profileNamesOf } from './capacity/places.ts';
import { holdsFrom } from './clusters/deletion-gate.ts';
import { OpenClusters } from './clusters/open-clusters.ts';
import { SeedRegistry } from './clusters/seed-access.ts';
import { wireBackups } from './controllers/backup/wiring.ts';
import { reconcileCloudProfile } from './controllers/cloudprofile/controller.ts';
import { failuresOf } from './controllers/failure.ts';
import { gardenIdentity } from './controllers/garden-identity.ts';
import { machineTypesOf } from './controllers/kept-profile.ts';
import { type CloudsOptions, wireClouds } from './controllers/managed/wiring.ts';
import { byNamespace } from './controllers/quota/claimants.ts';
import { reconcileQuota } from './controllers/quota/controller.ts';
import { concernsOthers, quotaChanged, sharesChanged } from './controllers/quota/news.ts';
import { reconcileSeed } from './controllers/seed/controller.ts';
import { clusterOfSeed, seedHolds } from './controllers/seed/seed-holds.ts';
import { ShootController } from './controllers/shoot/controller.ts';
import { DNS_LOOKS } from './controllers/shoot/dns/dns-records.ts';
import { DRIFT_LOOKS } from './controllers/shoot/drift/drift.ts';
import type { ShootWorld } from './controllers/shoot/world.ts';
import { onlyStatusChanged } from './controllers/status-writer.ts';
import { reconcileWorkerCluster } from './controllers/workercluster/controller.ts';
import { clusterOfDecided, DECIDED_SELECTOR, DecidedSizes } from './controllers/workercluster/decided-sizes.ts';
import { asStated } from './controllers/workercluster/scale-default.ts';
import { noteShortages, shootIsShort } from './controllers/workercluster/shortages.ts';
import { TaskDurations } from './flow/graph.ts';
import { Applier, knownBy } from './kube/applier.ts';
import type { KubeClient } from './kube/client.ts';
import { type Controller, queueMetrics, runController } from './kube/controller.ts';
import { EventRecorder } from './kube/events.ts';
import { FairQueue } from './kube/fair-queue.ts';
import { Informer } from './kube/informer.ts';
import type { Log } from './kube/log.ts';
import type { Registry } from './kube/metrics.ts';
import {
  CLOUDPROFILES,
  type KubeObject,
  keyOf,
  QUOTAS,
  SECRETS,
  SEEDS,
  type Secret,
  SHOOTS,
  WORKERCLUSTERS,
} from './kube/resources.ts';
import type { ChangeEvent } from './kube/store.ts';
import { WorkQueue } from './kube/workqueue.ts';

export interface OperatorOptions {
  readonly garden: KubeClient;
  readonly log: Log;
  readonly metrics: Registry;
  /** The provider of a profile for somebody with or without an account there; undefined when this operator has none. */
  readonly provider: (profile: CloudProfile, withAccount?: boolean) => Provider | undefined;
  /** Who keeps DNS zones. Absent: nobody does. */
  readonly dns?: DNSProviders;
  /** Where the state of clouds is kept that have no backend of their own. */
  readonly state: CloudsOptions['state'];
  readonly now?: () => Date;
}

export interface Operator {
  /** Whether all caches are complete. */
  ready(): boolean;
  stop(): Promise<void>;
}

/** An operation may wait for nodes or for a drain; the work itself is short, so many may be under way. */
const SHOOTS_AT_ONCE = 256;
const OPERATION_LIMIT_MS = 60 * 60_000;
/** Pods of a cluster come and go all the time: its status follows at this pace. */
const INSIDE_CHANGES_MS = 500;

/** A look at who uses a profile is a look at all clusters: a thousand that come at once are worth a few, not a thousand. */
const PROFILE_USERS_MS = 100;

/** Wires the controllers to one garden and starts them. Resolves when they run. */
export async function startOperator(options: OperatorOptions, signal: AbortSignal): Promise<Operator> {
  const { garden, log, metrics, provider, state, dns = () => undefined, now = () => new Date() } = options;
  const recorder = new EventRecorder({ client: garden, component: 'coppice', log });
  const record: ShootWorld['record'] = (object, type, reason, message) =>
    recorder.record(object, type, reason, message);

  const capacity = new DepletedOffers(now);

  const queues = {
    clusters: new WorkQueue({ observer: queueMetrics(metrics, 'workercluster') }),
    shoots: new WorkQueue({ observer: queueMetrics(metrics, 'shoot') }),
    certificates: new WorkQueue({ observer: queueMetrics(metrics, 'certificates') }),
    seeds: new WorkQueue({ observer: queueMetrics(metrics, 'seed'), maxDelayMs: 15_000 }),
    profiles: new WorkQueue({ observer: queueMetrics(metrics, 'cloudprofile') }),
    quotas: new WorkQueue({ observer: queueMetrics(metrics, 'quota') }),
  };

  const clusters = new Informer<WorkerCluster>(garden, WORKERCLUSTERS, {
    log,
    indexes: byNamespace,
    transform: asStated,
  });
  const shoots = new Informer<Shoot>(garden, SHOOTS, { log, indexes: byNamespace });
  const seeds = new Informer<Seed>(garden, SEEDS, { log });
  const profiles = new Informer<CloudProfile>(garden, CLOUDPROFILES, { log });
  const quotas = new Informer<Quota>(garden, QUOTAS, { log, indexes: byNamespace });
  const kubeconfigs = new Informer<Secret>(garden, SECRETS, {
    log,
    labelSelector: `${LABELS.clusterName},${LABELS.managedBy}=coppice`,
  });
  const decidedSecrets = new Informer<Secret>(garden, SECRETS, {
    log,
    fieldSelector: DECIDED_SELECTOR,
    namespace: state.namespace,
  });
  const sizes = new DecidedSizes(garden, state.namespace, decidedSecrets);
  const gardenID = await gardenIdentity(garden, signal);
  const openClusters = new OpenClusters();
  // Who holds a cluster is one more source here.
  const holds = holdsFrom(seedHolds(seeds));
  const clouds = wireClouds({
    garden,
    gardenID,
    log,
    metrics,
    clusters,
    profiles,
    kubeconfigs,
    shoots,
    clusterQueue: queues.clusters,
    shootQueue: queues.shoots,
    state,
    now,
    provider,
    dns,
    openClusters,
    record,
    depleted: ({ cluster, profile, desired }, error) => {
      if (profile) noteShortages(capacity, { record, cluster, profile, pools: desired?.pools ?? [] }, error);
    },
  });
  const caches: Informer<any>[] = [
    clusters,
    shoots,
    seeds,
    profiles,
    quotas,
    kubeconfigs,
    decidedSecrets,
    ...clouds.caches,
  ];
  const gardenApplier = new Applier(garden, (object) =>
    knownBy(object.kind === 'Shoot' ? shoots : kubeconfigs, object),
  );

  const registry = new SeedRegistry(garden, log, (shootKey, object) => {
    queues.shoots.add(shootKey);
    shootController.partChanged(shootKey);
    if (object.kind === 'Pod') queues.certificates.add(shootKey);
  });
  const backups = wireBackups({
    source: {
      gardenID,
      directory: state.directory,
      profiles: () => profiles.list(),
      provider,
      ...clouds.bucketAccounts,
      now,
    },
    shoots,
    seeds,
    registry,
    log,
    metrics,
    record,
    told: (key) => queues.shoots.add(key),
  });
  const shootController = new ShootController({
    garden,
    workers: SHOOTS_AT_ONCE,
    gardenID,
    gardenApplier,
    shoots,
    seeds,
    profiles,
    registry,
    openClusters,
    holds,
    backups: backups.backups,
    durations: new TaskDurations(),
    log,
    now,
    provider,
    ...clouds.accounts,
    dnsTurns: new FairQueue(DNS_LOOKS),
    driftTurns: new FairQueue(DRIFT_LOOKS),
    again: (shoot) => queues.shoots.add(keyOf(shoot)),
    record,
    depleted: (shoot, error) => shootIsShort({ clusters, profiles, capacity, record }, shoot, error),
    insideChanged: (shoot, object) => {
      const key = keyOf(shoot);
      shootController.partChanged(key);
      if (object.kind === 'CertificateSigningRequest') queues.certificates.add(key);
      else queues.shoots.addAfter(key, INSIDE_CHANGES_MS);
    },
  });

  const granted = new Map<string, ClusterSize>();
  const usersOfProfile = (name: string) => {
    const users = clusters.list().filter((cluster) => profileNamesOf(cluster).includes(name));
    for (const cluster of users) queues.clusters.add(keyOf(cluster));
    for (const namespace of new Set(users.map(({ metadata }) => metadata.namespace!)))
      sharesChanged(quotas, queues.quotas, namespace);
    for (const shoot of shoots.list()) if (shootProfileName(shoot.spec) === name) queues.shoots.add(keyOf(shoot));
  };
  /** Whoever is there uses the same profile for ever: only who comes and goes is news for it, and who takes other machines. */
  const profileUsed = (event: ChangeEvent<WorkerCluster> | ChangeEvent<Shoot>, profile: string) => {
    if (event.type !== 'updated' || !isDeepStrictEqual(machineTypesOf(event.old), machineTypesOf(event.object)))
      queues.profiles.addAfter(profile, PROFILE_USERS_MS);
  };
  const onEach = <T extends KubeObject>(cache: Informer<T>, handle: (object: T, key: string) => void) =>
    cache.onChange((event) => handle(event.object, keyOf(event.object)));
  clusters.onChange((event) => {
    const { uid = '', namespace = '' } = event.object.metadata;
    queues.clusters.add(keyOf(event.object));
    for (const profile of profileNamesOf(event.object)) profileUsed(event, profile);
    if (event.type === 'deleted') granted.delete(uid);
    if (event.type === 'deleted') capacity.forget(uid);
    if (concernsOthers(event)) sharesChanged(quotas, queues.quotas, namespace);
  });
  quotas.onChange((event) => {
    if (onlyStatusChanged(event)) return;
    queues.quotas.add(keyOf(event.object));
    quotaChanged(clusters, queues.clusters, event.object.metadata.namespace ?? '');
  });
  shoots.onChange((event) => {
    const shoot = event.object;
    const key = keyOf(shoot);
    queues.clusters.add(key);
    profileUsed(event, shootProfileName(shoot.spec));
    const seedName = shoot.status?.seedName;
    // A seed is held while it hosts anything.
    if (seedName !== undefined && (event.type === 'deleted' || event.old?.status?.seedName !== seedName))
      queues.seeds.addAfter(seedName, PROFILE_USERS_MS);
    // An operation that fails says so in the status: taken for news, that would undo the queue's back-off.
    if (onlyStatusChanged(event)) return;
    if (!shoot.metadata.ownerReferences?.length) sharesChanged(quotas, queues.quotas, shoot.metadata.namespace ?? '');
    shootController.shootChanged(key, event.type === 'deleted' ? undefined : shoot);
    queues.shoots.add(key);
  });
  onEach(kubeconfigs, (_secret, key) => queues.shoots.add(key.replace(/-kubeconfig$/, '')));
  onEach(profiles, (profile, key) => {
    queues.profiles.add(key);
    usersOfProfile(profile.metadata.name);
  });
  onEach(seeds, (seed, key) => {
    queues.seeds.add(key);
    const host = clusterOfSeed(seed);
    if (host) for (const queue of [queues.clusters, queues.shoots]) queue.add(host);
    for (const shoot of shoots.list()) {
      if (!shoot.status?.seedName || shoot.status.seedName === seed.metadata.name) queues.shoots.add(keyOf(shoot));
    }
  });
  // Of a cluster that was deleted by force, too: its record goes.
  onEach(decidedSecrets, (secret) => {
    const key = clusterOfDecided(secret);
    if (key) queues.clusters.add(key);
  });
  for (const cache of caches) cache.start();
  await Promise.all(caches.map((cache) => cache.whenSynced(signal)));

  const world = {
    garden,
    gardenApplier,
    clusters,
    shoots,
    seeds,
    profiles,
    quotas,
    granted,
    capacity,
    sizes,
    decided: (cluster: WorkerCluster) => sizes.get(keyOf(cluster), cluster.metadata.uid ?? ''),
    judge: (key: string) => queues.clusters.add(key),
    registry,
    holds,
    seedBuckets: backups.seedBuckets,
    managed: clouds.managed,
    now,
    provider,
    record,
  };
  const controllers: Controller[] = [
    ...(await clouds.start(signal)),
    backups.start(),
    runController({
      name: 'cloudprofile',
      queue: queues.profiles,
      concurrency: 4,
      log,
      metrics,
      reconcile: (key, stop) => reconcileCloudProfile(world, key, stop),
      failed: failuresOf(world, profiles),
    }),
    runController({
      name: 'quota',
      queue: queues.quotas,
      concurrency: 2,
      log,
      metrics,
      reconcile: (key, stop) => reconcileQuota(world, key, stop),
      failed: failuresOf(world, quotas),
    }),
    runController({
      name: 'seed',
      queue: queues.seeds,
      concurrency: 8,
      log,
      metrics,
      reconcile: (key, stop) => reconcileSeed(world, key, stop),
      failed: failuresOf(world, seeds),
    }),
    runController({
      name: 'workercluster',
      queue: queues.clusters,
      concurrency: 32,
      log,
      metrics,
      reconcile: (key, stop) => reconcileWorkerCluster(world, key, stop),
      failed: failuresOf(world, clusters),
    }),
    runController({
      name: 'shoot',
      queue: queues.shoots,
      concurrency: SHOOTS_AT_ONCE,
      timeoutMs: OPERATION_LIMIT_MS,
      log,
      metrics,
      reconcile: (key, stop) => shootController.reconcile(key, stop),
      failed: failuresOf(world, shoots),
    }),
    runController({
      name: 'certificates',
      queue: queues.certificates,
      concurrency: 8,
      log,
      metrics,
      reconcile: (key) => shootController.certificates(key),
    }),
  ];
  log.info(
    { clusters: clusters.size, shoots: shoots.size, seeds: seeds.size, profiles: profiles.size },
    'the operator runs',
  );

  return {
    ready: () => caches.every((cache) => cache.synced && cache.lastError === undefined),
    async stop() {
      await Promise.all(controllers.map((controller) => controller.stop(1000)));
      await Promise.all([shootController.stop(), clouds.managed.stop()]);
      await backups.close();
      await registry.closeAll();
      await Promise.all(caches.map((cache) => cache.stop()));
      log.info({}, 'the operator has stopped');
    },
  };
}

import type { CloudProfile } from '../../api/cloudprofile.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { HoldsOf } from '../../clusters/deletion-gate.ts';
import type { OpenClusters } from '../../clusters/open-clusters.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Controller, queueMetrics, runController } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import type { Log } from '../../kube/log.ts';
import type { Registry } from '../../kube/metrics.ts';
import { HUBS, keyOf, MEMBERSHIPS, SECRETS, type Secret } from '../../kube/resources.ts';
import { WorkQueue } from '../../kube/workqueue.ts';
import { failuresOf } from '../failure.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { MembershipController } from './controller.ts';
import { BY_CLUSTER, clusterOf, membershipHolds } from './holds.ts';
import { reconcileHub } from './hub-controller.ts';
import { HubLines } from './hub-lines.ts';
import { MEMBERSHIP_RECORDS, membershipRecords } from './record.ts';
import { BY_HUB, type MembershipWorld } from './world.ts';

/** What the controllers of hubs and memberships share with the others. */
export interface HubsOptions extends Pick<MembershipWorld, 'now' | 'record'> {
  readonly garden: KubeClient;
  /** The operator's own, where the Secrets of hubs and all records lie. */
  readonly namespace: string;
  readonly log: Log;
  readonly metrics: Registry;
  readonly clusters: Informer<WorkerCluster>;
  readonly profiles: Informer<CloudProfile>;
  readonly openClusters: OpenClusters;
}

/** The controllers of hubs and memberships, wired. */
export interface Hubs {
  readonly caches: readonly Informer<any>[];
  /** Memberships hold their clusters. */
  readonly holds: HoldsOf;
  /** Has the listener hear of each cluster (`namespace/name`) that a membership holds or lets go. */
  onHoldsChange(listener: (cluster: string) => void): void;
  /** To be called when all caches are complete. */
  start(): Controller[];
  close(): Promise<void>;
}

/** A thousand clusters that come at once are worth a few looks at a hub's selector, not a thousand. */
const SELECT_MS = 100;
/** Counts in a hub's status follow at this pace. */
const COUNT_MS = 1_000;
const JOINS_AT_ONCE = 32;

/** Makes the controllers of hubs and memberships, and has changes lead to the right keys. */
export function wireHubs(options: HubsOptions): Hubs {
  const { garden, namespace, log, metrics, clusters, openClusters } = options;
  const queues = {
    hubs: new WorkQueue({ observer: queueMetrics(metrics, 'hub'), maxDelayMs: 30_000 }),
    memberships: new WorkQueue({ observer: queueMetrics(metrics, 'membership'), maxDelayMs: 30_000 }),
  };
  const hubs = new Informer<Hub>(garden, HUBS, { log });
  const memberships = new Informer<Membership>(garden, MEMBERSHIPS, {
    log,
    indexes: {
      [BY_CLUSTER]: (one) => [clusterOf(one)],
      [BY_HUB]: ({ spec }) => [spec.hub],
      [BY_UID]: ({ metadata }) => [metadata.uid ?? ''],
    },
  });
  const secrets = new Informer<Secret>(garden, SECRETS, { log, namespace, labelSelector: MEMBERSHIP_RECORDS });
  const byUID = (uid: string) => {
    controller.hubChanged(uid);
    for (const one of memberships.byIndex(BY_UID, uid)) queues.memberships.add(keyOf(one));
  };
  const world: MembershipWorld = {
    ...options,
    hubs,
    memberships,
    lines: new HubLines(garden, namespace, log, byUID),
    records: membershipRecords(garden, namespace, secrets),
  };
  const controller = new MembershipController(world);

  const ofCluster = (key: string) => {
    for (const one of memberships.byIndex(BY_CLUSTER, key)) queues.memberships.add(keyOf(one));
  };
  const everyHub = () => {
    for (const { metadata } of hubs.list()) queues.hubs.addAfter(metadata.name, SELECT_MS);
  };
  openClusters.onChange(ofCluster);
  clusters.onChange((event) => {
    ofCluster(keyOf(event.object));
    if (!onlyStatusChanged(event)) everyHub();
  });
  hubs.onChange((event) => {
    const { name } = event.object.metadata;
    if (!onlyStatusChanged(event)) queues.hubs.add(name);
    for (const one of memberships.byIndex(BY_HUB, name)) queues.memberships.add(keyOf(one));
  });
  memberships.onChange((event) => {
    const one = event.object;
    queues.hubs.addAfter(one.spec.hub, event.type === 'deleted' ? SELECT_MS : COUNT_MS);
    if (!onlyStatusChanged(event)) queues.memberships.add(keyOf(one));
    // All hubs that a cluster leaves reach each stage together.
    for (const sibling of memberships.byIndex(BY_CLUSTER, clusterOf(one)))
      if (sibling.metadata.deletionTimestamp && sibling.metadata.uid !== one.metadata.uid)
        queues.memberships.add(keyOf(sibling));
  });

  return {
    caches: [hubs, memberships, secrets],
    holds: membershipHolds(memberships),
    onHoldsChange(listener) {
      memberships.onChange((event) => {
        const waits = (one: Membership | undefined) => one?.status?.waiting;
        const isNews = event.type !== 'updated' || waits(event.old) !== waits(event.object);
        if (isNews) listener(clusterOf(event.object));
      });
    },
    start: () => [
      runController({
        name: 'hub',
        queue: queues.hubs,
        concurrency: 4,
        log,
        metrics,
        reconcile: (key, stop) => reconcileHub(world, key, stop),
        failed: failuresOf(world, hubs),
      }),
      runController({
        name: 'membership',
        queue: queues.memberships,
        concurrency: JOINS_AT_ONCE,
        log,
        metrics,
        reconcile: (key, stop) => controller.reconcile(key, stop),
        failed: failuresOf(world, memberships),
      }),
    ],
    close: () => world.lines.closeAll(),
  };
}

/** Index of memberships by their UID, which what is made for them is labelled with. */
const BY_UID = 'uid';

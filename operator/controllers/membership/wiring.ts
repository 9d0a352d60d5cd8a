import { isTrue } from '../../api/conditions.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import type { HoldsOf, SleepHoldsOf } from '../../clusters/deletion-gate.ts';
import { Informer } from '../../kube/informer.ts';
import { HUBS, keyOf, MEMBERSHIPS, SECRETS, type Secret } from '../../kube/resources.ts';
import { type Core, type Part, workersOfNamespace } from '../core.ts';
import { failuresOf } from '../failure.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { MembershipController } from './controller.ts';
import { BY_HUB, type MembershipDependencies } from './dependencies.ts';
import { BY_CLUSTER, clusterOf, membershipHolds, membershipsAwake } from './holds.ts';
import { HubConnections } from './hub-connections.ts';
import { reconcileHub } from './hub-controller.ts';
import { MEMBERSHIP_RECEIPTS, membershipReceipts } from './receipt.ts';

/** What the controllers of hubs and memberships need of the others. */
export type HubsCore = Pick<
  Core,
  | 'garden'
  | 'gardenID'
  | 'state'
  | 'log'
  | 'clusters'
  | 'profiles'
  | 'provider'
  | 'openClusters'
  | 'now'
  | 'recordEvent'
  | 'queue'
  | 'queues'
>;

/** The controllers of hubs and memberships, wired. */
export interface Hubs extends Part {
  /** Hubs and memberships as they are known, and connections to hubs. */
  readonly deps: Pick<MembershipDependencies, 'hubs' | 'memberships' | 'connections'>;
  /** Memberships hold their clusters. */
  readonly holds: HoldsOf;
  /** And have them wait before they sleep. */
  readonly keepsAwake: SleepHoldsOf;
}

/** A thousand clusters that come at once are worth a few looks at a hub's selector, not a thousand. */
const SELECT_MS = 100;
/** Counts in a hub's status follow at this pace. */
const COUNT_MS = 1_000;
const JOINS_AT_ONCE = 32;
/** A hub or a cluster that is back is noticed by then. */
const LONGEST_DELAY_MS = 30_000;

/** Makes the controllers of hubs and memberships, and has changes lead to the right keys. */
export function wireHubs(core: HubsCore): Hubs {
  const { garden, log, clusters, openClusters } = core;
  const { namespace } = core.state;
  const queues = {
    hubs: core.queue('hub', { maxDelayMs: LONGEST_DELAY_MS }),
    memberships: core.queue('membership', {
      maxDelayMs: LONGEST_DELAY_MS,
      perNamespace: workersOfNamespace(JOINS_AT_ONCE),
    }),
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
  const secrets = new Informer<Secret>(garden, SECRETS, { log, namespace, labelSelector: MEMBERSHIP_RECEIPTS });
  const byUID = (uid: string) => {
    controller.hubChanged(uid);
    for (const one of memberships.byIndex(BY_UID, uid)) queues.memberships.add(keyOf(one));
  };
  const deps: MembershipDependencies = {
    ...core,
    hubs,
    memberships,
    connections: new HubConnections(garden, namespace, log, byUID),
    receipts: membershipReceipts(garden, namespace, secrets),
  };
  const controller = new MembershipController(deps);

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
    // How many members it has is no news for each of them.
    else if (event.type === 'updated' && isReady(event.old) === isReady(event.object)) return;
    for (const one of memberships.byIndex(BY_HUB, name)) queues.memberships.add(keyOf(one));
  });
  memberships.onChange((event) => {
    const one = event.object;
    queues.hubs.addAfter(one.spec.hub, event.type === 'deleted' ? SELECT_MS : COUNT_MS);
    if (!onlyStatusChanged(event)) queues.memberships.add(keyOf(one));
    const waits = ({ metadata, status }: Membership) => metadata.deletionTimestamp && status?.waiting;
    // What the gate before a deletion says, and when it opens.
    if (event.type === 'deleted' || (event.type === 'updated' && waits(event.old) !== waits(one)))
      for (const queue of [core.queues.clusters, core.queues.shoots]) queue.add(clusterOf(one));
    const sleeps = ({ status }: Membership) => status?.state === 'Asleep';
    if (event.type === 'updated' && sleeps(event.old) !== sleeps(one)) core.queues.clusters.add(clusterOf(one));
    // All hubs that a cluster leaves reach each stage together.
    for (const sibling of memberships.byIndex(BY_CLUSTER, clusterOf(one)))
      if (sibling.metadata.deletionTimestamp && sibling.metadata.uid !== one.metadata.uid)
        queues.memberships.add(keyOf(sibling));
  });

  return {
    deps,
    caches: [hubs, memberships, secrets],
    holds: membershipHolds(memberships),
    keepsAwake: membershipsAwake(memberships, hubs),
    controllers: [
      {
        name: 'hub',
        queue: queues.hubs,
        concurrency: 4,
        reconcile: (key, stop) => reconcileHub(deps, key, stop),
        failed: failuresOf(core, hubs),
      },
      {
        name: 'membership',
        queue: queues.memberships,
        concurrency: JOINS_AT_ONCE,
        reconcile: (key, stop) => controller.reconcile(key, stop),
        failed: failuresOf(core, memberships),
      },
    ],
    close: () => deps.connections.closeAll(),
  };
}

const isReady = ({ status }: Hub): boolean => isTrue(status?.conditions, 'Ready');

/** Index of memberships by their UID, which what is made for them is labelled with. */
const BY_UID = 'uid';

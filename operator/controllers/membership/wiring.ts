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

/** The part of Core that controllers of hubs and memberships need. */
type HubsCore = Pick<
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

/** The wired controllers of hubs and memberships. */
export interface Hubs extends Part {
  /** Known hubs and memberships, and connections to hubs. */
  readonly deps: Pick<MembershipDependencies, 'hubs' | 'memberships' | 'connections'>;
  /** Holds of memberships on clusters. */
  readonly holds: HoldsOf;
  /** Wake holds of memberships. */
  readonly keepsAwake: SleepHoldsOf;
}

/** Delay that groups selector checks of many new clusters. */
const SELECT_MS = 100;
/** Interval of updating counts in a hub's status. */
const COUNT_MS = 1_000;
const JOINS_AT_ONCE = 32;
/** Longest back-off until a returned hub or cluster is noticed. */
const LONGEST_DELAY_MS = 30_000;

/** Creates the controllers of hubs and memberships, and routes changes to their keys. */
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
    // Counts in the hub's status do not matter to members.
    else if (event.type === 'updated' && isReady(event.old) === isReady(event.object)) return;
    for (const one of memberships.byIndex(BY_HUB, name)) queues.memberships.add(keyOf(one));
  });
  memberships.onChange((event) => {
    const one = event.object;
    queues.hubs.addAfter(one.spec.hub, event.type === 'deleted' ? SELECT_MS : COUNT_MS);
    if (!onlyStatusChanged(event)) queues.memberships.add(keyOf(one));
    const waits = ({ metadata, status }: Membership) => metadata.deletionTimestamp && status?.waiting;
    // Changes of the deletion gate's text, and its opening.
    if (event.type === 'deleted' || (event.type === 'updated' && waits(event.old) !== waits(one)))
      for (const queue of [core.queues.clusters, core.queues.shoots]) queue.add(clusterOf(one));
    const sleeps = ({ status }: Membership) => status?.state === 'Asleep';
    if (event.type === 'updated' && sleeps(event.old) !== sleeps(one)) core.queues.clusters.add(clusterOf(one));
    // All hubs of a leaving cluster reach each stage together.
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

/** Index of memberships by UID, which labels contain. */
const BY_UID = 'uid';

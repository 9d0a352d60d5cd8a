import type { BurstPolicy } from '../../api/burstpolicy.ts';
import { isTrue } from '../../api/conditions.ts';
import { ADMISSION_FIELD_MANAGER, LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { Membership } from '../../api/membership.ts';
import { hubType } from '../../hubs/index.ts';
import { Informer } from '../../kube/informer.ts';
import { BURSTPOLICIES } from '../../kube/resources.ts';
import type { Core, Part } from '../core.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { readerOf } from '../membership/two-sides.ts';
import type { Hubs } from '../membership/wiring.ts';
import type { Quotas } from '../quota/wiring.ts';
import { onlyStatusChanged } from '../status-writer.ts';
import { reconcileBurst } from './controller.ts';
import { DemandWatches } from './demand-watches.ts';
import { type BurstDependencies, burstReceipts } from './dependencies.ts';
import { gardenWorld } from './garden-world.ts';
import { hearHub } from './hear-hub.ts';
import { BurstMemory } from './memory.ts';
import { policyMetrics } from './policy-metrics.ts';
import { ToldByHubs } from './told.ts';

const HUBS_AT_ONCE = 4;
const LONGEST_DELAY_MS = 30_000;

/** The part of Core that the controller of BurstPolicies needs. */
type BurstCore = Pick<
  Core,
  | 'garden'
  | 'log'
  | 'state'
  | 'clusters'
  | 'shoots'
  | 'profiles'
  | 'quotas'
  | 'provider'
  | 'openClusters'
  | 'metrics'
  | 'decided'
  | 'sizes'
  | 'capacity'
  | 'now'
  | 'recordEvent'
  | 'queue'
>;

/** Progress of a join, as far as policies react to it. */
const standing = ({ status }: Membership): string => `${status?.state} ${isTrue(status?.conditions, 'Warm')}`;

const isReady = ({ status }: Hub): boolean => isTrue(status?.conditions, 'Ready');

/** Creates the controller of BurstPolicies. Keys are hubs: policies of one hub decide in order. */
export function wireBurst(
  core: BurstCore,
  { deps: hubs }: Pick<Hubs, 'deps'>,
  { granted }: Pick<Quotas, 'granted'>,
): Part {
  const { garden, log, clusters } = core;
  const queue = core.queue('burst', { maxDelayMs: LONGEST_DELAY_MS });
  const policies = new Informer<BurstPolicy>(garden, BURSTPOLICIES, {
    log,
    indexes: { [BY_HUB]: ({ spec }) => [spec.hub] },
  });
  const endMetrics = policyMetrics(core.metrics, policies);
  const memory = new BurstMemory();
  const told = new ToldByHubs();
  const watches = new DemandWatches(log, (hub) => queue.add(hub));
  const asked = new DemandWatches(log, (hub) => queue.add(hub));
  const open = async ({ metadata: { name }, spec, status }: Hub, signal: AbortSignal) =>
    (await hubs.connections.open(name, spec, status?.clusterIdentity, signal)).client;
  const deps: BurstDependencies = {
    ...core,
    granted,
    policies,
    hubs: hubs.hubs,
    memberships: hubs.memberships,
    receipts: burstReceipts(garden, core.state.namespace),
    async hear(hub, signal) {
      const { spec, status, metadata } = hub;
      const { name } = metadata;
      const type = hubType(spec.type);
      if (!type?.demand) return { demands: undefined };
      const client = await open(hub, signal);
      if (type.demandWatch) watches.follow(name, client, type.demandWatch);
      if (type.askWatch) asked.follow(name, client, type.askWatch);
      const { demands = [], placed, asking } = await hearHub(type, readerOf(client, signal), spec, name);
      const once = told.once(name, status?.clusterIdentity ?? name, demands, core.now().getTime());
      return { demands: once, placed, asking };
    },
    async placedWork(hub, member, signal) {
      const type = hubType(hub.spec.type);
      if (!type?.placedWork) return undefined;
      return type.placedWork(readerOf(await open(hub, signal), signal), hub.spec, member);
    },
    async asksOf(hub, signal) {
      const type = hubType(hub.spec.type);
      if (!type?.asks) return undefined;
      const client = await open(hub, signal);
      const { name } = hub.metadata;
      if (type.askWatch) asked.follow(name, client, type.askWatch);
      return type.asks(readerOf(client, signal), hub.spec, name);
    },
    async writeStatus(hub, { resource, object }, signal) {
      const client = await open(hub, signal);
      await client.apply(object, { resource, subresource: 'status', fieldManager: ADMISSION_FIELD_MANAGER, signal });
    },
  };
  // Without a policy a hub's questions are answered too, or its work would wait for ever.
  hubs.hubs.onChange((event) => {
    const { metadata, spec } = event.object;
    const isNews = event.type !== 'updated' || isReady(event.old) !== isReady(event.object);
    if (isNews && hubType(spec.type)?.asks) queue.add(metadata.name);
  });
  policies.onChange((event) => {
    if (!onlyStatusChanged(event)) queue.add(event.object.spec.hub);
  });
  // A policy's cluster that appears or disappears changes room and money.
  clusters.onChange((event) => {
    const { namespace, labels } = event.object.metadata;
    const policy = labels?.[LABELS.burstPolicy];
    const found = policy === undefined ? undefined : policies.get(`${namespace}/${policy}`);
    if (found && !onlyStatusChanged(event)) queue.add(found.spec.hub);
  });
  // A joined cluster is room, or must be put to sleep: act at once.
  hubs.memberships.onChange((event) => {
    if (event.type !== 'updated' || standing(event.old) === standing(event.object)) return;
    const { spec } = event.object;
    if (policies.byIndex(BY_HUB, spec.hub).length > 0) queue.add(spec.hub);
  });
  return {
    caches: [policies],
    controllers: [
      {
        name: 'burst',
        queue,
        concurrency: HUBS_AT_ONCE,
        reconcile: async (hub, stop) => {
          const { requeueAfterMs } = await reconcileBurst(gardenWorld(deps), memory, hub, stop);
          if (policies.byIndex(BY_HUB, hub).length === 0 || !deps.hubs.get(hub)) await watches.forget(hub);
          if (!deps.hubs.get(hub)) await asked.forget(hub);
          return requeueAfterMs === undefined ? {} : { requeueAfterMs };
        },
      },
    ],
    close: async () => {
      endMetrics();
      await Promise.all([watches.close(), asked.close()]);
    },
  };
}

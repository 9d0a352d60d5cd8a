import { errorText } from '../../api/errors.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { BurstReceipt } from '../../burst/clusters/receipt.ts';
import { readReceipt, type StoredReceipt, storedReceipt } from '../../burst/clusters/stored-receipt.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { BURSTPOLICIES, keyOf, WORKERCLUSTERS } from '../../kube/resources.ts';
import { daemonsOf } from '../autoscaling/nodes-seen.ts';
import { tellFailure } from '../failure.ts';
import { hold } from '../finalizer.ts';
import { noteInterrupted } from '../interrupted-offers.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import { claimantsIn, heldBy } from '../quota/claimants.ts';
import { writeStatus } from '../status-writer.ts';
import { arrivalFailureOf } from './arrival.ts';
import { countsOf } from './counted.ts';
import type { BurstDependencies, BurstSightDependencies } from './dependencies.ts';
import {
  countedPools,
  emptyingIn,
  gardenMemberOf,
  grownNow,
  isMoving,
  lackingPods,
  membersOf,
  movableIn,
  nameIn,
  readyNodes,
  reserveOf,
  roomIn,
  sightOf,
  sleepsBySpec,
  waitingPods,
  workOn,
} from './garden-sight.ts';
import { hubWorkOf } from './hub-work.ts';
import { endedIn, freshIn, tellDecisions, tellOutcomes } from './tell-outcomes.ts';
import { toldStatus } from './told-status.ts';
import type { BurstActs, BurstSight, BurstWorld } from './world.ts';

/**
 * Expected DaemonSets of a new cluster: those of the bought member (else any member) of the hub whose DaemonSets take
 * most CPU. Agents are installed by the hub or by others, and unknown before.
 */
type SiblingDaemons = () => readonly FitPod[];

/** Computed on first use, for one cycle: scans all pods of all members. */
function siblingDaemons(deps: BurstSightDependencies, hub: Hub): SiblingDaemons {
  let found: readonly FitPod[] | undefined;
  return () => {
    found ??= daemonsOfSiblings(deps, hub);
    return found;
  };
}

function daemonsOfSiblings(deps: BurstSightDependencies, hub: Hub): FitPod[] {
  const members = deps.memberships.byIndex(BY_HUB, hub.metadata.name).flatMap((membership) => {
    const cluster = deps.clusters.get(clusterOf(membership));
    const open = deps.openClusters.get(clusterOf(membership));
    if (membership.status?.state !== 'Joined' || !cluster || !open) return [];
    const daemons = daemonsOf(open.pods.list());
    const cpu = daemons.reduce((sum, { requests }) => sum + requests.cpu, 0);
    return [{ daemons, cpu, isBought: cluster.metadata.labels?.[LABELS.burst] === 'true' }];
  });
  const bought = members.filter(({ isBought }) => isBought);
  const most = (bought.length > 0 ? bought : members).sort((a, b) => b.cpu - a.cpu)[0];
  return most?.daemons ?? [];
}

/** World of a garden for one cycle: caches, hubs and API server. */
export const gardenWorld = (deps: BurstDependencies): BurstWorld => ({ ...gardenSight(deps), ...gardenActs(deps) });

/** Timeout of a hub. */
const ANSWER_MS = 30_000;

const inTime = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);

/** Observations of a garden for one cycle. */
export function gardenSight(deps: BurstSightDependencies): BurstSight {
  const daemons = new Map<string, SiblingDaemons>();
  const daemonsIn = (hub: Hub): SiblingDaemons => {
    const known = daemons.get(hub.metadata.name) ?? siblingDaemons(deps, hub);
    daemons.set(hub.metadata.name, known);
    return known;
  };
  return {
    now: () => deps.now(),
    policies: deps.policies,
    hubs: deps.hubs,
    clusters: deps.clusters,
    profiles: deps.profiles,
    quotas: deps.quotas,
    capacity: deps.capacity,
    claimants: (namespace) => claimantsIn(deps, namespace),
    heldBy: (cluster) => heldBy(deps, cluster),
    decided: (cluster) => deps.decided(cluster),
    sleepOrder: (key, uid) => deps.sizes.sleepOrder(key, uid),
    async hear(hub, signal) {
      const { demands, placed, asking } = await deps.hear(hub, inTime(signal));
      const unread = (demands ?? []).flatMap(({ source, namespace, problem }) =>
        problem === undefined ? [] : [{ source, namespace, problem }],
      );
      return { demands, work: (waits, now) => hubWorkOf(demands ?? [], waits, now), unread, placed, asking };
    },
    asksOf: async (hub, signal) => deps.asksOf?.(hub, inTime(signal)),
    members: (hub) => membersOf(deps, hub),
    member: (hub, cluster) => gardenMemberOf(deps, hub, cluster),
    nameIn: (hub, cluster) => nameIn(deps, hub, cluster),
    workOn: (hub, cluster) => workOn(deps, hub, cluster),
    keeps: (hub, cluster, profile) => ({
      reserve: reserveOf(deps, cluster, profile),
      daemons: daemonsIn(hub)(),
      counts: countsOf(hub),
    }),
    room: (hub, cluster) => roomIn(deps, hub, cluster),
    pending: (cluster) => waitingPods(deps, cluster),
    lacking: (cluster) => lackingPods(deps, cluster),
    pools: (hub, cluster, growths) => countedPools(deps, hub, cluster, growths),
    poolNow: (growth) => grownNow(deps, growth, deps.now().getTime()),
    sight: (policy, cluster) => sightOf(deps, policy, cluster),
    failure: arrivalFailureOf,
    readyNodes: (cluster) => readyNodes(deps, cluster),
    sleepsBySpec: (hub, cluster) => sleepsBySpec(deps, hub, cluster),
    movable: (hub, cluster, signal) => movableIn(deps, hub, cluster, signal),
    emptying: (hub, cluster) => emptyingIn(deps, hub, cluster),
    isMoving: (hub) => isMoving(deps, hub),
    async whyRefused(cluster, signal) {
      try {
        await deps.garden.create(cluster, { dryRun: true, signal });
        return undefined;
      } catch (error) {
        if (signal.aborted) throw error;
        return error instanceof KubeApiError && error.isAlreadyExists ? undefined : errorText(error);
      }
    },
    live: (name, namespace, signal) =>
      deps.garden.getOrUndefined<WorkerCluster>(WORKERCLUSTERS, name, namespace, { signal }),
    claims: (policy) => deps.claims?.(policy) ?? false,
  };
}

/** Stored receipts, converted to the form used in decisions. */
export function keptReceipts(stored: BurstDependencies['receipts']): BurstActs['receipts'] {
  /** Stored form of each receipt. */
  const forms = new WeakMap<BurstReceipt, StoredReceipt>();
  const formOf = (receipt: BurstReceipt): StoredReceipt => {
    const form = forms.get(receipt) ?? storedReceipt(receipt);
    forms.set(receipt, form);
    return form;
  };
  return {
    async read(key, signal) {
      const form = await stored.read(key, signal);
      const receipt = form && readReceipt(form);
      if (form && receipt) forms.set(receipt, form);
      return receipt;
    },
    madeFrom(next, before) {
      stored.madeFrom(formOf(next), before && formOf(before));
      return next;
    },
    save: (key, receipt, before, signal) => stored.save(key, formOf(receipt), formOf(before), signal),
    remove: (key, signal) => stored.remove(key, signal),
  };
}

function gardenActs(deps: BurstDependencies): BurstActs {
  const { garden, clusters } = deps;
  return {
    receipts: keptReceipts(deps.receipts),
    hold: (policy, isHeld, signal) => hold(deps, BURSTPOLICIES, deps.policies, policy, isHeld, { signal }),
    async create(cluster, signal) {
      clusters.absorb(await garden.create(cluster, { signal }));
    },
    async patch({ metadata: { name, namespace } }, patch, signal) {
      clusters.absorb(await garden.mergePatch(WORKERCLUSTERS, name, namespace, patch, { signal }));
    },
    async delete({ metadata: { name, namespace, uid } }, signal) {
      await garden.delete(WORKERCLUSTERS, name, namespace, { signal, preconditions: { ...(uid && { uid }) } });
    },
    async decide(decision, signal) {
      await deps.sizes.decide(decision, signal);
    },
    orderSleep: (key, uid, order, signal) => deps.sizes.orderSleep(key, uid, order, signal),
    // In pools that Coppice sizes the autoscaler does this.
    noteInterruptions(bought) {
      for (const cluster of bought) {
        const nodes = deps.openClusters.get(keyOf(cluster))?.nodes.list();
        if (nodes) noteInterrupted(deps, cluster, nodes);
      }
    },
    told(policy, before, after) {
      tellDecisions(deps, policy, freshIn(before, after));
      tellOutcomes(deps, policy, endedIn(before, after));
    },
    async tell(policy, outcome, signal) {
      await writeStatus(garden, deps.policies, policy, toldStatus(deps, policy, outcome), signal);
    },
    fail: (policy, error) => tellFailure(deps, deps.policies, policy, error),
    answer: async (hub, part, signal) => deps.writeStatus?.(hub, part, signal),
    recordEvent: deps.recordEvent,
  };
}

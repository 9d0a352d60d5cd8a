import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { PlannedNodes, Supply, WarmCluster } from '../../burst/clusters/model.ts';
import { nodesOf } from '../../burst/clusters/offer.ts';
import type { NodesPurchase } from '../../burst/clusters/purchases.ts';
import { soldOutOf } from '../../burst/clusters/sold-out.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import { keyOf } from '../../kube/resources.ts';
import { isAsleep } from '../membership/member.ts';
import { nodesUntil } from './arrival.ts';
import type { PoolSeen } from './seen.ts';
import { whereItComes } from './where-it-comes.ts';
import type { BurstSight } from './world.ts';

/** A cluster that some policy has bought and that is not on its way out, as it is or as it will be made. */
export interface Bought {
  readonly key: string;
  readonly cluster: WorkerCluster;
  /** RFC 3339; undefined: it is still to join. */
  readonly joinedAt: string | undefined;
  /** It has room by what is seen here, and its hub places nothing there. */
  readonly isUseless: boolean;
  /** Its work is being moved away: it is closed in the hub. */
  readonly isEmptying: boolean;
}

/** Clusters that take work of the hub, and those that are on their way; with nodes that were ordered for them. */
export function supplyOf(
  world: BurstSight,
  hub: Hub,
  bought: readonly Bought[],
  growths: readonly NodesPurchase[],
  now: number,
): Supply[] {
  const byKey = new Map(bought.map((one) => [one.key, one]));
  const joined = world.members(hub).flatMap((cluster): Supply[] => {
    const key = keyOf(cluster);
    // Its nodes go in a moment.
    if (isAsleep(cluster) && !byKey.has(key)) return [];
    const own = byKey.get(key);
    byKey.delete(key);
    // Its room would keep work waiting for ever, and the cluster with it.
    if (own?.isUseless || own?.isEmptying) return [];
    const nodes = world.room(hub, cluster);
    const settled =
      own?.joinedAt !== undefined && nodesUntil(own.joinedAt, nodes.length > 0, world.failure(cluster)) <= now;
    const pools = world.pools(hub, cluster, growths);
    const grown = ordered((pools ?? []).filter(({ decidedAt }) => decidedAt !== undefined));
    const isCounted = new Set(grown.map(({ template }) => template.id));
    const made = own && !settled ? missing(plannedOf(world, hub, cluster), nodes) : [];
    const planned = [...made.filter(({ template }) => !isCounted.has(template.id)), ...grown];
    const pending = planned.length > 0 ? world.pending(cluster) : [];
    const member = world.member(hub, cluster);
    return [{ cluster: key, member, nodes, planned, ...(planned.length > 0 && { pending }) }];
  });
  const coming = [...byKey.values()].map(
    ({ key, cluster, joinedAt }): Supply => ({
      cluster: key,
      member: world.member(hub, cluster),
      nodes: [],
      // One that was in the hub and is not now is asleep, or has lost its connection: its room is none.
      planned: joinedAt === undefined ? plannedOf(world, hub, cluster, world.decided(cluster)) : [],
    }),
  );
  return [...joined, ...coming];
}

/** What a cluster takes that the hub has not opened yet. */
export const supplyIn = (world: BurstSight, hub: Hub, cluster: WorkerCluster): Supply => ({
  cluster: keyOf(cluster),
  member: world.member(hub, cluster),
  nodes: world.room(hub, cluster),
  planned: [],
});

/** What a cluster takes that sleeps, when it is awake: without pools that are known to be sold out, by which it may not come at all. */
export function awake(
  world: BurstSight,
  hub: Hub,
  cluster: WorkerCluster,
  now: number,
): Pick<WarmCluster, 'supply' | 'problem'> {
  const capacity = world.capacity.known(cluster.metadata);
  const { pools, problem } = soldOutOf(cluster, (name) => world.profiles.get(name), capacity, new Date(now));
  const supply = {
    cluster: keyOf(cluster),
    member: world.member(hub, cluster),
    nodes: [],
    planned: plannedOf(world, hub, cluster, world.decided(cluster)).filter(({ template }) => !pools.has(template.id)),
  };
  return { supply, problem };
}

/** @param decided what it is to have besides the minimums of its pools. Absent: nothing. */
function plannedOf(world: BurstSight, hub: Hub, written: WorkerCluster, decided: Decided = 'none'): PlannedNodes[] {
  const there = whereItComes(world, written);
  if (!there) return [];
  const { cluster, profile } = there;
  const member = world.member(hub, cluster);
  return nodesOf({ cluster, profile, decided, member, ...world.keeps(hub, cluster, profile) });
}

/** What of the plan is not among the nodes that are there. */
function missing(planned: readonly PlannedNodes[], nodes: Supply['nodes']): PlannedNodes[] {
  const pools = nodes.map(({ node }) => node.labels[LABELS.pool]);
  // Nodes that do not say of which pool they are may be of any.
  const unnamed = pools.filter((pool) => pool === undefined).length;
  return planned.flatMap(({ template, count }) => {
    const left = count - pools.filter((pool) => pool === template.id).length - unnamed;
    return left > 0 ? [{ template, count: left }] : [];
  });
}

/** Nodes that were ordered for these pools, and are still to come. */
const ordered = (pools: readonly PoolSeen[]): PlannedNodes[] =>
  pools.flatMap(({ count, ready, template, isLate: late }) =>
    template && !late && count > ready ? [{ template, count: count - ready }] : [],
  );

import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { PlannedNodes, Supply, WarmCluster } from '../../burst/clusters/model.ts';
import { offeredNodesOf } from '../../burst/clusters/offer.ts';
import type { NodesPurchase } from '../../burst/clusters/purchases.ts';
import { soldOutOf } from '../../burst/clusters/sold-out.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import { keyOf } from '../../kube/resources.ts';
import { isAsleep } from '../membership/member.ts';
import { nodesUntil } from './arrival.ts';
import type { PoolSeen } from './seen.ts';
import { whereItComes } from './where-it-comes.ts';
import type { BurstSight } from './world.ts';

/** A cluster bought by any policy that is not leaving, existing or planned. */
export interface Bought {
  readonly key: string;
  readonly cluster: WorkerCluster;
  /** RFC 3339; undefined: it has yet to join. */
  readonly joinedAt: string | undefined;
  /** It has room as observed here, but its hub places nothing there. */
  readonly isUseless: boolean;
  /** It is being emptied, and closed in the hub. */
  readonly isEmptying: boolean;
}

/** Open and expected clusters of the hub, with ordered nodes. */
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
    // Its nodes are about to go.
    if (isAsleep(cluster) && !byKey.has(key)) return [];
    const own = byKey.get(key);
    byKey.delete(key);
    // Its room would keep work waiting for ever, and itself alive.
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
      // A cluster that left its hub sleeps or lost its connection: no planned room.
      planned: joinedAt === undefined ? plannedOf(world, hub, cluster, world.decided(cluster)) : [],
    }),
  );
  return [...joined, ...coming];
}

/** Room of a cluster that the hub has not opened yet. */
export const supplyIn = (world: BurstSight, hub: Hub, cluster: WorkerCluster): Supply => ({
  cluster: keyOf(cluster),
  member: world.member(hub, cluster),
  nodes: world.room(hub, cluster),
  planned: [],
});

/** Room of a sleeping cluster when awake, without known sold-out pools; and why it may not come. */
export function awakeSupply(
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

/** @param decided sizes beyond the pools' minimums. Absent: none */
function plannedOf(world: BurstSight, hub: Hub, written: WorkerCluster, decided: Decided = 'none'): PlannedNodes[] {
  const there = whereItComes(world, written);
  if (!there) return [];
  const { cluster, profile } = there;
  const member = world.member(hub, cluster);
  return offeredNodesOf({ cluster, profile, decided, member, ...world.keeps(hub, cluster, profile) });
}

/** Planned nodes that do not exist yet. */
function missing(planned: readonly PlannedNodes[], nodes: Supply['nodes']): PlannedNodes[] {
  const pools = nodes.map(({ node }) => node.labels[LABELS.pool]);
  // Nodes without a pool label may belong to any pool.
  const unnamed = pools.filter((pool) => pool === undefined).length;
  return planned.flatMap(({ template, count }) => {
    const left = count - pools.filter((pool) => pool === template.id).length - unnamed;
    return left > 0 ? [{ template, count: left }] : [];
  });
}

/** Ordered nodes of these pools. */
const ordered = (pools: readonly PoolSeen[]): PlannedNodes[] =>
  pools.flatMap(({ count, ready, template, isLate: late }) =>
    template && !late && count > ready ? [{ template, count: count - ready }] : [],
  );

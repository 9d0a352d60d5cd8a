import type { Supply } from '../burst/clusters/model.ts';
import { offerOf } from '../burst/clusters/offer.ts';
import { nodesUntil } from '../controllers/burst/arrival.ts';
import { isAsleep } from '../controllers/membership/member.ts';
import { growingPools } from './growth.ts';
import { alikeTo } from './kinds.ts';
import { memberOf, offerInputs } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import type { ClusterState, Simulation } from './state.ts';

/** Clusters that take work of the hub: all that serve; and bought ones that are on their way. */
export function supplyOf(simulation: Simulation, rehearsed: RehearsedPolicy): Supply[] {
  return [...simulation.clusters.values()]
    .filter(
      ({ key, object }) =>
        object && !object.metadata.deletionTimestamp && !isAsleep(object) && !simulation.work!.isClosed(key),
    )
    .map((cluster) => supplyIn(simulation, rehearsed, cluster));
}

/** What a cluster takes, whether its hub has opened it or not. */
export function supplyIn(simulation: Simulation, { receipt }: RehearsedPolicy, cluster: ClusterState): Supply {
  const now = simulation.epoch + simulation.now;
  const { key, object, profile, serves } = cluster;
  const purchase = receipt.purchases.find(({ name }) => cluster.candidate !== undefined && key.endsWith(`/${name}`));
  const { joinedAt } = purchase ?? {};
  const isComing =
    purchase !== undefined && (joinedAt === undefined || nodesUntil(object!, joinedAt, cluster.nodes.size > 0) > now);
  const isWoken = cluster.sleepOrder?.asleep === false;
  return {
    cluster: key,
    // What the hub will see of one that is to come.
    member: { ...memberOf(object!, profile), ...(!serves && { alike: alikeTo(simulation, cluster.candidate) }) },
    nodes: nodesOf(simulation, cluster),
    planned: together([...(isComing || isWoken ? missing(cluster) : []), ...ordered(cluster)]),
  };
}

function nodesOf({ work }: Simulation, cluster: ClusterState): Supply['nodes'] {
  return [...cluster.nodes.keys()].flatMap((name) => {
    const there = work!.room.node(work!.nameOf(cluster.key, name));
    if (!there) return [];
    const pods = [...there.pods].flatMap(([pod, count]) => Array.from({ length: count }, () => pod));
    return [{ node: { ...there.node, name }, pods }];
  });
}

/** Of each pool once. */
function together(planned: Supply['planned']): Supply['planned'] {
  const byPool = new Map<string, Supply['planned'][number]>();
  for (const one of planned) {
    const { id } = one.template;
    byPool.set(id, { ...one, count: one.count + (byPool.get(id)?.count ?? 0) });
  }
  return [...byPool.values()];
}

/** Nodes of pools that are Coppice's to size, and that are still to come; what comes with a cluster that was bought counts with that. */
function ordered(cluster: ClusterState): Supply['planned'] {
  const { object, profile, pools, serves } = cluster;
  const growing = growingPools(cluster);
  if (!object || !profile || !serves || growing.length === 0) return [];
  const offered = offerOf(offerInputs(object, profile, { currency: '' })).pools;
  return growing.flatMap(({ name, count, minimum }) => {
    const template = offered.find((one) => one.name === name)?.template;
    const ready = pools.get(name)?.ready ?? 0;
    const coming = count - Math.max(ready, cluster.candidate === undefined ? 0 : minimum);
    return template && coming > 0 ? [{ template, count: coming }] : [];
  });
}

/** Nodes of the minimums of its pools that are not Ready yet: of what it was bought with, what was not given back. */
function missing(cluster: ClusterState): Supply['planned'] {
  const { object, profile, pools } = cluster;
  if (!object || !profile) return [];
  const offered = offerOf(offerInputs(object, profile, { currency: '' })).pools;
  return offered.flatMap(({ name, template, minimum }) => {
    const count = minimum - (pools.get(name)?.ready ?? 0);
    return count > 0 ? [{ template, count }] : [];
  });
}

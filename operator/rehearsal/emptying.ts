import { underused } from '../burst/clusters/consolidate.ts';
import { kept as keptOn, emptying as written } from '../burst/clusters/emptying-receipt.ts';
import type { ClustersView, Movable, OwnCluster, Supply } from '../burst/clusters/model.ts';
import type { ClustersPlan } from '../burst/clusters/plan-model.ts';
import { emptiesUnderused, hasLittleWork } from '../controllers/burst/own-clusters.ts';
import { customKinds } from './kinds.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type ClusterState, type Simulation, tell } from './state.ts';

/** Since when a cluster has little work is counted from now; undefined: it has more, or nobody asks. */
export function isUnderused(
  { work }: Simulation,
  { policy }: Pick<RehearsedPolicy, 'policy'>,
  key: string,
): boolean | undefined {
  const used = emptiesUnderused(policy) ? work!.utilization(key) : undefined;
  return used === undefined ? undefined : hasLittleWork(policy, used);
}

/** What a plan needs to know to empty clusters. The hub moves work at once. */
export function emptyingOf(
  simulation: Simulation,
  { receipt }: RehearsedPolicy,
  view: Pick<ClustersView, 'clusters' | 'limits' | 'lastIn' | 'lastOut'>,
  supplyOf: (cluster: ClusterState) => Supply,
  now: number,
): Pick<ClustersView, 'movable' | 'emptying'> {
  const { work, clusters } = simulation;
  const begun = receipt.purchases.filter(({ emptyingSince, leaving }) => emptyingSince !== undefined && !leaving);
  const { due } = underused(view, now);
  if (due.length + begun.length === 0) return {};
  const kindOf = customKinds(simulation);
  const byName = new Map([...clusters.values()].map((cluster) => [cluster.manifest.metadata.name, cluster]));
  return {
    movable: new Map(due.map(({ key }: OwnCluster): [string, Movable] => [key, work!.movable(key, kindOf)])),
    emptying: begun.flatMap(({ name }) => {
      const cluster = byName.get(name);
      if (!cluster) return [];
      const isDone = !work!.isBusy(cluster.key);
      return [{ name, supply: supplyOf(cluster), hasBegun: true, isDone, problem: undefined }];
    }),
  };
}

/** Does what was decided about clusters with little work. */
export function moveWork(
  simulation: Simulation,
  rehearsed: RehearsedPolicy,
  { emptyings, kept }: ClustersPlan,
  keyOf: (name: string) => string,
  now: number,
): void {
  for (const one of kept) {
    rehearsed.receipt = keptOn(rehearsed.receipt, one, now);
    const cluster = simulation.clusters.get(keyOf(one.name))!;
    simulation.work!.reopen(cluster.key);
    tell(simulation, cluster, 'kept', one.why);
  }
  for (const one of emptyings) {
    rehearsed.receipt = written(rehearsed.receipt, one, now);
    const cluster = simulation.clusters.get(keyOf(one.name))!;
    tell(simulation, cluster, 'emptied', one.why);
    simulation.work!.moveAway(cluster.key, simulation.now);
  }
}

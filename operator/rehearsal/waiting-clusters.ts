import type { WorkerCluster } from '../api/workercluster.ts';
import type { WarmCluster } from '../burst/clusters/model.ts';
import { nodesOf } from '../burst/clusters/offer.ts';
import type { Opening, Removal } from '../burst/clusters/plan-model.ts';
import { opened } from '../burst/clusters/receipt.ts';
import { isToSleep, putToSleep, woken } from '../burst/clusters/sleep-receipt.ts';
import { soldOutOf } from '../burst/clusters/sold-out.ts';
import type { Wait } from '../burst/clusters/warm.ts';
import type { Seen } from '../controllers/burst/own-clusters.ts';
import { waitingClusters } from '../controllers/burst/waiting-clusters.ts';
import { keyOf } from '../kube/resources.ts';
import { memberOf, reserveOf } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type ClusterState, dateOf, type Simulation, tell } from './state.ts';
import { supplyIn } from './supply.ts';

/** Clusters of the policy that wait, with what they would take. */
export function waitingOf(
  simulation: Simulation,
  rehearsed: RehearsedPolicy,
  seen: readonly Seen[],
  now: number,
): WarmCluster[] {
  const stateOf = (cluster: WorkerCluster) => simulation.clusters.get(keyOf(cluster))!;
  const room = {
    open: (cluster: WorkerCluster) => supplyIn(simulation, rehearsed, stateOf(cluster)),
    woken: (cluster: WorkerCluster) => awake(simulation, stateOf(cluster)),
  };
  return waitingClusters(rehearsed.receipt, seen, room, now);
}

/** What a cluster that sleeps takes when it is awake. */
export function awake(
  simulation: Simulation,
  { key, object, profile, decided }: ClusterState,
): Pick<WarmCluster, 'supply' | 'problem'> {
  const cluster = object!;
  const member = memberOf(cluster, profile);
  if (!profile) return { supply: { cluster: key, member, nodes: [], planned: [] } };
  const profileOf = (name: string) => simulation.scenario.profiles.get(name);
  const { pools, problem } = soldOutOf(
    cluster,
    profileOf,
    simulation.capacity.known(cluster.metadata),
    dateOf(simulation),
  );
  const planned = nodesOf({ cluster, profile, decided, member, reserve: reserveOf(cluster, profile) });
  return {
    supply: { cluster: key, member, nodes: [], planned: planned.filter(({ template }) => !pools.has(template.id)) },
    problem,
  };
}

/** A cluster that waited takes work from now on. */
export function openWaiting(simulation: Simulation, rehearsed: RehearsedPolicy, opening: Opening, now: number): void {
  const { name, waking, why } = opening;
  rehearsed.receipt = (waking ? woken : opened)(rehearsed.receipt, opening, now);
  const cluster = clusterOf(simulation, rehearsed, name);
  simulation.work!.reopen(cluster.key);
  tell(simulation, cluster, waking ? 'woken' : 'opened', why);
}

/** A cluster without work waits asleep from now on. */
export function sleepAgain(simulation: Simulation, rehearsed: RehearsedPolicy, removal: Removal, now: number): void {
  rehearsed.receipt = putToSleep(rehearsed.receipt, removal, now);
  const cluster = clusterOf(simulation, rehearsed, removal.name);
  simulation.work!.close(cluster.key);
  tell(simulation, cluster, 'put-to-sleep', removal.why);
}

/** Has clusters sleep that wait so, and takes the order back of those that were woken. */
export function orderSleep(simulation: Simulation, rehearsed: RehearsedPolicy): void {
  const { name, namespace } = rehearsed.policy.metadata;
  for (const purchase of rehearsed.receipt.purchases) {
    const cluster = clusterOf(simulation, rehearsed, purchase.name);
    const toSleep = isToSleep(purchase);
    if (purchase.leaving || toSleep === (cluster.sleepOrder !== undefined)) continue;
    const by = `BurstPolicy ${namespace}/${name}`;
    const order = { asleep: true, by, why: 'it waits until work needs it', at: purchase.warmAt! };
    cluster.sleepOrder = toSleep ? order : undefined;
    simulation.toPlan.add(cluster);
  }
}

const clusterOf = ({ clusters }: Simulation, { policy }: RehearsedPolicy, name: string): ClusterState =>
  clusters.get(`${policy.metadata.namespace}/${name}`)!;

/** How clusters of the policy wait, by their keys; those that take work are left out. */
export function waitsOf({ rehearsed }: Simulation): ReadonlyMap<string, Wait> {
  const { policy, receipt } = rehearsed ?? {};
  const waits = (receipt?.purchases ?? []).flatMap(({ name, warm, sleeps, leaving }): [string, Wait][] =>
    warm && !leaving ? [[`${policy!.metadata.namespace}/${name}`, sleeps ? 'asleep' : 'warm']] : [],
  );
  return new Map(waits);
}

import type { BurstPolicy } from '../api/burstpolicy.ts';
import { LABELS } from '../api/group.ts';
import { matchesLabels } from '../api/label-selector.ts';
import { nameOf } from '../burst/clusters/growth-receipt.ts';
import type { KeptWake } from '../burst/clusters/kept-wake.ts';
import type { WarmCluster, WokenCluster } from '../burst/clusters/model.ts';
import type { Opening, Removal } from '../burst/clusters/plan-model.ts';
import {
  letSleep,
  measuredWakeMs,
  slept,
  type WakeNow,
  wakes,
  withWakeFacts,
  wokenCluster,
} from '../burst/clusters/wake-receipt.ts';
import { placedBy } from '../controllers/burst/arrival.ts';
import type { HubWork } from '../controllers/burst/supply.ts';
import { wakingAs } from '../controllers/burst/wake-others.ts';
import { isAsleep } from '../controllers/membership/member.ts';
import { offerInputs } from './members.ts';
import type { RehearsedPolicy } from './rehearsed-policy.ts';
import { type ClusterState, type Simulation, tell } from './state.ts';
import { awake } from './waiting-clusters.ts';

/** Clusters of others that sleep by their own spec, and that the policy may wake. */
export function sleepersOf(simulation: Simulation, { policy, receipt }: RehearsedPolicy, now: number): WarmCluster[] {
  const { wake: entries = [], budget } = policy.spec;
  const { namespace } = policy.metadata;
  const known = new Set((receipt.wakes ?? []).map(({ cluster }) => cluster));
  return [...simulation.clusters.values()].flatMap((cluster): WarmCluster[] => {
    const { key, object, profile, manifest } = cluster;
    const { name, labels = {} } = manifest.metadata;
    const entry = entries.find(({ clusterSelector }) => matchesLabels(labels, clusterSelector));
    const rest = receipt.rests[key];
    const sleeps = object && !object.metadata.deletionTimestamp && isAsleep(object) && !cluster.sleepOrder;
    if (manifest.metadata.namespace !== namespace) return [];
    if (!entry || !profile || !sleeps || known.has(key) || labels[LABELS.burstPolicy] !== undefined) return [];
    if (rest && Date.parse(rest.until) > now) return [];
    const { assumedHourly } = entry;
    const waking = wakingAs(offerInputs(object, profile, { currency: budget.currency, assumedHourly }));
    if (!waking) return [];
    const startupMs = measuredWakeMs(receipt, entry.name);
    return [
      {
        name,
        candidate: entry.name,
        entry: entry.name,
        ...awake(simulation, cluster),
        waking: { ...waking, startupMs },
      },
    ];
  });
}

/** A cluster of somebody is woken. */
export function wakeOther(simulation: Simulation, rehearsed: RehearsedPolicy, opening: Opening, now: number): void {
  const cluster = simulation.clusters.get(`${rehearsed.policy.metadata.namespace}/${opening.name}`)!;
  const uid = cluster.object?.metadata.uid ?? '';
  rehearsed.receipt = wakes(rehearsed.receipt, opening, opening.waking!, { cluster: cluster.key, uid }, now);
  const at = new Date(now).toISOString();
  cluster.sleepOrder = { asleep: false, by: whose(rehearsed.policy), why: opening.why, at };
  simulation.toPlan.add(cluster);
  tell(simulation, cluster, 'woken', opening.why);
}

/** A cluster of somebody may sleep again, as its spec says. */
export function letOtherSleep(simulation: Simulation, rehearsed: RehearsedPolicy, removal: Removal, now: number): void {
  rehearsed.receipt = letSleep(rehearsed.receipt, removal, now);
  for (const wake of rehearsed.receipt.wakes ?? []) {
    if (!wake.ended) continue;
    const cluster = simulation.clusters.get(wake.cluster)!;
    cluster.sleepOrder = undefined;
    simulation.toPlan.add(cluster);
    tell(simulation, cluster, 'put-to-sleep', removal.why);
    rehearsed.receipt = slept(rehearsed.receipt, wake, now);
  }
}

/** What is seen of clusters of others that were woken. */
export function noteWoken(
  simulation: Simulation,
  rehearsed: RehearsedPolicy,
  work: readonly HubWork[],
  now: number,
): void {
  rehearsed.receipt = withWakeFacts(rehearsed.receipt, (wake) => wakeNow(simulation, wake, work), now);
}

function wakeNow(simulation: Simulation, wake: KeptWake, work: readonly HubWork[]): WakeNow | 'gone' {
  const cluster = simulation.clusters.get(wake.cluster);
  if (!cluster?.object) return 'gone';
  const hasJoined = isBack(cluster);
  const isIdle = hasJoined ? !simulation.work!.isBusy(cluster.key) : undefined;
  const joined = Date.parse(wake.joinedAt ?? '');
  const waits = work.find(({ source, since }) => wake.sources.includes(source) && since < joined)?.source;
  const wanted = [...cluster.pools.values()].reduce((sum, pool) => sum + pool.wanted, 0);
  const placed = placedBy(wake.joinedAt, wanted, cluster.object, [...cluster.nodes.values()]);
  return { hasJoined, isIdle, waits, placedBy: placed, ownerSays: undefined };
}

/** Whether a cluster that was woken takes work. */
const isBack = ({ object, serves, nodes }: ClusterState): boolean =>
  object !== undefined && !isAsleep(object) && serves && nodes.size > 0;

/** Clusters of others that the policy has awake. */
export function wokenBy(
  simulation: Simulation,
  { policy, memory, receipt }: RehearsedPolicy,
  now: number,
): WokenCluster[] {
  return (receipt.wakes ?? []).flatMap((wake): WokenCluster[] => {
    const cluster = simulation.clusters.get(wake.cluster);
    if (!cluster?.object || wake.ended) return [];
    const isWorkless = !simulation.work!.isBusy(cluster.key);
    const isIdle = wake.joinedAt ? isWorkless : undefined;
    const idleSince = memory.idle(`${policy.metadata.uid}/${wake.uid}/${wake.at}`, isIdle, now);
    const failure = wake.joinedAt ? undefined : cluster.machineRefusal;
    return [{ ...wokenCluster(wake, idleSince, !isWorkless, failure), name: nameOf(wake.cluster) }];
  });
}

const whose = ({ metadata: { name, namespace } }: BurstPolicy): string => `BurstPolicy ${namespace}/${name}`;

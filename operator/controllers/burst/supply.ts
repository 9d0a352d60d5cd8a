import type { CloudProfile } from '../../api/cloudprofile.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import { membershipName } from '../../api/names.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { KeptGrowth } from '../../burst/clusters/kept.ts';
import type { HubMember, PlannedNodes, Supply, WaitingWork, WarmCluster } from '../../burst/clusters/model.ts';
import { nodesOf } from '../../burst/clusters/offer.ts';
import { soldOutOf } from '../../burst/clusters/sold-out.ts';
import { inTurn } from '../../burst/clusters/sources.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { fitNode } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { MANAGED_RESERVES, type Reserve } from '../../burst/fit/reserve.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import { quantitiesOf } from '../../hubs/amounts.ts';
import type { Amounts, Demand } from '../../hubs/contract.ts';
import { conditionIsTrue, keyOf, type Node, type Pod } from '../../kube/resources.ts';
import { byNode } from '../autoscaling/nodes-seen.ts';
import { BY_HUB } from '../membership/dependencies.ts';
import { clusterOf } from '../membership/holds.ts';
import { isAsleep, nodeSizesOf } from '../membership/member.ts';
import { labelsOf, zonesOf } from '../membership/member-labels.ts';
import { alikeTo } from './alike.ts';
import { nodesUntil } from './arrival.ts';
import { countedTemplate, countsOf, uncountedBy } from './counted.ts';
import type { BurstDependencies } from './dependencies.ts';
import type { Waits } from './memory.ts';
import { ordered, poolsSeen } from './pools.ts';
import { type SiblingDaemons, siblingDaemons } from './sibling-daemons.ts';
import { whereItComes } from './where-it-comes.ts';

/** So many of a hub's demands are looked at. */
const MOST_DEMANDS = 5_000;
/** Of one cluster so many pods that wait are looked at. */
const MOST_PENDING = 500;

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

/** Work of a hub with what it is chosen by. */
export type HubWork = WaitingWork & {
  readonly namespace: string | undefined;
  readonly asked: Amounts;
  /** Since when the hub says the same of it without a break, milliseconds since the epoch. */
  readonly unchangedSince: number;
};

/** What a hub has no place for, as the planner takes it. */
export function workOf(demands: readonly Demand[], waits: ReadonlyMap<string, Waits>, now: number): HubWork[] {
  const known = demands.filter(({ problem }) => problem === undefined);
  return lookedAt(known, waits).flatMap((demand) => {
    const { source, namespace, count, each, others, accepts, customKind, inOneCluster, isHeld, priority } = demand;
    if (!Number.isSafeInteger(count) || count <= 0) return [];
    const { since = now, unchangedSince = now } = waits.get(source) ?? {};
    return [
      {
        source: source.slice(0, 512),
        namespace,
        asked: each,
        count,
        pod: fitPod(podOf(demand)),
        each: wordsOf(each, others),
        since,
        unchangedSince,
        ...(priority !== undefined && { priority }),
        ...(inOneCluster && { inOneCluster }),
        ...(isHeld && { isHeld }),
        ...(accepts && { accepts }),
        ...(customKind && { customKind }),
      },
    ];
  });
}

/** Whole sources: of each namespace in turn those that have waited longest. */
function lookedAt(demands: readonly Demand[], waits: ReadonlyMap<string, Waits>): readonly Demand[] {
  if (demands.length <= MOST_DEMANDS) return demands;
  const since = ([first]: readonly Demand[]) => waits.get(first!.source)?.since ?? Number.MAX_SAFE_INTEGER;
  const sources = [...Map.groupBy(demands, ({ source }) => source).values()].sort((a, b) => since(a) - since(b));
  const found: Demand[] = [];
  for (const parts of inTurn(sources)) if (found.length + parts.length <= MOST_DEMANDS) found.push(...parts);
  return found;
}

const podOf = ({ namespace = 'default', template, ...demand }: Demand): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: template
    ? { name: 'replica', namespace, labels: template.labels }
    : { name: 'replica', namespace: 'default' },
  spec: template?.spec ?? barePod(demand),
});

/** Of a hub that tells no more than what a replica asks for and on which nodes. */
const barePod = ({ each, others, nodes }: Pick<Demand, 'each' | 'others' | 'nodes'>): Pod['spec'] => ({
  ...nodes,
  containers: [{ name: 'work', resources: { requests: { ...others, ...quantitiesOf(each) } } }],
});

/** What a replica asks for, in words. */
export const wordsOf = ({ cpu, memory, gpu }: Amounts, others: Demand['others'] = {}): string =>
  [
    cpu && `${cpu} CPU`,
    memory && `${memory} memory`,
    gpu && gpu !== '0' && `${gpu} GPU`,
    ...Object.entries(others).flatMap(([name, amount]) => (amount === '0' ? [] : [`${amount} ${name}`])),
  ]
    .filter(Boolean)
    .join(', ')
    .slice(0, 256) || 'nothing asked for';

/** Clusters that take work of the hub, and those that are on their way; with nodes that were ordered for them. */
export function supplyOf(
  deps: BurstDependencies,
  hub: Hub,
  bought: readonly Bought[],
  growths: readonly KeptGrowth[],
  now: number,
): Supply[] {
  const byKey = new Map(bought.map((one) => [one.key, one]));
  const daemons = siblingDaemons(deps, hub);
  const joined = deps.memberships.byIndex(BY_HUB, hub.metadata.name).flatMap((membership): Supply[] => {
    const { metadata, status } = membership;
    const key = clusterOf(membership);
    const cluster = deps.clusters.get(key);
    if (status?.state !== 'Joined' || metadata.deletionTimestamp || !cluster || cluster.metadata.deletionTimestamp)
      return [];
    // Its nodes go in a moment.
    if (isAsleep(cluster) && !byKey.has(key)) return [];
    const open = deps.openClusters.get(key);
    const nodes = (open?.nodes.list() ?? []).filter((node) => conditionIsTrue(node, 'Ready'));
    const own = byKey.get(key);
    byKey.delete(key);
    // Its room would keep work waiting for ever, and the cluster with it.
    if (own?.isUseless || own?.isEmptying) return [];
    const settled = own?.joinedAt !== undefined && nodesUntil(cluster, own.joinedAt, nodes.length > 0) <= now;
    const sizes = nodeSizesOf(cluster, open, whereItComes(deps, cluster)?.profile);
    const pods = open?.pods.list() ?? [];
    const pools = poolsSeen(deps, cluster, growths, now);
    const grown = ordered((pools ?? []).filter(({ decidedAt }) => decidedAt !== undefined));
    const isCounted = new Set(grown.map(({ template }) => template.id));
    const made = own && !settled ? missing(plannedOf(deps, hub, cluster, daemons), nodes) : [];
    const growing = grown.map((one) => ({ ...one, template: countedTemplate(hub, one.template, sizes) }));
    const planned = [...made.filter(({ template }) => !isCounted.has(template.id)), ...growing];
    return [
      {
        cluster: key,
        member: memberOf(deps, hub, cluster),
        nodes: withPods(nodes, pods, uncountedBy(hub, sizes)),
        planned,
        ...(planned.length > 0 && { pending: waitingPods(pods) }),
      },
    ];
  });
  const coming = [...byKey.values()].map(
    ({ key, cluster, joinedAt }): Supply => ({
      cluster: key,
      member: memberOf(deps, hub, cluster),
      nodes: [],
      // One that was in the hub and is not now is asleep, or has lost its connection: its room is none.
      planned: joinedAt === undefined ? plannedOf(deps, hub, cluster, daemons, deps.decided(cluster)) : [],
    }),
  );
  return [...joined, ...coming];
}

/** What a cluster takes that the hub has not opened yet. */
export function supplyIn(deps: BurstDependencies, hub: Hub, cluster: WorkerCluster): Supply {
  const key = keyOf(cluster);
  const open = deps.openClusters.get(key);
  const nodes = (open?.nodes.list() ?? []).filter((node) => conditionIsTrue(node, 'Ready'));
  const sizes = nodeSizesOf(cluster, open, whereItComes(deps, cluster)?.profile);
  return {
    cluster: key,
    member: memberOf(deps, hub, cluster),
    nodes: withPods(nodes, open?.pods.list() ?? [], uncountedBy(hub, sizes)),
    planned: [],
  };
}

/** What a cluster takes that sleeps, when it is awake: without pools that are known to be sold out, by which it may not come at all. */
export function awake(
  deps: BurstDependencies,
  hub: Hub,
  cluster: WorkerCluster,
  daemons: SiblingDaemons,
  now: number,
): Pick<WarmCluster, 'supply' | 'problem'> {
  const capacity = deps.capacity.known(cluster.metadata);
  const { pools, problem } = soldOutOf(cluster, (name) => deps.profiles.get(name), capacity, new Date(now));
  const supply = {
    cluster: keyOf(cluster),
    member: memberOf(deps, hub, cluster),
    nodes: [],
    planned: plannedOf(deps, hub, cluster, daemons, deps.decided(cluster)).filter(
      ({ template }) => !pools.has(template.id),
    ),
  };
  return { supply, problem };
}

/** Pods of a cluster that wait for a node of it. */
const waitingPods = (pods: readonly Pod[]): FitPod[] =>
  pods
    .filter(
      ({ metadata, spec, status }) => !spec.nodeName && !metadata.deletionTimestamp && status?.phase === 'Pending',
    )
    .slice(0, MOST_PENDING)
    .map(fitPod);

/** How the hub knows a cluster, or would know one that is not made yet. */
export function memberOf(
  deps: Pick<BurstDependencies, 'profiles' | 'openClusters' | 'memberships' | 'clusters' | 'capacity' | 'now'>,
  hub: Hub,
  written: WorkerCluster,
): HubMember {
  const { namespace, name } = written.metadata;
  const { cluster, profile } = whereItComes(deps, written) ?? { cluster: written, profile: undefined };
  const open = deps.openClusters.get(`${namespace}/${name}`);
  const membership = deps.memberships.get(`${namespace}/${membershipName(name, hub.metadata.name)}`);
  const made = asMade(cluster, profile);
  const surroundings = { open, profile };
  return {
    name: membership?.status?.memberName ?? name,
    labels: labelsOf(made, hub.spec, surroundings),
    zones: zonesOf(made, surroundings),
    alike: alikeTo(deps, hub, cluster, membership),
  };
}

/** With what its status will say, as far as its labels rest on it. */
function asMade(cluster: WorkerCluster, profile: CloudProfile | undefined): WorkerCluster {
  const region = cluster.spec.region ?? profile?.spec.defaults?.region ?? profile?.spec.regions[0]?.name;
  const mode = cluster.spec.mode ?? profile?.spec.defaults?.mode;
  const status = { ...(region && { region }), ...(mode && { mode }), ...cluster.status };
  return { ...cluster, status };
}

/** @param decided what it is to have besides the minimums of its pools. Absent: nothing. */
function plannedOf(
  deps: BurstDependencies,
  hub: Hub,
  written: WorkerCluster,
  daemons: SiblingDaemons,
  decided: Decided = 'none',
): PlannedNodes[] {
  const there = whereItComes(deps, written);
  if (!there) return [];
  const { cluster, profile } = there;
  return nodesOf({
    cluster,
    profile,
    decided,
    member: memberOf(deps, hub, cluster),
    reserve: reserveOf(deps, cluster, profile),
    daemons: daemons(),
    counts: countsOf(hub),
  });
}

/** Who decides what kubelets of such a cluster keep; where that is not known, whoever is known to keep most. */
export function reserveOf(
  { provider }: Pick<BurstDependencies, 'provider'>,
  { spec }: WorkerCluster,
  profile: CloudProfile,
): Reserve {
  if (!provider(profile)?.inCloud) return 'none';
  const isManaged = (spec.mode ?? profile.spec.defaults?.mode) === 'Managed';
  return isManaged ? (MANAGED_RESERVES[profile.spec.type] ?? 'gke') : 'machines';
}

/** What of the plan is not among the nodes that are there. */
function missing(planned: readonly PlannedNodes[], nodes: readonly Node[]): PlannedNodes[] {
  return planned.flatMap(({ template, count }) => {
    const there = nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === template.id).length;
    // Nodes that do not say of which pool they are may be of any.
    const unnamed = nodes.filter(({ metadata }) => metadata.labels?.[LABELS.pool] === undefined).length;
    const left = count - there - unnamed;
    return left > 0 ? [{ template, count: left }] : [];
  });
}

function withPods(
  nodes: readonly Node[],
  pods: readonly Pod[],
  uncounted: ReturnType<typeof uncountedBy>,
): Supply['nodes'] {
  const podsOn = byNode(pods);
  return nodes.map((node) => {
    const on = podsOn.get(node.metadata.name) ?? [];
    return { node: fitNode(node), pods: [...on.map(fitPod), ...uncounted(node, on)] };
  });
}

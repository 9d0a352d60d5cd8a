import type { BurstPolicy } from '../../api/burstpolicy.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { LABELS } from '../../api/group.ts';
import type { Hub } from '../../api/hub.ts';
import { matchesLabels } from '../../api/label-selector.ts';
import { MAX_NODES } from '../../api/worker-pool.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { GrowingPool, GrowthView, HubMember } from '../../burst/clusters/model.ts';
import { regionOf, withRoomFor } from '../../burst/clusters/offer.ts';
import type { NodesOrder } from '../../burst/clusters/plan-model.ts';
import { type ClusterPurchase, isOfNoUse, type NodesPurchase } from '../../burst/clusters/purchases.ts';
import { type BurstReceipt, clustersIn, nodesIn } from '../../burst/clusters/receipt.ts';
import { grantRestOf, restOf } from '../../burst/clusters/receipt-facts.ts';
import { type DecidedSize, desiredSizes, isCoppices } from '../../capacity/desired-sizes.ts';
import type { Claimant } from '../../cost/admission.ts';
import { billingOf } from '../../cost/billing.ts';
import { parseMoney } from '../../cost/money.ts';
import { machinePrice } from '../../cost/price.ts';
import { askedSize } from '../../cost/size.ts';
import { keyOf } from '../../kube/resources.ts';
import { whereItIs } from '../where-it-is.ts';
import { refusalsOf } from './candidates.ts';
import { isManaged } from './managed-mode.ts';
import type { PoolSeen } from './seen.ts';
import type { BurstSight } from './world.ts';

/** Inputs of growth. */
export interface GrowthInputs {
  readonly hub: Hub;
  readonly policy: BurstPolicy;
  readonly receipt: BurstReceipt;
  /** Recorded growth of all policies of the hub. */
  readonly growths: readonly NodesPurchase[];
  readonly now: number;
}

type Entry = NonNullable<BurstPolicy['spec']['grow']>[number];

/** Phases in which clusters do not grow. */
const ENDING: ReadonlySet<ClusterPurchase['phase']['name']> = new Set(['Emptying', 'Leaving']);

/** Pools that a policy may grow: of its own clusters, and of those that it names in its namespace. */
export function growthOf(world: BurstSight, inputs: GrowthInputs): GrowthView[] {
  const { hub, policy, receipt } = inputs;
  const { namespace = '' } = policy.metadata;
  const own = new Map(
    clustersIn(receipt).flatMap((one) =>
      one.uid === undefined || ENDING.has(one.phase.name) || isOfNoUse(one) ? [] : [[one.uid, one]],
    ),
  );
  const members = world
    .members(hub)
    .filter(({ metadata }) => metadata.namespace === namespace)
    .map((cluster) => ({ cluster, member: world.member(hub, cluster) }));
  const pools = (which: (cluster: WorkerCluster) => boolean, entry?: Entry): GrowingPool[] =>
    members
      .filter(({ cluster }) => which(cluster))
      .flatMap(({ cluster, member }) =>
        poolsOf(world, inputs, cluster, member, entry ?? own.get(cluster.metadata.uid ?? '')!),
      );
  const mine = pools(({ metadata }) => own.has(metadata.uid ?? ''));
  const named = (policy.spec.grow ?? []).map((entry): GrowthView => {
    const added = nodesIn(receipt).filter((one) => one.entry === entry.name);
    return {
      name: entry.name,
      left: entry.maximumNodes - added.reduce((sum, { nodes }) => sum + nodes, 0),
      // A policy's cluster grows for that policy only, because it is in its budget.
      pools: pools(
        ({ metadata: { labels } }) =>
          labels?.[LABELS.burst] === undefined && matchesLabels(labels ?? {}, entry.clusterSelector),
        entry,
      ),
    };
  });
  return [...(mine.length > 0 ? [{ name: undefined, left: MAX_NODES, pools: mine }] : []), ...named];
}

function poolsOf(
  world: BurstSight,
  { hub, receipt, growths, policy, now }: GrowthInputs,
  written: WorkerCluster,
  member: HubMember,
  by: Entry | ClusterPurchase,
): GrowingPool[] {
  const [entry, purchase] = 'clusterSelector' in by ? [by, undefined] : [undefined, by];
  const there = whereItIs(written, world.profiles);
  const seen = world.pools(hub, written, growths);
  if (!there || !seen) return [];
  const { cluster, profile } = there;
  const others = desiredSizes({ cluster, profile }).filter((pool) => !isCoppices(pool));
  const total = [...seen, ...others].reduce((sum, { count }) => sum + count, 0);
  const room = Math.min(MAX_NODES, profile.spec.limits?.maxNodesTotal ?? MAX_NODES) - total;
  return seen.flatMap((one): GrowingPool[] => {
    const { name } = one.pool;
    const maximum = mostOf(policy, purchase, one);
    const granted = purchase?.granted?.[name];
    const held = Math.max(one.count, one.present);
    const more = Math.max(0, Math.min(maximum - held, room));
    if (!one.template || (entry?.pools && !entry.pools.includes(name))) return [];
    const key = keyOf(cluster);
    const price = priceOf(profile, policy, entry, cluster, one);
    const unpriced = entry && typeof price === 'string' ? price : undefined;
    return [
      {
        cluster: key,
        member,
        pool: name,
        template: { ...one.template, id: `${key}/${name}` },
        more,
        hourly: typeof price !== 'string' ? price : 0n,
        // Purchases older than grants count with their maximum.
        ...(purchase && { counted: granted ? Math.max(0, granted.nodes - held) : more }),
        ...(purchase && { unasked: restsUntil(receipt, grantRestOf(key, name), now) }),
        ...(typeof price !== 'string' && { price }),
        // A node has no control plane.
        ...(profile.spec.billing && {
          billing: { machines: billingOf(profile, 'machines'), controlPlane: undefined, fee: 0n },
        }),
        problem:
          restsUntil(receipt, restOf({ cluster: key, pool: name }), now) ??
          (one.isLate ? 'nodes that its pool was to have did not come' : undefined) ??
          (entry && isManaged(world, cluster) && !one.removesNodes
            ? 'the cloud chooses itself which of its nodes go, so what is added would stay'
            : undefined) ??
          unpriced,
        ...(one.isLast && { isLast: true }),
      },
    ];
  });
}

/** Most nodes of a pool: for granted ones of a policy's cluster, its candidate's maximum. */
function mostOf({ spec }: BurstPolicy, purchase: ClusterPurchase | undefined, { pool }: PoolSeen): number {
  if (!purchase?.granted?.[pool.name]) return pool.maximum;
  const template = spec.candidates.find(({ name }) => name === purchase.candidate)?.template.spec;
  return template?.pools?.find(({ name }) => name === pool.name)?.maximum ?? pool.maximum;
}

function restsUntil({ rests }: BurstReceipt, name: string, now: number): string | undefined {
  const rest = rests[name];
  return rest && Date.parse(rest.until) > now
    ? `it is in back-off until ${rest.until}, because ${rest.why}`
    : undefined;
}

/** Price of one more node per hour; a sentence: why unknown. */
function priceOf(
  profile: CloudProfile,
  { spec: { budget } }: BurstPolicy,
  entry: Entry | undefined,
  cluster: WorkerCluster,
  { pool, template }: PoolSeen,
): bigint | string {
  const name = template?.labels['node.kubernetes.io/instance-type'] ?? pool.machineType;
  const type = profile.spec.machineTypes.find((one) => one.name === name);
  const region = regionOf({ cluster, profile });
  const price = type?.price?.currency === budget.currency ? machinePrice(type, region, pool.spot) : undefined;
  if (price !== undefined) return price;
  if (entry?.assumedHourly !== undefined) return parseMoney(entry.assumedHourly);
  return `a node of machine type ${name} has no price in ${budget.currency}, and assumedHourly does not say for how much it counts`;
}

/** Quotas' verdict on growth. */
export interface JudgedGrowth {
  /** Refused orders with reasons. */
  readonly refused: ReadonlyMap<NodesOrder, string>;
  /** Resulting shares of the others. */
  readonly shares: readonly Claimant[];
}

/** Checks growth against quotas in order: earlier orders take precedence. */
export function judgeGrowth(world: BurstSight, growths: readonly NodesOrder[]): JudgedGrowth {
  const refused = new Map<NodesOrder, string>();
  const shares: Claimant[] = [];
  for (const [key, its] of Map.groupBy(growths, ({ cluster }) => cluster)) {
    const cluster = world.clusters.get(key);
    const claimant = cluster && claimantWith(world, cluster, its);
    if (!claimant) continue;
    const [refusal] = refusalsOf(world, claimant, shares);
    for (const one of its) if (refusal) refused.set(one, refusal.message);
    if (!refusal) shares.push({ ...claimant, held: claimant.asked, asked: undefined });
  }
  return { refused, shares };
}

/** A cluster with more nodes; undefined: its present size is unknown. */
function claimantWith(world: BurstSight, written: WorkerCluster, growths: readonly NodesOrder[]): Claimant | undefined {
  const there = whereItIs(written, world.profiles);
  const decided = world.decided(written);
  if (!there || decided === 'unknown') return undefined;
  const { profile } = there;
  const known = new Map(desiredSizes({ ...there, decided }).map(({ name, count }) => [name, count]));
  const cluster = withRoomFor(
    there.cluster,
    growths.map(({ pool, nodes }) => ({ pool, to: (known.get(pool) ?? 0) + nodes })),
  );
  const sizes = new Map<string, DecidedSize>(decided === 'none' ? [] : decided);
  for (const { name, count } of desiredSizes({ cluster, profile, decided })) {
    const more = growths.filter((one) => one.pool === name).reduce((sum, { nodes }) => sum + nodes, 0);
    if (more > 0) sizes.set(name, { by: '', why: '', ...sizes.get(name), count: count + more });
  }
  return {
    key: keyOf(cluster),
    createdAt: written.metadata.creationTimestamp ?? '',
    profile,
    held: world.heldBy(cluster),
    asked: askedSize(cluster, profile, desiredSizes({ cluster, profile, decided: sizes })),
  };
}

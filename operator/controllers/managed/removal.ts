import type { CloudPool, PoolLeft, WantedCluster } from '../../../providers/cloud.ts';
import { ANNOTATIONS, LABELS, OTHERS_ANNOTATIONS } from '../../api/group.ts';
import type { Decided } from '../../capacity/desired-sizes.ts';
import { isMovable } from '../../kube/pods.ts';
import type { Node, Pod } from '../../kube/resources.ts';
import { EMPTY } from '../empty-mark.ts';
import type { ManagedWish } from './facts.ts';
import type { ManagedReceipt, Removing } from './receipt.ts';

/** Names of leaving nodes by pool of the spec. */
export type LeavingNames = ReadonlyMap<string, readonly string[]>;

/** Leaving nodes of stored decisions; none when unreadable, so that pools keep their sizes. */
export const leavingIn = (decided: Decided): LeavingNames =>
  new Map(typeof decided === 'string' ? [] : [...decided].map(([pool, { leaving = [] }]) => [pool, leaving]));

/** Objects inside of the cluster; undefined: not observable. */
type Inside = { readonly nodes: readonly Node[]; readonly pods: readonly Pod[] } | undefined;

/**
 * A wish as it may be applied now. Pure. A pool that loses named nodes keeps its size until they are gone: given a
 * smaller number, a cloud would choose the nodes. Then the remaining size is applied first, because the stack's state
 * has the former one, and a pool returning to that would not grow.
 */
export function heldBackNodes(
  wish: ManagedWish,
  receipt: ManagedReceipt | undefined,
  leaving: LeavingNames,
): ManagedWish {
  const { desired, clouds } = wish;
  if (!desired || !receipt || !clouds?.removeNodes || desired.asleep) return wish;
  const pools = desired.pools.map((pool) => {
    const size = receipt.left?.[pool.name]?.size ?? sizeUntilGone(pool, receipt, leaving);
    return size === pool.desired || size === undefined
      ? pool
      : { ...pool, desired: size, maximum: Math.max(size, pool.maximum) };
  });
  return pools.every((pool, index) => pool === desired.pools[index])
    ? wish
    : { ...wish, desired: { ...desired, pools } };
}

/** The cluster with its present division of nodes by zone, after removals by name. Pure. */
export function placeByZone(cluster: WantedCluster, before: WantedCluster | undefined): WantedCluster {
  const pools = cluster.pools.map((pool) => {
    const zones = pool.zones.length > 0 ? pool.zones : cluster.zones;
    const known = asked(before, pool.name)?.inZones;
    const isSame = known && Object.keys(known).every((zone) => zones.includes(zone));
    return isSame && pool.desired !== undefined ? { ...pool, inZones: spread(known, zones, pool.desired) } : pool;
  });
  return { ...cluster, pools };
}

/** Nodes to remove next. `waits`: some must go but cannot yet. Pure. */
export function dueRemoval(
  { desired, clouds }: ManagedWish,
  receipt: ManagedReceipt | undefined,
  leaving: LeavingNames,
  inside: Inside,
): Removing | 'waits' | undefined {
  if (receipt?.removing) return receipt.removing;
  if (!desired || desired.asleep || !clouds?.removeNodes || !receipt?.outputs || !receipt.applied) return undefined;
  let waits = false;
  for (const pool of desired.pools) {
    const before = asked(receipt.cluster, pool.name);
    const names = namesOf(pool, leaving);
    const tooMany = (before?.desired ?? 0) - (pool.desired ?? 0);
    if (!before || tooMany <= 0 || names.length === 0) continue;
    waits = true;
    // A cloud refuses below the group's minimum, which is lowered first.
    if (!inside || before.minimum > pool.desired!) continue;
    const nodes = inside.nodes
      .filter(({ metadata: { name, labels } }) => labels?.[LABELS.pool] === pool.name && names.includes(name))
      .filter((node) => !receipt.removed?.includes(node.metadata.uid ?? '') && isEmpty(node, inside.pods))
      .slice(0, tooMany)
      .flatMap(cloudNode);
    if (nodes.length > 0) return { pool: pool.name, nodes };
  }
  return waits ? 'waits' : undefined;
}

/** The receipt after a removal. Pure. @param there UIDs of nodes that still exist */
export function afterRemoval(
  { removing, ...receipt }: ManagedReceipt,
  left: PoolLeft,
  there: ReadonlySet<string>,
): ManagedReceipt {
  const { pool, nodes } = removing!;
  const { size, inZones } = left;
  const isSmaller = size !== asked(receipt.cluster, pool)?.desired;
  const told = left.refused ? [] : nodes.map(({ uid }) => uid);
  return {
    ...receipt,
    cluster: {
      ...receipt.cluster,
      pools: receipt.cluster.pools.map((one) =>
        one.name === pool && isSmaller ? { ...one, desired: size, ...(inZones && { inZones }) } : one,
      ),
    },
    ...(isSmaller && { left: { ...receipt.left, [pool]: { size } } }),
    removed: [...(receipt.removed ?? []).filter((uid) => there.has(uid)), ...told],
  };
}

/** Key of a removal: a failure of one does not count for another. */
export const removalKey = ({ pool, nodes }: Removing): string => [pool, ...nodes.map(({ uid }) => uid)].join('/');

const asked = (cluster: WantedCluster | undefined, name: string): CloudPool | undefined =>
  cluster?.pools.find((pool) => pool.name === name);

const namesOf = ({ name, labels }: CloudPool, leaving: LeavingNames): readonly string[] =>
  leaving.get(labels[LABELS.alternativeOf] ?? name) ?? [];

function sizeUntilGone(pool: CloudPool, receipt: ManagedReceipt, leaving: LeavingNames): number | undefined {
  const before = asked(receipt.cluster, pool.name)?.desired;
  if (pool.desired === undefined || before === undefined || namesOf(pool, leaving).length === 0) return pool.desired;
  return Math.max(pool.desired, before);
}

/** Whether only DaemonSets and ended pods are on a drained, cordoned node. */
const isEmpty = ({ metadata, spec }: Node, pods: readonly Pod[]): boolean =>
  spec.unschedulable === true &&
  metadata.annotations?.[ANNOTATIONS.emptiedSince]?.endsWith(EMPTY) === true &&
  !pods.some((pod) => pod.spec.nodeName === metadata.name && isMovable(pod));

function cloudNode({ metadata: { name, uid, annotations }, spec: { providerID } }: Node) {
  const instance = annotations?.[OTHERS_ANNOTATIONS.instanceID];
  return uid && providerID ? [{ name, uid, providerID, ...(instance && { instance }) }] : [];
}

/** Spreads nodes over zones with few changes: the emptiest zone gets the next node, the fullest loses one. */
function spread(known: Record<string, number>, zones: readonly string[], count: number): Record<string, number> {
  const counts = zones.map((zone) => ({ zone, nodes: known[zone] ?? 0 }));
  const sum = () => counts.reduce((total, { nodes }) => total + nodes, 0);
  while (counts.length > 0 && sum() < count) counts.reduce((a, b) => (b.nodes < a.nodes ? b : a)).nodes++;
  while (counts.length > 0 && sum() > count) counts.reduce((a, b) => (b.nodes >= a.nodes ? b : a)).nodes--;
  return Object.fromEntries(counts.map(({ zone, nodes }) => [zone, nodes]));
}

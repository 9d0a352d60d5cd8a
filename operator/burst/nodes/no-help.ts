import { rfc3339 } from '../../api/conditions.ts';
import type { PoolMemory, Stop } from '../../capacity/pool-memory.ts';
import { isMovable } from '../../kube/pods.ts';
import type { Pod } from '../../kube/resources.ts';
import type { Demand } from '../demand.ts';
import { Judged } from '../fit/judge.ts';
import type { FitPod, Misfit, Plugin } from '../fit/model.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';
import { likenessOf } from '../likeness.ts';
import { PROVISION_MS } from './grow.ts';

/** So many are kept of each pool: whoever makes pods may make many that are unlike. */
const MOST_KEPT = 64;

/** What is around a node decides these: they are no fault of the node, and change with every pod. */
const AROUND: readonly Plugin[] = ['PodTopologySpread', 'InterPodAffinity', 'VolumeRestrictions'];

/** Taints of Kubernetes itself tell of a moment (a full disk): they are no fault of the purchase. */
const PASSING_TAINT = 'node.kubernetes.io/';

/**
 * A node of a purchase that came later than this is not judged by it, and none that is older than this: devices of its type are promised for
 * PROVISION_MS, so what a node lacks for good shows only after that.
 */
const JUDGED_MS = 2 * PROVISION_MS;

/** A node of a pool that is Ready. */
export interface CameNode {
  readonly name: string;
  readonly pool: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** All pods that run there. */
  readonly pods: readonly Pod[];
}

/** What there is to judge purchases by. */
export interface HelpView {
  /** All nodes and pods. It is left as it was. */
  readonly state: ClusterState;
  readonly demands: readonly Demand[];
  /** Nodes that nobody empties. */
  readonly nodes: readonly CameNode[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * What is known of a pool after a look at the nodes that came: a node that was bought for pods and would not take them even if nothing else
 * ran there ends buying for these pods, whatever the cause. This ends when such a pod runs on a node that came, or when the newest node would
 * take one once it counts as it is. Pure.
 * @param digestNow of the pool as it is now
 */
export function judgePurchases(memory: PoolMemory, name: string, digestNow: string, view: HelpView): PoolMemory {
  const { types } = memory;
  const isSame = memory.pool === digestNow;
  const stops = new Map(Object.entries((isSame && memory.stops) || {}));
  const boughtFor = (isSame && memory.boughtFor) || {};
  const came = view.nodes.filter(({ pool }) => pool === name);
  const replicas = new Map(view.demands.map(({ likeness = '', replica }) => [likeness, replica]));
  const judged = (since: string): CameNode[] =>
    came
      .filter((node) => isSince(node, since) && !view.state.node(node.name)?.node.unschedulable)
      .sort((one, other) => other.createdAt - one.createdAt);
  for (const [pods, { cameAt }] of stops) {
    const [newest] = judged(cameAt);
    const replica = replicas.get(pods);
    // Until then much is promised of it (asReady).
    const isSettled = newest && view.now - newest.createdAt >= PROVISION_MS;
    const takesThem = isSettled && replica && misfitIfEmpty(replica, newest, view.state) === undefined;
    if (takesThem || came.some((node) => isSince(node, cameAt) && hasPods(node, pods))) stops.delete(pods);
  }
  for (const { likeness, replica } of view.demands) {
    const boughtAt = likeness === undefined ? undefined : boughtFor[likeness];
    if (likeness === undefined || boughtAt === undefined || stops.has(likeness)) continue;
    const [newest] = judged(boughtAt)
      // An older one somebody may have tainted or filled for other reasons, and a later one is of another purchase.
      .filter(({ createdAt }) => view.now - createdAt < JUDGED_MS && createdAt - Date.parse(boughtAt) < JUDGED_MS);
    if (!newest || hasPods(newest, likeness)) continue;
    const misfit = misfitIfEmpty(replica, newest, view.state);
    if (!misfit) continue;
    const cameAt = rfc3339(new Date(newest.createdAt));
    stops.set(likeness, { why: `node ${newest.name}: ${misfit.message}`, cameAt });
  }
  return {
    ...(types && { types }),
    ...(isSame && memory.boughtFor && { pool: digestNow, boughtFor }),
    ...(stops.size > 0 && { pool: digestNow, stops: newest(stops, ({ cameAt }: Stop) => cameAt) }),
  };
}

/** Notes for which pods nodes of a pool are bought now: whoever waits for more meanwhile is judged by the first that comes. */
export function noteBoughtFor(memory: PoolMemory, digestNow: string, pods: readonly string[], now: Date): PoolMemory {
  const boughtFor = new Map(Object.entries(memory.boughtFor ?? {}));
  for (const one of pods) {
    const before = Date.parse(boughtFor.get(one) ?? '');
    if (!(+now - before < PROVISION_MS)) boughtFor.set(one, rfc3339(now));
  }
  return { ...memory, pool: digestNow, boughtFor: newest(boughtFor, (when) => when) };
}

const newest = <T>(all: ReadonlyMap<string, T>, at: (one: T) => string): Record<string, T> =>
  Object.fromEntries(
    [...all].sort(([, a], [, b]) => (at(a) === at(b) ? 0 : at(a) < at(b) ? 1 : -1)).slice(0, MOST_KEPT),
  );

const isSince = ({ createdAt }: CameNode, at: string): boolean => createdAt >= Date.parse(at);

const hasPods = ({ pods }: CameNode, likeness: string): boolean =>
  pods.some((pod) => !pod.metadata.deletionTimestamp && likenessOf(pod) === likeness);

/** Why a node would not take a pod, were all others gone that can go; undefined: it would. */
const misfitIfEmpty = (pod: FitPod, { name, pods }: CameNode, state: ClusterState): Misfit | undefined =>
  state.whatIf(() => {
    const at = state.node(name);
    if (!at) return undefined;
    for (const one of pods) if (isMovable(one) && at.pods.has(fitPod(one))) state.remove(fitPod(one), name);
    const isFault = ({ plugin, everywhere }: Misfit) => !everywhere && !AROUND.includes(plugin);
    const lasting = at.node.taints.filter(({ key }) => !key.startsWith(PASSING_TAINT));
    if (lasting.length === at.node.taints.length) return new Judged(pod, state).misfits(at).find(isFault);
    const stay = state.removeNode(name);
    const then = state.addNode({ ...at.node, taints: lasting });
    for (const [one, count] of stay) state.place(one, name, count);
    return new Judged(pod, state).misfits(then).find(isFault);
  });

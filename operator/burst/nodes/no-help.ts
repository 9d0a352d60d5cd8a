import { rfc3339 } from '../../api/conditions.ts';
import type { PoolMemory, Stop } from '../../capacity/pool-memory.ts';
import { isMovable } from '../../kube/pods.ts';
import type { Pod } from '../../kube/resources.ts';
import type { Steps } from '../../kube/steps.ts';
import type { ReplicaDemand } from '../demand.ts';
import { Judged } from '../fit/judge.ts';
import type { FitPod, Misfit, Plugin } from '../fit/model.ts';
import { fitPod } from '../fit/pod.ts';
import type { ClusterState } from '../fit/state.ts';
import { likenessOf } from '../likeness.ts';
import { PROVISION_MS } from './grow.ts';

/** Most kept entries per pool: tenants choose the number of different pods. */
const MOST_KEPT = 64;

/** Plugins that depend on other pods: no fault of the node. */
const AROUND: readonly Plugin[] = ['PodTopologySpread', 'InterPodAffinity', 'VolumeRestrictions'];

/** Kubernetes' own taints are temporary (a full disk): no fault of the purchase. */
const PASSING_TAINT = 'node.kubernetes.io/';

/** Nodes between two pauses, each with some hundred pods at most. */
const PAUSE_AFTER_NODES = 10;

/**
 * Nodes count for a purchase only within this time after it, and only while younger than this: devices are assumed for
 * PROVISION_MS, so permanent gaps show after that.
 */
const JUDGED_MS = 2 * PROVISION_MS;

/** A Ready node of a pool. */
export interface CameNode {
  readonly name: string;
  readonly pool: string;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** All its pods. */
  readonly pods: readonly Pod[];
}

/** Inputs for judging purchases. */
interface HelpView {
  /** All nodes and pods. Unchanged afterwards. */
  readonly state: ClusterState;
  readonly demands: readonly ReplicaDemand[];
  /** Nodes that are not being drained. */
  readonly nodes: readonly CameNode[];
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/**
 * Memory of a pool after looking at new nodes: a node that was bought for pods and would not take them even when empty
 * ends further purchases for these pods. That is lifted when such a pool's node runs one of them, or the newest node
 * would take one after its settling time, with pauses. Pure.
 * @param digestNow digest of the pool at present
 */
export function* judgePurchases(
  memory: PoolMemory,
  name: string,
  digestNow: string,
  view: HelpView,
): Steps<PoolMemory> {
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
  for (const [pods, { cameAt }] of [...stops]) {
    yield;
    const [newest] = judged(cameAt);
    const replica = replicas.get(pods);
    // Until then devices are assumed (asReady).
    const isSettled = newest && view.now - newest.createdAt >= PROVISION_MS;
    const takesThem = isSettled && replica && misfitIfEmpty(replica, newest, view.state) === undefined;
    if (takesThem || (yield* runOn(came, cameAt, pods))) stops.delete(pods);
  }
  for (const { likeness, replica } of view.demands) {
    const boughtAt = likeness === undefined ? undefined : boughtFor[likeness];
    if (likeness === undefined || boughtAt === undefined || stops.has(likeness)) continue;
    yield;
    const [newest] = judged(boughtAt)
      // Older nodes may be tainted or filled for other reasons, and later ones belong to other purchases.
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

/** Records the pods that nodes of a pool are bought for; later ones are judged by the same first node. */
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

/** Whether one of the nodes since then has such pods. */
function* runOn(nodes: readonly CameNode[], since: string, likeness: string): Steps<boolean> {
  let looked = 0;
  for (const node of nodes) {
    if (isSince(node, since) && hasPods(node, likeness)) return true;
    if (++looked % PAUSE_AFTER_NODES === 0) yield;
  }
  return false;
}

/** Why a node would not take a pod even after all movable pods left; undefined: it would. */
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

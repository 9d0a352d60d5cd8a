import { isDeepStrictEqual } from 'node:util';
import { rfc3339 } from '../../api/conditions.ts';
import type { DesiredPool } from '../../api/pools.ts';
import type { WorkerCluster } from '../../api/workercluster.ts';
import type { DaemonSet } from '../../burst/fit/daemons.ts';
import { countOf, PROVISION_MS } from '../../burst/nodes/grow.ts';
import type { SizeChange } from '../../burst/nodes/model.ts';
import { noteBoughtFor } from '../../burst/nodes/no-help.ts';
import { type NodesPlan, planNodesInSteps } from '../../burst/nodes/plan.ts';
import { blockedBy, type WhyBlocked } from '../../burst/nodes/pod-budgets.ts';
import { whyNotEvicted } from '../../burst/nodes/shrink.ts';
import type { DepletedOffers } from '../../capacity/depleted-offers.ts';
import { isCoppices } from '../../capacity/desired-sizes.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import type { OpenCluster } from '../../clusters/open-clusters.ts';
import { KubeApiError } from '../../kube/errors.ts';
import type { RecordEvent } from '../../kube/events.ts';
import { isMovable } from '../../kube/pods.ts';
import { DAEMONSETS, type Node, PDBS } from '../../kube/resources.ts';
import { ownerOf, tenantSteps } from '../../kube/tenant-steps.ts';
import type { Said } from '../conditions.ts';
import type { DecidedSizes } from '../decided-sizes.ts';
import { noteInterrupted } from '../interrupted-offers.ts';
import { AskedFor, BUDGETS_FRESH_MS, DAEMONSETS_FRESH_AT_REST_MS, DAEMONSETS_FRESH_MS, mayEvict } from './asked-for.ts';
import { Batches, type BatchTimes } from './batches.ts';
import { FactsReader, podsThatMayMove } from './cluster-facts.ts';
import { autoscaledCondition, heldBack } from './condition.ts';
import { decisionOf } from './decision.ts';
import {
  beginEmptying,
  type EvictionTurn,
  emptiedSince,
  endEmptying,
  evictAll,
  evictionTurn,
  markEmpty,
} from './empty-node.ts';
import { ClusterMemory } from './memory.ts';
import { poolOf } from './nodes-seen.ts';
import { digestOfPool, type ObserveDependencies, observe, type Seen } from './observe.ts';

/** What the autoscaler works with. */
export interface AutoscalingDependencies extends ObserveDependencies {
  readonly capacity: Pick<DepletedOffers, 'known' | 'interrupted'>;
  readonly sizes: Pick<DecidedSizes, 'decide' | 'forget'>;
  readonly recordEvent: RecordEvent;
  /** Has the WorkerCluster of this key looked at: there is something new to say of it. */
  tell(key: string): void;
}

export interface AutoscalingTimes extends BatchTimes {
  /** How long a PodDisruptionBudget may keep a node from being emptied, milliseconds; then it is left alone for a while. */
  readonly patienceMs: number;
}

/** How often an eviction that was refused is asked for again, and a node looked at whose pods end. */
const EVICTION_RETRY_MS = 5_000;

/** How often a node is tried again that could not be changed. */
const PROBLEM_RETRY_MS = 30_000;

/** Decides how many nodes the pools have that are Coppice's to size, and empties those that go. */
export class Autoscaler {
  readonly #deps: AutoscalingDependencies;
  readonly #times: AutoscalingTimes;
  readonly #batches: Batches;
  readonly #facts: FactsReader;
  readonly #budgets: AskedFor<WhyBlocked>;
  readonly #daemonSets: AskedFor<readonly DaemonSet[]>;
  readonly #memory = new Map<string, ClusterMemory>();
  readonly #told = new Map<string, Said<'WorkerCluster'>>();

  constructor(deps: AutoscalingDependencies, times: AutoscalingTimes) {
    this.#deps = deps;
    this.#times = times;
    this.#batches = new Batches(times, () => +deps.now());
    this.#facts = new FactsReader(() => +deps.now());
    this.#budgets = new AskedFor(() => +deps.now(), PDBS, blockedBy);
    this.#daemonSets = new AskedFor(
      () => +deps.now(),
      DAEMONSETS,
      (sets) => sets as readonly DaemonSet[],
    );
  }

  /** Something has changed in a cluster. @returns whether it is the first news of a batch: how long to wait then, milliseconds */
  noteChange(key: string): number | undefined {
    return this.#batches.note(key) ? this.#times.idleMs : undefined;
  }

  /** What is said of the nodes of a cluster; undefined: nothing yet, what was said last holds. */
  condition(key: string, uid: string): Said<'WorkerCluster'> | undefined {
    return this.#memory.get(key)?.uid === uid ? this.#told.get(key) : undefined;
  }

  /** Nobody is to decide about the cluster any more, or it is gone. */
  forget(key: string): void {
    this.#facts.forget(key);
    this.#budgets.forget(key);
    this.#daemonSets.forget(key);
    this.#memory.delete(key);
    this.#told.delete(key);
  }

  /** Looks at a cluster, decides, and takes the next step. Everything begins by looking: it does not matter where the last look ended. */
  async reconcile(key: string, signal: AbortSignal): Promise<{ requeueAfterMs: number } | undefined> {
    const left = this.#batches.take(key);
    if (left > 0) return { requeueAfterMs: left };
    const { clusters, sizes } = this.#deps;
    const { uid = '', deletionTimestamp } = clusters.get(key)?.metadata ?? {};
    if (uid === '' || deletionTimestamp) {
      this.forget(key);
      return undefined;
    }
    const ownPools = (clusters.get(key)?.spec.pools ?? []).filter(isCoppices);
    const own = new Set(ownPools.map(({ name }) => name));
    await sizes.forget(key, uid, (pool) => own.has(pool), signal);
    const open = this.#deps.openClusters.get(key);
    // Nobody else would have nodes take pods again that were being emptied when a pool was taken from us.
    for (const node of open?.nodes.list() ?? [])
      if (!own.has(poolOf(node)) && !Number.isNaN(emptiedSince(node)))
        await attempted(endEmptying(open!.client, node, signal));
    if (own.size === 0) {
      this.forget(key);
      return undefined;
    }
    const memory = this.#memoryOf(key, uid);
    if (!open) return undefined;
    const pods = open.pods.list();
    const moving = podsThatMayMove(ownPools, open.nodes.list(), pods);
    const facts = await this.#facts.of(key, open.client, { pods, moving }, signal);
    const asked = await this.#ask(key, open, memory, signal);
    // What a cloud takes away is bought again where nothing else takes the pods, here and elsewhere.
    const cluster = clusters.get(key);
    if (cluster) noteInterrupted(this.#deps, cluster, open.nodes.list());
    const seen = observe(this.#deps, key, memory, { ...facts, ...asked });
    if (!seen) return undefined;
    const now = +this.#deps.now();
    const plan = await tenantSteps.run(ownerOf(seen.cluster, 'autoscaling'), planNodesInSteps(seen.view), signal);
    memory.unneeded(plan.shrinkage.unneeded, now);
    const problems = new Map<string, string>();
    await this.#letStay(seen, plan, problems, signal);
    const begun = () => evictionTurn(memory.unanswered, () => +this.#deps.now(), signal);
    const turn = begun();
    const emptied = await this.#goOnEmptying(seen, plan, memory, turn);
    await this.#keepEmpty(seen, emptied.waits, problems, turn);
    // A turn of their own: these nodes end within minutes, whatever the pods of others do.
    await this.#leaveInterrupted(seen, emptied.waits, problems, begun());
    await this.#decide(key, seen, plan, emptied.empty, problems, signal);
    for (const { node, why } of plan.shrinkage.begin) {
      const cordoned = beginEmptying(seen.open.client, seen.nodes.get(node)!, this.#deps.now(), signal);
      if (await isDone(cordoned, node, problems)) emptied.waits.set(node, why);
    }
    this.#tellHeld(seen.cluster, plan, memory);
    this.#tell(key, seen.cluster, autoscaledCondition(seen, plan, emptied.waits, problems));
    return nextLook(seen, plan, { isEmptying: emptied.waits.size > 0, hasProblems: problems.size > 0 }, memory, now);
  }

  /** What matters of a cluster beside what its caches have. */
  async #ask(key: string, { client, nodes, pods }: OpenCluster, memory: ClusterMemory, signal: AbortSignal) {
    const waits = pods.list().some(({ spec, metadata }) => !spec.nodeName && !metadata.deletionTimestamp);
    const freshMs = waits ? DAEMONSETS_FRESH_MS : DAEMONSETS_FRESH_AT_REST_MS;
    const daemonSets = await this.#daemonSets.in(key, client, freshMs, signal);
    const whyBlocked = mayEvict(nodes.list(), pods.list(), memory.unneededSince)
      ? await this.#budgets.in(key, client, BUDGETS_FRESH_MS, signal)
      : undefined;
    return { ...(daemonSets && { daemonSets }), ...(whyBlocked && { whyBlocked }) };
  }

  #memoryOf(key: string, uid: string): ClusterMemory {
    let memory = this.#memory.get(key);
    if (memory?.uid !== uid) {
      memory = new ClusterMemory(uid);
      this.#memory.set(key, memory);
    }
    return memory;
  }

  /** Nodes that were being emptied and are needed, or that nobody takes away: pods may go there again. */
  async #letStay(
    { nodes, open, cluster, spared }: Seen,
    { growth, shrinkage }: NodesPlan,
    problems: Map<string, string>,
    signal: AbortSignal,
  ): Promise<void> {
    const stay = new Map<string, string>([
      ...spared.map((node): [string, string] => [node, 'its pool needs it again']),
      ...growth.keep.map((node): [string, string] => [node, 'pods that wait have room there']),
      ...shrinkage.keep.map(({ node, why }): [string, string] => [node, why]),
    ]);
    for (const [name, why] of stay) {
      if (await isDone(endEmptying(open.client, nodes.get(name)!, signal), name, problems))
        this.#deps.recordEvent(cluster, 'Normal', 'NodeStays', `node ${name} is no longer emptied: ${why}`);
    }
  }

  /**
   * Nodes that a cloud is asked to end, until they are gone: somebody may let pods go there again, and nobody drains them later. None is ended
   * with pods on it.
   */
  async #keepEmpty(
    seen: Seen,
    waits: Map<string, string>,
    problems: Map<string, string>,
    turn: EvictionTurn,
  ): Promise<void> {
    if (!seen.isManaged) return;
    const { signal } = turn;
    for (const name of [...seen.leaving.values()].flat()) {
      const node = seen.nodes.get(name)!;
      const isKept = node.spec.unschedulable === true && !Number.isNaN(emptiedSince(node));
      if (!isKept) await isDone(beginEmptying(seen.open.client, node, this.#deps.now(), signal), name, problems);
      const { left, blocked } = await evictAll(seen.open.client, seen.podsOn.get(name) ?? [], turn);
      if (left.length > 0) waits.set(name, blocked ?? `${left.length} pods are still there`);
      else if (isKept) await isDone(markEmpty(seen.open.client, node, signal), name, problems);
    }
  }

  /** The machine ends by itself, and whoever made it makes another: all that can be done is to have pods leave in time. */
  async #leaveInterrupted(
    seen: Seen,
    waits: Map<string, string>,
    problems: Map<string, string>,
    turn: EvictionTurn,
  ): Promise<void> {
    const { interrupted, nodes, open, cluster } = seen;
    const { signal } = turn;
    for (const [name, why] of interrupted) {
      const node = nodes.get(name)!;
      if (Number.isNaN(emptiedSince(node))) {
        if (await isDone(beginEmptying(open.client, node, this.#deps.now(), signal), name, problems))
          this.#deps.recordEvent(cluster, 'Warning', 'NodeInterrupted', `the cloud takes node ${name} away: ${why}`);
      }
      const { left, blocked } = await evictAll(open.client, seen.podsOn.get(name) ?? [], turn);
      if (left.length > 0)
        waits.set(name, `the cloud takes it away (${why}); ${blocked ?? `${left.length} pods are still there`}`);
    }
  }

  async #goOnEmptying(seen: Seen, { growth, shrinkage }: NodesPlan, memory: ClusterMemory, turn: EvictionTurn) {
    const { nodes, open, cluster, view } = seen;
    const kept = new Set([...growth.keep, ...shrinkage.keep.map(({ node }) => node)]);
    const waits = new Map<string, string>();
    const empty: { pool: string; node: Node }[] = [];
    for (const { name, pool, isEmptying } of view.nodes) {
      if (!isEmptying || kept.has(name) || !view.mayTakeNodes) continue;
      const node = nodes.get(name)!;
      const pods = seen.podsOn.get(name) ?? [];
      // Others would leave in vain a node that one of them keeps.
      const held =
        typeof view.whyBlocked === 'function' ? whyNotEvicted(pods.filter(isMovable), view.whyBlocked) : undefined;
      const { left, blocked } =
        held === undefined ? await evictAll(open.client, pods, turn) : { left: pods.filter(isMovable), blocked: held };
      if (left.length === 0) {
        empty.push({ pool, node });
        continue;
      }
      const since = Math.max(emptiedSince(node), memory.lastLeft(name, left.length, +this.#deps.now()));
      const isOver = blocked !== undefined && +this.#deps.now() - since > this.#times.patienceMs;
      if (!isOver) {
        waits.set(name, blocked ?? `${left.length} pods are still there`);
        continue;
      }
      memory.giveUp(name, `it could not be emptied: ${blocked}`, +this.#deps.now());
      await attempted(endEmptying(open.client, node, turn.signal));
      this.#deps.recordEvent(
        cluster,
        'Warning',
        'NodeStays',
        `node ${name} could not be emptied and takes pods again: ${blocked}`,
      );
    }
    return { waits, empty };
  }

  /** Writes down what pools are to have: what is bought, and without what is empty. */
  async #decide(
    key: string,
    seen: Seen,
    { growth }: NodesPlan,
    empty: readonly { pool: string; node: Node }[],
    problems: Map<string, string>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const pool of seen.pools) {
      const view = seen.view.pools.find(({ name }) => name === pool.name)!;
      const grown = growth.sizes.find((change) => change.pool === pool.name);
      // What was ordered would be taken instead of what is empty.
      const isWhole = view.present >= view.count;
      const gone: Node[] = [];
      if (!grown && isWhole)
        // One that is not marked is not the one that would go.
        for (const one of empty)
          if (one.pool === pool.name && (await this.#isMarked(seen, one.node, problems, signal))) gone.push(one.node);
      const known = seen.decided.get(pool.name);
      const decision = decisionOf({
        pool,
        known,
        grown,
        replaced: seen.replaced.get(pool.name),
        gone: gone.map(({ metadata }) => metadata.name),
        leaving: seen.leaving.get(pool.name) ?? [],
        spared: seen.spared,
        memory: memoryOf(seen, pool, grown, this.#deps.now()),
      });
      if (!decision) continue;
      const { count, why } = decision.size;
      const at = (known?.count === count ? known.at : undefined) ?? rfc3339(this.#deps.now());
      const size = { ...decision.size, at };
      await this.#deps.sizes.decide({ key, uid: seen.cluster.metadata.uid ?? '', pool, size }, signal);
      for (const name of decision.revived)
        await isDone(endEmptying(seen.open.client, seen.nodes.get(name)!, signal), name, problems);
      if (count === pool.count) continue;
      const [reason, words] = count > pool.count ? ['PoolGrows', 'more'] : ['PoolShrinks', 'fewer'];
      const message = `pool ${pool.name} is to have ${countOf(count, 'node')}, ${Math.abs(count - pool.count)} ${words}: ${why}`;
      this.#deps.recordEvent(seen.cluster, 'Normal', reason, message);
    }
  }

  /** Marks a node that goes. @returns false: it is gone already, or it cannot be changed, which `problems` then says */
  async #isMarked(seen: Seen, node: Node, problems: Map<string, string>, signal: AbortSignal): Promise<boolean> {
    const { name } = node.metadata;
    return isDone(markEmpty(seen.open.client, node, signal), name, problems);
  }

  /** Of each pool once, when a budget begins to hold nodes back: the condition has how many there are. */
  #tellHeld(cluster: WorkerCluster, { shrinkage: { held } }: NodesPlan, memory: ClusterMemory): void {
    const begun = memory.heldBack(held.map(({ pool }) => pool));
    for (const pool of new Set(begun)) {
      const message = heldBack(held.find((one) => one.pool === pool)!);
      this.#deps.recordEvent(cluster, 'Normal', 'NodesHeldBack', message);
    }
  }

  #tell(key: string, cluster: WorkerCluster, condition: Said<'WorkerCluster'>): void {
    if (isDeepStrictEqual(this.#told.get(key), condition)) return;
    const before = this.#told.get(key);
    this.#told.set(key, condition);
    if (condition.status === 'False' && before?.message !== condition.message)
      this.#deps.recordEvent(cluster, 'Warning', condition.reason ?? '', condition.message ?? '');
    this.#deps.tell(key);
  }
}

/** What is to be kept of a pool with what is bought now. */
function memoryOf({ memories }: Seen, pool: DesiredPool, grown: SizeChange | undefined, now: Date): PoolMemory {
  const memory = memories.get(pool.name) ?? {};
  return grown?.pods ? noteBoughtFor(memory, digestOfPool(pool), grown.pods, now) : memory;
}

/**
 * Waits for a change of one node. Whatever the API server answers concerns that node, and the others go on.
 * @returns undefined: it is changed; else what the API server says, for people; empty where the node is gone or was changed meanwhile: the
 * cache brings what became of it
 */
async function attempted(done: Promise<void>): Promise<string | undefined> {
  try {
    await done;
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return error.isNotFound || error.isConflict ? '' : error.message;
  }
}

/** Whether a node was changed; `problems` says why not. */
async function isDone(done: Promise<void>, node: string, problems: Map<string, string>): Promise<boolean> {
  const problem = await attempted(done);
  if (problem) problems.set(node, problem);
  return problem === undefined;
}

function nextLook(
  { view, changesAt }: Seen,
  { growth, shrinkage }: NodesPlan,
  { isEmptying, hasProblems }: { isEmptying: boolean; hasProblems: boolean },
  memory: ClusterMemory,
  now: number,
): { requeueAfterMs: number } | undefined {
  const times = [
    ...changesAt,
    ...(shrinkage.next === undefined ? [] : [shrinkage.next]),
    ...(isEmptying ? [now + EVICTION_RETRY_MS] : []),
    ...(hasProblems ? [now + PROBLEM_RETRY_MS] : []),
    ...view.nodes.flatMap(({ name }) => memory.leftAlone(name, now)?.until ?? []),
    // A purchase that does not come is no supply any more.
    ...view.pools.flatMap(({ name, decidedAt }) =>
      growth.ordered.has(name) && decidedAt !== undefined ? [decidedAt + PROVISION_MS + 1] : [],
    ),
    // What is sold out may be had again, and a pool that was refused by a quota: nobody tells.
    ...(growth.waiting.some(({ reason }) => reason === 'NoOffer' || reason === 'OverQuota') ? [now + 30_000] : []),
  ];
  const due = Math.min(...times);
  return Number.isFinite(due) ? { requeueAfterMs: Math.max(100, due - now) } : undefined;
}

import { rfc3339 } from '../../api/conditions.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { countOfGrowth, PROVISION_MS } from '../../burst/nodes/grow.ts';
import type { SizeChange } from '../../burst/nodes/model.ts';
import { noteBoughtFor } from '../../burst/nodes/no-help.ts';
import { type NodesPlan, planNodesInSteps } from '../../burst/nodes/plan.ts';
import { whyNotEvicted } from '../../burst/nodes/shrink.ts';
import type { PoolMemory } from '../../capacity/pool-memory.ts';
import { KubeApiError } from '../../kube/errors.ts';
import { isMovable } from '../../kube/pods.ts';
import type { Node } from '../../kube/resources.ts';
import { heldBack } from './condition.ts';
import { decisionOf } from './decision.ts';
import { type EvictionTurn, emptiedSince, evictionTurn } from './empty-node.ts';
import type { ClusterMemory } from './memory.ts';
import { type ClusterNodesSeen, digestOfPool, observeNodes } from './observe.ts';
import type { NodesWorld } from './world.ts';

/** Interval of retrying blocked evictions, and of checking draining nodes. */
const EVICTION_RETRY_MS = 5_000;

/** Interval of retrying a node that could not be changed. */
const PROBLEM_RETRY_MS = 30_000;

/** Interval of retrying sold-out offers and quota refusals, which cause no event. */
const OFFER_RETRY_MS = 30_000;

/** Result of a cycle for a cluster's nodes. */
interface NodesLooked {
  readonly seen: ClusterNodesSeen;
  readonly plan: NodesPlan;
  /** Names of draining nodes with the reason to wait. */
  readonly waits: ReadonlyMap<string, string>;
  /** Names of nodes that could not be changed, with the API server's error. */
  readonly problems: ReadonlyMap<string, string>;
  /** Next cycle without a change, milliseconds since the epoch. Absent: none. */
  readonly next?: number;
}

/**
 * Observes a cluster's nodes, decides, and takes the next step, in a garden or a rehearsal, independently of where the
 * last cycle ended.
 * @param patienceMs how long a PodDisruptionBudget may block a drain, milliseconds; then the node rests
 * @throws errors of the world's acts
 */
export async function lookAtNodes(
  world: NodesWorld,
  memory: ClusterMemory,
  patienceMs: number,
  signal: AbortSignal,
): Promise<NodesLooked> {
  const now = +world.now();
  const seen = await world.run(observeNodes(world, memory), signal);
  const plan = await world.run(planNodesInSteps(seen.view), signal);
  return new NodesLook(world, memory, { seen, plan, now }, patienceMs, signal).run();
}

class NodesLook {
  readonly #world: NodesWorld;
  readonly #memory: ClusterMemory;
  readonly #patienceMs: number;
  readonly #signal: AbortSignal;
  readonly #seen: ClusterNodesSeen;
  readonly #plan: NodesPlan;
  /** Start of this cycle, milliseconds since the epoch. */
  readonly #begunAt: number;
  readonly #waits = new Map<string, string>();
  readonly #problems = new Map<string, string>();

  constructor(
    world: NodesWorld,
    memory: ClusterMemory,
    { seen, plan, now }: Pick<NodesLooked, 'seen' | 'plan'> & { readonly now: number },
    patienceMs: number,
    signal: AbortSignal,
  ) {
    this.#world = world;
    this.#memory = memory;
    this.#patienceMs = patienceMs;
    this.#signal = signal;
    this.#seen = seen;
    this.#plan = plan;
    this.#begunAt = now;
  }

  async run(): Promise<NodesLooked> {
    const { begin, unneeded } = this.#plan.shrinkage;
    this.#memory.unneeded(unneeded, this.#begunAt);
    await this.#letStay();
    const turn = this.#evictionTurn();
    const empty = await this.#goOnEmptying(turn);
    await this.#keepEmpty(turn);
    // A separate time limit: interrupted nodes end within minutes, whatever other drains do.
    await this.#leaveInterrupted(this.#evictionTurn());
    await this.#decide(empty);
    for (const { node, why } of begin)
      if (await this.#isDone(this.#world.beginEmptying(this.#node(node), this.#signal), node))
        this.#waits.set(node, why);
    this.#tellHeld();
    const next = this.#nextAfter();
    return {
      seen: this.#seen,
      plan: this.#plan,
      waits: this.#waits,
      problems: this.#problems,
      ...(Number.isFinite(next) && { next }),
    };
  }

  #now(): number {
    return +this.#world.now();
  }

  #node(name: string): Node {
    return this.#seen.nodes.get(name)!;
  }

  #evictionTurn(): EvictionTurn {
    return evictionTurn(this.#memory.unanswered, () => this.#now(), this.#signal);
  }

  /** Uncordons draining nodes that are needed, or that nobody will remove. */
  async #letStay(): Promise<void> {
    const { growth, shrinkage } = this.#plan;
    const stay = new Map<string, string>([
      ...this.#seen.spared.map((node): [string, string] => [node, 'its pool needs it again']),
      ...growth.keep.map((node): [string, string] => [node, 'pods that wait have room there']),
      ...shrinkage.keep.map(({ node, why }): [string, string] => [node, why]),
    ]);
    for (const [name, why] of stay) {
      if (await this.#isDone(this.#world.endEmptying(this.#node(name), this.#signal), name))
        this.#world.recordEvent('Normal', 'NodeStays', `node ${name} is no longer emptied: ${why}`);
    }
  }

  /** Keeps nodes cordoned that a cloud was asked to end: no later drain exists, and none must end with pods. */
  async #keepEmpty(turn: EvictionTurn): Promise<void> {
    const { isManaged, leaving, podsOn } = this.#seen;
    if (!isManaged) return;
    for (const name of [...leaving.values()].flat()) {
      const node = this.#node(name);
      const isKept = node.spec.unschedulable === true && !Number.isNaN(emptiedSince(node));
      if (!isKept) await this.#isDone(this.#world.beginEmptying(node, this.#signal), name);
      const { left, blocked } = await this.#world.evict(node, podsOn.get(name) ?? [], turn);
      if (left.length > 0) this.#waits.set(name, blocked ?? `${left.length} pods are still there`);
      else if (isKept) await this.#isDone(this.#world.markEmpty(node, this.#signal), name);
    }
  }

  /**
   * Drains interrupted nodes: the machine ends by itself and is replaced by its maker, so the pods only need to leave
   * in time.
   */
  async #leaveInterrupted(turn: EvictionTurn): Promise<void> {
    const { interrupted, podsOn } = this.#seen;
    for (const [name, why] of interrupted) {
      const node = this.#node(name);
      if (Number.isNaN(emptiedSince(node))) {
        if (await this.#isDone(this.#world.beginEmptying(node, this.#signal), name))
          this.#world.recordEvent('Warning', 'NodeInterrupted', `the cloud takes node ${name} away: ${why}`);
      }
      const { left, blocked } = await this.#world.evict(node, podsOn.get(name) ?? [], turn);
      if (left.length > 0)
        this.#waits.set(name, `the cloud takes it away (${why}); ${blocked ?? `${left.length} pods are still there`}`);
    }
  }

  /** @returns fully drained nodes with their pools */
  async #goOnEmptying(turn: EvictionTurn): Promise<{ pool: string; node: Node }[]> {
    const { growth, shrinkage } = this.#plan;
    const { view, podsOn } = this.#seen;
    const kept = new Set([...growth.keep, ...shrinkage.keep.map(({ node }) => node)]);
    const empty: { pool: string; node: Node }[] = [];
    for (const { name, pool, isEmptying } of view.nodes) {
      if (!isEmptying || kept.has(name) || !view.mayTakeNodes) continue;
      const node = this.#node(name);
      const pods = podsOn.get(name) ?? [];
      // Evictions are in vain while one pod keeps the node.
      const held =
        typeof view.whyBlocked === 'function' ? whyNotEvicted(pods.filter(isMovable), view.whyBlocked) : undefined;
      const { left, blocked } =
        held === undefined
          ? await this.#world.evict(node, pods, turn)
          : { left: pods.filter(isMovable), blocked: held };
      if (left.length === 0) {
        empty.push({ pool, node });
        continue;
      }
      const since = Math.max(emptiedSince(node), this.#memory.lastLeft(name, left.length, this.#now()));
      const isOver = blocked !== undefined && this.#now() - since > this.#patienceMs;
      if (!isOver) {
        this.#waits.set(name, blocked ?? `${left.length} pods are still there`);
        continue;
      }
      this.#memory.giveUp(name, `it could not be emptied: ${blocked}`, this.#now());
      await attemptChange(this.#world.endEmptying(node, this.#signal));
      const message = `node ${name} could not be emptied and takes pods again: ${blocked}`;
      this.#world.recordEvent('Warning', 'NodeStays', message);
    }
    return empty;
  }

  /** Stores pool sizes: with bought nodes, without empty ones. */
  async #decide(empty: readonly { pool: string; node: Node }[]): Promise<void> {
    const { pools, view, decided, replaced, leaving, spared } = this.#seen;
    for (const pool of pools) {
      const { present, count: counted } = view.pools.find(({ name }) => name === pool.name)!;
      const grown = this.#plan.growth.sizes.find((change) => change.pool === pool.name);
      // Otherwise the ordered machine would be removed instead of the empty one.
      const isWhole = present >= counted;
      const gone: Node[] = [];
      if (!grown && isWhole)
        // An unmarked node is not the one that would be removed.
        for (const one of empty) if (one.pool === pool.name && (await this.#isMarked(one.node))) gone.push(one.node);
      const known = decided.get(pool.name);
      const decision = decisionOf({
        pool,
        known,
        grown,
        replaced: replaced.get(pool.name),
        gone: gone.map(({ metadata }) => metadata.name),
        leaving: leaving.get(pool.name) ?? [],
        spared,
        memory: this.#memoryOf(pool, grown),
      });
      if (!decision) continue;
      const { count, why } = decision.size;
      const at = (known?.count === count ? known.at : undefined) ?? rfc3339(this.#world.now());
      await this.#world.decide(pool, { ...decision.size, at }, this.#signal);
      for (const name of decision.revived)
        await this.#isDone(this.#world.endEmptying(this.#node(name), this.#signal), name);
      if (count === pool.count) continue;
      const [reason, words] = count > pool.count ? ['PoolGrows', 'more'] : ['PoolShrinks', 'fewer'];
      const message = `pool ${pool.name} is to have ${countOfGrowth(count, 'node')}, ${Math.abs(count - pool.count)} ${words}: ${why}`;
      this.#world.recordEvent('Normal', reason, message);
    }
  }

  /** Memory of a pool to store, with the present purchase. */
  #memoryOf(pool: DesiredPool, grown: SizeChange | undefined): PoolMemory {
    const memory = this.#seen.memories.get(pool.name) ?? {};
    return grown?.pods ? noteBoughtFor(memory, digestOfPool(pool), grown.pods, this.#world.now()) : memory;
  }

  /** Marks a node to be removed. @returns false: already gone, or not changeable (see `problems`) */
  #isMarked(node: Node): Promise<boolean> {
    return this.#isDone(this.#world.markEmpty(node, this.#signal), node.metadata.name);
  }

  /** One Event per pool when a budget begins to keep nodes; the condition has the number. */
  #tellHeld(): void {
    const { held } = this.#plan.shrinkage;
    for (const pool of new Set(this.#memory.heldBack(held.map((one) => one.pool))))
      this.#world.recordEvent('Normal', 'NodesHeldBack', heldBack(held.find((one) => one.pool === pool)!));
  }

  /** Whether the change succeeded; otherwise `problems` has the reason. */
  async #isDone(done: Promise<void>, node: string): Promise<boolean> {
    const problem = await attemptChange(done);
    if (problem) this.#problems.set(node, problem);
    return problem === undefined;
  }

  /** Next cycle without a change; Infinity: none. */
  #nextAfter(): number {
    const now = this.#begunAt;
    const { view, changesAt } = this.#seen;
    const { growth, shrinkage } = this.#plan;
    return Math.min(
      ...changesAt,
      ...(shrinkage.next === undefined ? [] : [shrinkage.next]),
      ...(this.#waits.size > 0 ? [now + EVICTION_RETRY_MS] : []),
      ...(this.#problems.size > 0 ? [now + PROBLEM_RETRY_MS] : []),
      ...view.nodes.flatMap(({ name }) => this.#memory.leftAlone(name, now)?.until ?? []),
      // An overdue purchase is no supply any more.
      ...view.pools.flatMap(({ name, decidedAt }) =>
        growth.ordered.has(name) && decidedAt !== undefined ? [decidedAt + PROVISION_MS + 1] : [],
      ),
      ...(growth.waiting.some(({ reason }) => reason === 'NoOffer' || reason === 'OverQuota')
        ? [now + OFFER_RETRY_MS]
        : []),
    );
  }
}

/**
 * Awaits a change of one node; an error concerns that node alone.
 * @returns undefined: changed; else the API server's error for people; empty when the node is gone or was changed
 * meanwhile, which the cache will show
 */
export async function attemptChange(done: Promise<void>): Promise<string | undefined> {
  try {
    await done;
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return error.isNotFound || error.isConflict ? '' : error.message;
  }
}

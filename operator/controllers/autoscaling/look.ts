import { rfc3339 } from '../../api/conditions.ts';
import type { DesiredPool } from '../../api/pools.ts';
import { countOf, PROVISION_MS } from '../../burst/nodes/grow.ts';
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
import { digestOfPool, observe, type Seen } from './observe.ts';
import type { NodesWorld } from './world.ts';

/** How often an eviction that was refused is asked for again, and a node looked at whose pods end. */
const EVICTION_RETRY_MS = 5_000;

/** How often a node is tried again that could not be changed. */
const PROBLEM_RETRY_MS = 30_000;

/** What was sold out, or was refused by a quota, is tried again after this long: nobody tells when it may be had. */
const OFFER_RETRY_MS = 30_000;

/** What a look at the nodes of a cluster has come to. */
interface NodesLooked {
  readonly seen: Seen;
  readonly plan: NodesPlan;
  /** Names of nodes that are being emptied, and what they wait for. */
  readonly waits: ReadonlyMap<string, string>;
  /** Names of nodes that could not be changed, and what the API server says. */
  readonly problems: ReadonlyMap<string, string>;
  /** When to look again though nothing happens, milliseconds since the epoch. Absent: nothing changes by itself. */
  readonly next?: number;
}

/**
 * Looks at the nodes of a cluster, decides, and takes the next step: in a garden, and in a rehearsal. Everything begins by looking: it does not
 * matter where the last look ended.
 * @param patienceMs how long a PodDisruptionBudget may keep a node from being emptied, milliseconds; then it is left alone for a while
 * @throws as the world's acts do
 */
export async function lookAtNodes(
  world: NodesWorld,
  memory: ClusterMemory,
  patienceMs: number,
  signal: AbortSignal,
): Promise<NodesLooked> {
  const now = +world.now();
  const seen = observe(world, memory);
  const plan = await world.run(planNodesInSteps(seen.view), signal);
  return new NodesLook(world, memory, { seen, plan, now }, patienceMs, signal).run();
}

class NodesLook {
  readonly #world: NodesWorld;
  readonly #memory: ClusterMemory;
  readonly #patienceMs: number;
  readonly #signal: AbortSignal;
  readonly #seen: Seen;
  readonly #plan: NodesPlan;
  /** When this look began, milliseconds since the epoch. */
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
    // A turn of their own: these nodes end within minutes, whatever the pods of others do.
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

  /** Nodes that were being emptied and are needed, or that nobody takes away: pods may go there again. */
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

  /**
   * Nodes that a cloud is asked to end, until they are gone: somebody may let pods go there again, and nobody drains them later. None is ended
   * with pods on it.
   */
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

  /** The machine ends by itself, and whoever made it makes another: all that can be done is to have pods leave in time. */
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

  /** @returns nodes on which nothing is left that must leave, with their pools */
  async #goOnEmptying(turn: EvictionTurn): Promise<{ pool: string; node: Node }[]> {
    const { growth, shrinkage } = this.#plan;
    const { view, podsOn } = this.#seen;
    const kept = new Set([...growth.keep, ...shrinkage.keep.map(({ node }) => node)]);
    const empty: { pool: string; node: Node }[] = [];
    for (const { name, pool, isEmptying } of view.nodes) {
      if (!isEmptying || kept.has(name) || !view.mayTakeNodes) continue;
      const node = this.#node(name);
      const pods = podsOn.get(name) ?? [];
      // Others would leave in vain a node that one of them keeps.
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
      await attempted(this.#world.endEmptying(node, this.#signal));
      const message = `node ${name} could not be emptied and takes pods again: ${blocked}`;
      this.#world.recordEvent('Warning', 'NodeStays', message);
    }
    return empty;
  }

  /** Writes down what pools are to have: what is bought, and without what is empty. */
  async #decide(empty: readonly { pool: string; node: Node }[]): Promise<void> {
    const { pools, view, decided, replaced, leaving, spared } = this.#seen;
    for (const pool of pools) {
      const { present, count: counted } = view.pools.find(({ name }) => name === pool.name)!;
      const grown = this.#plan.growth.sizes.find((change) => change.pool === pool.name);
      // What was ordered would be taken instead of what is empty.
      const isWhole = present >= counted;
      const gone: Node[] = [];
      if (!grown && isWhole)
        // One that is not marked is not the one that would go.
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
      const message = `pool ${pool.name} is to have ${countOf(count, 'node')}, ${Math.abs(count - pool.count)} ${words}: ${why}`;
      this.#world.recordEvent('Normal', reason, message);
    }
  }

  /** What is to be kept of a pool with what is bought now. */
  #memoryOf(pool: DesiredPool, grown: SizeChange | undefined): PoolMemory {
    const memory = this.#seen.memories.get(pool.name) ?? {};
    return grown?.pods ? noteBoughtFor(memory, digestOfPool(pool), grown.pods, this.#world.now()) : memory;
  }

  /** Marks a node that goes. @returns false: it is gone already, or it cannot be changed, which `problems` then says */
  #isMarked(node: Node): Promise<boolean> {
    return this.#isDone(this.#world.markEmpty(node, this.#signal), node.metadata.name);
  }

  /** Of each pool once, when a budget begins to hold nodes back: the condition has how many there are. */
  #tellHeld(): void {
    const { held } = this.#plan.shrinkage;
    for (const pool of new Set(this.#memory.heldBack(held.map((one) => one.pool))))
      this.#world.recordEvent('Normal', 'NodesHeldBack', heldBack(held.find((one) => one.pool === pool)!));
  }

  /** Whether a node was changed; `problems` says why not. */
  async #isDone(done: Promise<void>, node: string): Promise<boolean> {
    const problem = await attempted(done);
    if (problem) this.#problems.set(node, problem);
    return problem === undefined;
  }

  /** When to look again though nothing happens; Infinity: never. */
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
      // A purchase that does not come is no supply any more.
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
 * Waits for a change of one node. Whatever the API server answers concerns that node, and the others go on.
 * @returns undefined: it is changed; else what the API server says, for people; empty where the node is gone or was changed meanwhile: the
 * cache brings what became of it
 */
export async function attempted(done: Promise<void>): Promise<string | undefined> {
  try {
    await done;
    return undefined;
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    return error.isNotFound || error.isConflict ? '' : error.message;
  }
}

import type { OrderedNodes } from '../../burst/clusters/model.ts';
import type { OrderNeed } from '../../burst/clusters/plan-model.ts';
import type { Demand } from '../../hubs/contract.ts';
import { Placements } from './placements.ts';

/** Since when a source waits without a break, milliseconds since the epoch. */
export interface WaitingSince {
  /** The hub has no place for it. */
  readonly since: number;
  /** The hub reports it unchanged. */
  readonly unchangedSince: number;
}

/** After a longer silence of the hub, waiting restarts. */
const LONGEST_SILENCE_MS = 60_000;
/** Retry interval of refused templates: a quota may have room by then. */
const REFUSED_MS = 60_000;

/**
 * In-memory start times of continuous states. After a restart they begin again, so that nothing is bought or given back
 * for an unobserved period.
 */
export class BurstMemory {
  readonly placements = new Placements();
  readonly #waiting = new Map<
    string,
    { readonly sources: ReadonlyMap<string, WaitingSince & { readonly says: string }>; readonly seen: number }
  >();
  readonly #idle = new Map<string, number>();
  /** When work last needed an idle cluster. */
  readonly #needed = new Map<string, number>();
  /** By ordered cluster. */
  readonly #needs = new Map<string, NonNullable<OrderedNodes['lessNeeded']>>();
  readonly #tried = new Map<
    string,
    { readonly template: string; readonly at: number; readonly problem: string | undefined }
  >();

  /**
   * Since when each source waits. The hub's own times are ignored: a hub that places work and takes it back restarts
   * them.
   * @returns by source
   */
  waiting(
    hub: string,
    demands: readonly Pick<Demand, 'source' | 'count' | 'each' | 'others'>[],
    now: number,
  ): ReadonlyMap<string, WaitingSince> {
    const known = this.#waiting.get(hub);
    // The period of a long silence is unobserved.
    const before = known && now - known.seen <= LONGEST_SILENCE_MS ? known.sources : undefined;
    const sources = new Map(
      [...Map.groupBy(demands, ({ source }) => source)].map(([source, parts]) => {
        const says = JSON.stringify(parts.map(({ count, each, others }) => [count, each, others]));
        const last = before?.get(source);
        const unchangedSince = last?.says === says ? last.unchangedSince : now;
        return [source, { since: last?.since ?? now, unchangedSince, says }];
      }),
    );
    this.#waiting.set(hub, { sources, seen: now });
    return sources;
  }

  /** Forgets a hub without policies. */
  forgetHub(hub: string): void {
    this.#waiting.delete(hub);
    this.placements.forget(hub);
  }

  /** Since when a cluster has no work. @param isIdle undefined: unknown, which restarts the time */
  idle(cluster: string, isIdle: boolean | undefined, now: number): number | undefined {
    if (!isIdle) {
      this.#idle.delete(cluster);
      this.#needed.delete(cluster);
      return undefined;
    }
    const needed = this.#needed.get(cluster);
    const since = needed === undefined ? (this.#idle.get(cluster) ?? now) : now;
    // The first cycle after it is the first without need.
    if (needed !== undefined && needed < now) this.#needed.delete(cluster);
    this.#idle.set(cluster, since);
    return since;
  }

  /** Forgets clusters that a policy no longer has. @param uid of the policy @param keys of its clusters */
  keepOnly(uid: string, keys: ReadonlySet<string>): void {
    for (const known of [this.#idle, this.#needed, this.#needs])
      for (const key of known.keys()) if (key.startsWith(`${uid}/`) && !keys.has(key)) known.delete(key);
  }

  /** Work for this cluster waits in this cycle: its idle time restarts with the next one. */
  needed(cluster: string, now: number): void {
    if (this.#idle.has(cluster)) this.#needed.set(cluster, now);
  }

  /**
   * Records how many nodes an order needs: the most since fewer than all suffice.
   * @param need undefined: all of them, or unknown
   */
  noteNeed(order: string, need: OrderNeed | undefined, now: number): void {
    if (!need) {
      this.#needs.delete(order);
      return;
    }
    const { ordered, nodes } = need;
    const known = this.#needs.get(order);
    const most = new Map(
      [...ordered.keys()].map((pool) => [pool, Math.max(nodes.get(pool) ?? 0, known?.nodes.get(pool) ?? 0)]),
    );
    // After a cut all of the nodes were needed once: the time starts again.
    const isFewer = [...ordered].some(([pool, count]) => most.get(pool)! < count);
    this.#needs.set(order, known && isFewer ? { since: known.since, nodes: most } : { since: now, nodes });
  }

  /** Most nodes that an order has needed, and since when all were not; undefined: all are needed, or unknown. */
  lessNeeded(order: string): OrderedNodes['lessNeeded'] {
    return this.#needs.get(order);
  }

  /** Cached verdict of API server and quotas on a candidate's template; a refusal is retried after a while. */
  async tried(
    candidate: string,
    template: string,
    now: number,
    ask: () => Promise<string | undefined>,
  ): Promise<string | undefined> {
    const known = this.#tried.get(candidate);
    const isOld = known?.problem !== undefined && now - known.at >= REFUSED_MS;
    if (known?.template === template && !isOld) return known.problem;
    const problem = await ask();
    this.#tried.set(candidate, { template, at: now, problem });
    return problem;
  }

  /** Forgets the verdict. */
  forgetTried(candidate: string): void {
    this.#tried.delete(candidate);
  }
}

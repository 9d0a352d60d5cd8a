import type { Demand } from '../../hubs/contract.ts';
import { Placements } from './placements.ts';

/** Since when a source is so without a break, milliseconds since the epoch. */
export interface Waits {
  /** Its hub has no place for it. */
  readonly since: number;
  /** Its hub says the same of it. */
  readonly unchangedSince: number;
}

/** A hub that did not answer for longer has its work wait anew. */
const LONGEST_SILENCE_MS = 60_000;
/** What was refused is tried again after this long: a quota may have room by then. */
const REFUSED_MS = 60_000;

/**
 * What is remembered only as long as this process lives: since when something is so without a break. After a restart all of it begins anew,
 * so that nothing is bought or given back for what happened in between.
 */
export class BurstMemory {
  readonly placements = new Placements();
  readonly #waiting = new Map<
    string,
    { readonly sources: ReadonlyMap<string, Waits & { readonly says: string }>; readonly seen: number }
  >();
  readonly #idle = new Map<string, number>();
  /** When work last needed what is idle. */
  readonly #needed = new Map<string, number>();
  readonly #tried = new Map<
    string,
    { readonly template: string; readonly at: number; readonly problem: string | undefined }
  >();

  /**
   * Since when each source waits. What a hub itself says of that is not used: one that places work and takes it back again has it wait from
   * then on.
   * @returns by source
   */
  waiting(
    hub: string,
    demands: readonly Pick<Demand, 'source' | 'count' | 'each' | 'others'>[],
    now: number,
  ): ReadonlyMap<string, Waits> {
    const known = this.#waiting.get(hub);
    // What was in a long silence nobody knows.
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

  /** Nobody asks this hub any more. */
  forgetHub(hub: string): void {
    this.#waiting.delete(hub);
    this.placements.forget(hub);
  }

  /** Since when a cluster is without work. @param isIdle undefined: nobody can tell, and it counts anew */
  idle(cluster: string, isIdle: boolean | undefined, now: number): number | undefined {
    if (!isIdle) {
      this.#idle.delete(cluster);
      this.#needed.delete(cluster);
      return undefined;
    }
    const needed = this.#needed.get(cluster);
    const since = needed === undefined ? (this.#idle.get(cluster) ?? now) : now;
    // The first look after it is the first in which nothing needs it.
    if (needed !== undefined && needed < now) this.#needed.delete(cluster);
    this.#idle.set(cluster, since);
    return since;
  }

  /** Forgets what it knows of a policy's clusters that the policy has no more. @param uid of the policy @param keys of those that it has */
  keepOnly(uid: string, keys: ReadonlySet<string>): void {
    for (const known of [this.#idle, this.#needed])
      for (const key of known.keys()) if (key.startsWith(`${uid}/`) && !keys.has(key)) known.delete(key);
  }

  /** In this look work waits that would go to this cluster: it is idle from the next look on at the earliest. */
  needed(cluster: string, now: number): void {
    if (this.#idle.has(cluster)) this.#needed.set(cluster, now);
  }

  /**
   * What the API server and quotas have said to a template of a candidate: asked once for each, and again after a while where they refused
   * it.
   */
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

  /** It is asked again. */
  forgetTried(candidate: string): void {
    this.#tried.delete(candidate);
  }
}

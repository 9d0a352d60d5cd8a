import type { OfferedPool } from '../../burst/clusters/model.ts';
import { nodeMisfit } from '../../burst/fit/filters/node.ts';
import { freeFor, roomFor } from '../../burst/fit/filters/resources.ts';
import type { FitPod } from '../../burst/fit/model.ts';
import { nodeOf } from '../../burst/fit/node.ts';
import { fitPod } from '../../burst/fit/pod.ts';
import { ClusterState } from '../../burst/fit/state.ts';
import { EventQueue } from '../event-queue.ts';
import type { TracedWork, TraceLine, WorkSize } from '../trace/trace-line.ts';
import { podOf } from '../work-model.ts';

interface Group {
  readonly pod: FitPod;
  /** Pods per node, in order of placement. */
  readonly on: Map<string, number>;
}

/**
 * Places all concurrent workloads of a trace on nodes, each pod on one node, never moved: first on standing nodes, then
 * on bought ones with room, else on a new node of the pool with the lowest price per such pod. A feasible plan, not an
 * optimal one.
 */
export class PeakPacking<T extends { readonly pool: OfferedPool; readonly hourly: number }> {
  readonly #room = new ClusterState();
  /** Nodes in order of filling. */
  readonly #names: string[] = [];
  readonly #sold: readonly T[];
  readonly #bought = new Map<T, number>();
  readonly #ends = new EventQueue();
  readonly #groups = new Map<string, Group>();
  readonly #sizes = new Map<string, WorkSize>();
  #isPlan = true;

  constructor(standing: readonly { readonly pool: OfferedPool; readonly count: number }[], sold: readonly T[]) {
    this.#sold = sold;
    for (const { pool, count } of standing) for (let index = 0; index < count; index++) this.#open(pool);
  }

  add({ at, event, cluster, work }: TraceLine): void {
    if (event === 'time') return;
    this.#endUntil(at);
    // Workloads restricted to some clusters, or that resize one, may not find room in this plan.
    if (!work || cluster !== '' || work.clusterLabels || work.kind) this.#isPlan = false;
    if (!work) return;
    const size = work.size ?? this.#sizes.get(work.name);
    if (!size || !this.#isPlan) return;
    this.#sizes.set(work.name, size);
    if (work.jobs !== undefined) this.#begin(work, size, at);
    else this.#scale(work, size);
  }

  /** Bought nodes per offer; undefined: some workload may not find room. */
  plan(): ReadonlyMap<T, number> | undefined {
    return this.#isPlan ? this.#bought : undefined;
  }

  #begin({ jobs = 0, lifeMs = 0, nodes }: TracedWork, size: WorkSize, at: number): void {
    const group = { pod: fitPod(podOf(size, true, nodes)), on: new Map<string, number>() };
    this.#place(group, jobs);
    this.#ends.add({ at: at + lifeMs, isLive: () => true, run: () => this.#leave(group, jobs) });
  }

  #scale({ name, replicas = 0, nodes }: TracedWork, size: WorkSize): void {
    const key = JSON.stringify([name, size, nodes]);
    for (const [other, group] of this.#groups)
      if (other !== key && other.startsWith(JSON.stringify([name]).slice(0, -1))) this.#leave(group, countOf(group));
    const group = this.#groups.get(key) ?? { pod: fitPod(podOf(size, false, nodes)), on: new Map<string, number>() };
    this.#groups.set(key, group);
    const more = replicas - countOf(group);
    if (more > 0) this.#place(group, more);
    else this.#leave(group, -more);
  }

  #place(group: Group, count: number): void {
    let left = count;
    const put = (name: string) => {
      const at = this.#room.node(name)!;
      const here = nodeMisfit(group.pod, at.node) ? 0 : Math.min(left, freeFor(group.pod, at));
      if (here <= 0) return;
      this.#room.place(group.pod, name, here);
      group.on.set(name, (group.on.get(name) ?? 0) + here);
      left -= here;
    };
    for (const name of this.#names) {
      if (left === 0) return;
      put(name);
    }
    if (left === 0) return;
    const best = this.#cheapestFor(group.pod);
    if (!best) this.#isPlan = false;
    while (best && left > 0) {
      this.#bought.set(best, (this.#bought.get(best) ?? 0) + 1);
      put(this.#open(best.pool));
    }
  }

  #cheapestFor(pod: FitPod): T | undefined {
    const fitting = this.#sold.flatMap((one) => {
      const fits = nodeMisfit(pod, nodeOf(one.pool.template, 'new')) ? 0 : roomFor(pod, one.pool.template, []);
      return fits > 0 ? [{ one, each: one.hourly / fits }] : [];
    });
    return fitting.sort((a, b) => a.each - b.each)[0]?.one;
  }

  #open({ template }: OfferedPool): string {
    const name = String(this.#names.length);
    this.#names.push(name);
    this.#room.addNode(nodeOf(template, name));
    return name;
  }

  /** Last in, first out. */
  #leave({ pod, on }: Group, count: number): void {
    let left = count;
    for (const [name, there] of [...on].reverse()) {
      if (left <= 0) return;
      const gone = Math.min(left, there);
      this.#room.remove(pod, name, gone);
      if (gone === there) on.delete(name);
      else on.set(name, there - gone);
      left -= gone;
    }
  }

  #endUntil(at: number): void {
    for (let next = this.#ends.nextAt; next !== undefined && next <= at; next = this.#ends.nextAt)
      this.#ends.take()!.run();
  }
}

const countOf = ({ on }: Group): number => [...on.values()].reduce((sum, count) => sum + count, 0);

import { pendingDemand } from '../../operator/burst/demand.ts';
import { pack } from '../../operator/burst/fit/pack.ts';
import { fitPod } from '../../operator/burst/fit/pod.ts';
import { volumeFacts } from '../../operator/burst/fit/volume-facts.ts';
import { PROVISION_MS } from '../../operator/burst/nodes/grow.ts';
import type { NodeView, PoolView } from '../../operator/burst/nodes/model.ts';
import type { NodesPlan, NodesView } from '../../operator/burst/nodes/plan.ts';
import { whyNodeStays } from '../../operator/burst/nodes/stays.ts';
import type { Node, Pod } from '../../operator/kube/resources.ts';
import { planNodes } from './burst/plan-at-once.ts';
import { boundClaim, claims, MINUTE, NOW, node, nodesView, pod, poolView, stateOf, withCordon } from './burst.ts';
import type { Draw } from './draw.ts';

const WAIT_MS = 3 * MINUTE;

/** A pool of a simulated cluster. */
export interface LivePool {
  readonly name: string;
  readonly minimum: number;
  readonly maximum: number;
  readonly cpu: number;
  readonly price: number;
  /** Nodes that may be missing at once; undefined: no budget says so. */
  readonly budget: number | undefined;
  isSoldOut: boolean;
  isGone: boolean;
  /** Its machines are for sale, and never come. */
  isDry: boolean;
  count: number;
  decidedAt: number;
}

/** A machine that was ordered; a node once it has come. */
export interface Machine {
  readonly pool: LivePool;
  readonly node: Node;
  /** Infinity: never. */
  readonly comesAt: number;
  readonly readyAt: number;
  isEmptying: boolean;
}

/** A cluster in which everything is kept simple but the decisions: machines, a scheduler, and pods of which some must not be moved. */
export class NodeLife {
  now = NOW;
  /** Whether machines come that are late, broken, or do not come at all. */
  isFlaky = true;
  readonly pools: LivePool[];
  readonly floor: number;
  readonly machines = new Map<string, Machine>();
  readonly pods = new Map<string, { pod: Pod; cpu: number; isProtected: boolean; on?: string }>();
  /** Decisions, in words. */
  readonly decided: string[] = [];
  readonly #choose: Draw;
  readonly #unneededSince = new Map<string, number>();
  readonly #claims: ReturnType<typeof boundClaim>[] = [];
  #serial = 0;

  constructor(choose: Draw) {
    this.#choose = choose;
    this.pools = ['a', 'b', 'c'].slice(0, choose.integer(1, 3)).map((name) => ({
      name,
      minimum: choose.integer(0, 2),
      maximum: choose.integer(2, 6),
      cpu: choose.pick([4000, 8000]),
      price: choose.integer(1, 5),
      budget: choose.chance(0.5) ? 1 : undefined,
      isSoldOut: false,
      isGone: false,
      isDry: false,
      count: 0,
      decidedAt: NOW,
    }));
    this.floor = choose.chance(0.3) ? choose.integer(1, 4) : 0;
  }

  get own(): LivePool[] {
    return this.pools.filter(({ isGone }) => !isGone);
  }

  there({ name }: LivePool): Machine[] {
    return [...this.machines.values()].filter(({ pool, comesAt }) => pool.name === name && comesAt <= this.now);
  }

  podsOn(name: string) {
    return [...this.pods.values()].filter(({ on }) => on === name);
  }

  freeOn({ node: { metadata }, pool }: Machine): number {
    return pool.cpu - this.podsOn(metadata.name).reduce((sum, { cpu }) => sum + cpu, 0);
  }

  isReady = ({ readyAt }: Machine): boolean => readyAt <= this.now;
  /** Not Ready, and so for too long. */
  isLost = (machine: Machine): boolean => !this.isReady(machine) && this.now - machine.comesAt >= PROVISION_MS;

  addPods(count: number, cpu: number): void {
    for (let index = 0; index < count; index++) {
      const marks = [
        { metadata: { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } } },
        { metadata: { ownerReferences: [] } },
        claims(`data-${++this.#serial}`),
      ];
      const mark = this.#choose.chance(0.1) ? this.#choose.pick(marks) : undefined;
      if (mark === marks[2]) this.#claims.push(boundClaim(`data-${this.#serial}`, { hostPath: { path: '/data' } }));
      const name = `p-${this.#serial}`;
      const metadata = { name, uid: name, ...(mark && 'metadata' in mark ? mark.metadata : {}) };
      const spec = mark && 'spec' in mark ? mark.spec : {};
      const one = pod(`${cpu}m`, undefined, { metadata, spec });
      this.pods.set(name, { pod: one, cpu, isProtected: mark !== undefined });
    }
  }

  removePods(count: number): void {
    for (const name of this.#choose.shuffled([...this.pods.keys()]).slice(0, count)) this.pods.delete(name);
  }

  /** Its machines end, whoever is on them. */
  removePool(pool: LivePool): void {
    for (const [name, machine] of this.machines) if (machine.pool === pool) this.#end(name);
    Object.assign(pool, { isGone: true, count: 0 });
  }

  /** A minute passes: machines come, pods are scheduled, something is decided and done. */
  minute(judge: (view: NodesView, plan: NodesPlan) => void): void {
    this.now += MINUTE;
    this.#machines();
    // A scheduler may be slower than who decides.
    if (!this.isFlaky || this.#choose.chance(0.8)) this.#schedule();
    const view = this.#view();
    const plan = planNodes(view);
    judge(view, plan);
    this.#act(plan);
  }

  #end(name: string): void {
    for (const one of this.podsOn(name)) delete one.on;
    this.machines.delete(name);
  }

  #machines(): void {
    for (const pool of this.own) {
      // As sizes of pools are resolved: never below the minimum, and a floor fills them in the order written.
      const total = this.own.reduce((sum, { count }) => sum + count, 0);
      const lacking = Math.min(Math.max(0, this.floor - total), pool.maximum - pool.count);
      pool.count = Math.max(pool.count + lacking, pool.minimum);
      const ordered = [...this.machines.values()].filter((machine) => machine.pool === pool);
      for (const machine of ordered.filter(({ comesAt }) => comesAt > this.now).slice(0, ordered.length - pool.count))
        this.machines.delete(machine.node.metadata.name);
      for (let index = ordered.length; index < pool.count && !pool.isSoldOut; index++) {
        const name = `${pool.name}-${++this.#serial}`;
        const isNever = pool.isDry || (this.isFlaky && this.#choose.chance(0.1));
        const comesAt = this.now + (isNever ? Number.POSITIVE_INFINITY : MINUTE);
        const late = this.isFlaky ? this.#choose.pick([1, 1, 1, 5, 20, Number.POSITIVE_INFINITY]) : 1;
        const made = node(name, pool.name, {}, `${pool.cpu}m`);
        const machine = { pool, node: made, comesAt, readyAt: comesAt + late * MINUTE };
        this.machines.set(name, { ...machine, isEmptying: false });
      }
    }
  }

  #schedule(): void {
    const open = [...this.machines.values()].filter((machine) => this.isReady(machine) && !machine.isEmptying);
    const waiting = [...this.pods.values()].filter(({ on }) => on === undefined);
    const pending = waiting.map(({ pod: one }) => ({ key: one.metadata.name, pod: fitPod(one) }));
    for (const [key, name] of pack(pending, this.#state(open)).placed) this.pods.get(key)!.on = name;
  }

  #state(machines: readonly Machine[]) {
    const nodes = machines.map((machine): Node => {
      const taints = this.isLost(machine)
        ? (['NoSchedule', 'NoExecute'] as const).map((effect) => ({ key: 'node.kubernetes.io/not-ready', effect }))
        : [];
      return {
        ...machine.node,
        spec: withCordon({ taints, ...(machine.isEmptying && { unschedulable: true }) }),
      };
    });
    const names = new Set(nodes.map(({ metadata }) => metadata.name));
    const running = [...this.pods.values()].filter(({ on }) => on !== undefined && names.has(on)).map(placed);
    const volumes = volumeFacts({
      claims: this.#claims.map(({ claim }) => claim),
      volumes: this.#claims.map(({ volume }) => volume),
    });
    return stateOf(nodes, running, { volumes });
  }

  #view(): NodesView {
    const there = this.own.flatMap((pool) => this.there(pool));
    const pools = this.own.map((pool): PoolView => {
      const { offer, ...view } = poolView(pool.name, {
        ...pool,
        cpu: `${pool.cpu}m`,
        present: this.there(pool).length,
      });
      const missing = this.there(pool).filter((machine) => this.isLost(machine) && !machine.isEmptying).length;
      const limits = [{ nodes: pool.budget ?? 0, reasons: ['Empty', 'Underutilized'] as const, words: 'its budget' }];
      return {
        ...view,
        ...(pool.isSoldOut ? { soldOut: 'sold out' } : { offer: offer! }),
        ...(pool.budget !== undefined && { disruption: { limits, missing } }),
      };
    });
    const nodes = there.map((machine): NodeView => {
      const { name } = machine.node.metadata;
      const pods = this.podsOn(name).map(placed);
      const view = pools.find((pool) => pool.name === machine.pool.name)!;
      const notBegun =
        (view.present < view.count ? 'nodes are yet to come' : undefined) ??
        (this.isReady(machine) ? undefined : 'it is not Ready');
      const stays = whyNodeStays(machine.node, pods) ?? (machine.isEmptying ? undefined : notBegun);
      const { isEmptying, pool } = machine;
      return { name, pool: pool.name, price: pool.price, pods, isEmptying, ...(stays !== undefined && { stays }) };
    });
    const waiting = [...this.pods.values()].filter(({ on }) => on === undefined).map((one) => one.pod);
    return nodesView({
      state: this.#state(there),
      demands: pendingDemand(waiting, { isNominationLive: () => false }).demands,
      pools,
      nodes,
      notReady: there.filter((machine) => !this.isReady(machine)).map((machine) => machine.node.metadata.name),
      hasWork: [...this.pods.values()].some(({ on }) => on !== undefined),
      mayShrink: (sizes) => [...sizes.values()].reduce((sum, count) => sum + count, 0) >= this.floor,
      unneededSince: this.#unneededSince,
      waitMs: () => WAIT_MS,
      now: this.now,
    });
  }

  #act({ growth, shrinkage }: NodesPlan): void {
    const kept = [...growth.keep, ...shrinkage.keep.map((one) => one.node)];
    for (const name of this.#unneededSince.keys())
      if (!shrinkage.unneeded.includes(name)) this.#unneededSince.delete(name);
    for (const name of shrinkage.unneeded) if (!this.#unneededSince.has(name)) this.#unneededSince.set(name, this.now);
    for (const name of kept) this.machines.get(name)!.isEmptying = false;
    for (const { pool, count, why } of growth.sizes) {
      Object.assign(this.pools.find(({ name }) => name === pool)!, { count, decidedAt: this.now });
      this.decided.push(`pool ${pool}: ${count}, ${why}`);
    }
    for (const name of kept) this.decided.push(`${name} stays`);
    for (const [name, { isEmptying, pool }] of this.machines) {
      if (!isEmptying) continue;
      const [next] = this.podsOn(name);
      // One at a time, as budgets of pods have it.
      if (next) delete next.on;
      else if (this.there(pool).length >= pool.count && !growth.sizes.some((one) => one.pool === pool.name)) {
        pool.count--;
        this.#end(name);
      }
    }
    for (const { node: name, why } of shrinkage.begin) {
      this.machines.get(name)!.isEmptying = true;
      this.decided.push(`${name} goes, ${why}`);
    }
  }
}

const placed = ({ pod: one, on }: { pod: Pod; on?: string }): Pod => ({
  ...one,
  spec: { ...one.spec, nodeName: on },
  status: { phase: 'Running' },
});

import type { ScaleFigureId } from './scale-figures.ts';
import { type Bar, isMet, type Summary, summarize } from './statistics.ts';

export type Unit =
  | 's'
  | 'CPU-s'
  | 'writes'
  | 'writes/min'
  | 'cores'
  | 'MiB'
  | 'stacks'
  | 'starts'
  | 'µs'
  | 'ms'
  | 'KiB';

export interface Definition {
  section: string;
  title: string;
  unit: Unit;
  /** What the design wants of it. */
  bar?: Bar;
  /** What others need. */
  others?: string;
}

const GARDEN = 'Garden up, tools cached';
const ONE = 'One hosted control plane (dataPlaneNodes 0)';
const FIVE = 'Five at once';
const NODES = 'A whole cluster';
const IDLE = 'Idle';
const REACH = "What an API server's way to machines and pods costs (provider local), against none (simulated)";

/** Everything that is measured, in the order of the report. */
export const FIGURES = {
  'garden.api': { section: GARDEN, title: 'command to API served', unit: 's' },
  'garden.node': { section: GARDEN, title: "command to the seed's node Ready", unit: 's' },
  'garden.operator': {
    section: GARDEN,
    title: 'command to operator at work (Seed Ready)',
    unit: 's',
    bar: { median: 15 },
    others: 'Gardener local 6-10 min',
  },
  'garden.up': {
    section: GARDEN,
    title: '`coppice up --detach` returns',
    unit: 's',
    bar: { median: 15 },
    others: 'Gardener local 6-10 min',
  },
  'garden.first.usable': { section: GARDEN, title: 'its first cluster, one node, at once: apply to usable', unit: 's' },
  'garden.first.ready': { section: GARDEN, title: 'its first cluster: apply to Ready', unit: 's' },
  'garden.images': { section: GARDEN, title: 'command to all images of the seed, that cluster beside', unit: 's' },
  'garden.cpu': { section: GARDEN, title: 'CPU until that cluster is Ready and all images are there', unit: 'CPU-s' },
  'garden.down': { section: GARDEN, title: '`coppice down` returns', unit: 's' },

  'one.usable': {
    section: ONE,
    title: 'apply to usable',
    unit: 's',
    bar: { median: 3.5, maximum: 10 },
    others: 'Kamaji 14.0 (8.4 with 1 s probes), k0smotron 22',
  },
  'one.ready': { section: ONE, title: 'apply to Ready', unit: 's', others: 'Kamaji 12.4 (7.1)' },
  'one.lead': { section: ONE, title: 'Ready said after usable (negative: a lie)', unit: 's', others: 'Kamaji -1.6' },
  'one.cpu.usable': { section: ONE, title: 'CPU until usable', unit: 'CPU-s' },
  'one.cpu.ready': { section: ONE, title: 'CPU until Ready', unit: 'CPU-s', bar: { median: 8 }, others: 'Kamaji 11' },
  'one.writes': {
    section: ONE,
    title: "operator's writes to garden and seed, without the join",
    unit: 'writes',
    bar: { maximum: 29 },
    others: 'Kamaji 66',
  },
  'one.writes.inside': {
    section: ONE,
    title: "operator's writes inside the cluster, without the join",
    unit: 'writes',
  },
  'one.writes.all': { section: ONE, title: 'all writes at the garden, kubelet and controllers too', unit: 'writes' },
  'one.joined': { section: ONE, title: 'Ready to Joined in the inventory', unit: 's', bar: { median: 2 } },
  'one.join.writes': { section: ONE, title: "operator's writes for the join, to the garden", unit: 'writes' },
  'one.join.inside': { section: ONE, title: "operator's writes for the join, inside the cluster", unit: 'writes' },
  'one.leave.writes': { section: ONE, title: "operator's writes for the leave", unit: 'writes' },
  'one.delete': {
    section: ONE,
    title: 'delete to all gone but an empty namespace',
    unit: 's',
    bar: { median: 2 },
    others: 'Kamaji 2.4',
  },
  'one.delete.object': { section: ONE, title: 'delete to object gone', unit: 's' },
  'one.delete.namespace': {
    section: ONE,
    title: 'delete to the empty namespace gone (Kubernetes waits 5 s)',
    unit: 's',
  },
  'one.delete.processes': { section: ONE, title: 'delete to processes gone', unit: 's' },

  'five.usable': {
    section: FIVE,
    title: 'apply to all usable',
    unit: 's',
    bar: { median: 11 },
    others: 'Kamaji 37-47',
  },
  'five.first': { section: FIVE, title: 'apply to the first usable', unit: 's' },
  'five.ready': { section: FIVE, title: 'apply to all Ready', unit: 's' },
  'five.lead': { section: FIVE, title: 'Ready said after usable, each (negative: a lie)', unit: 's' },
  'five.cpu.usable': { section: FIVE, title: 'CPU until all usable, per cluster', unit: 'CPU-s' },
  'five.cpu.ready': {
    section: FIVE,
    title: 'CPU until all Ready, per cluster',
    unit: 'CPU-s',
    bar: { median: 8 },
    others: 'Kamaji 16-18',
  },
  'five.writes': {
    section: FIVE,
    title: "operator's writes to garden and seed, without joins, per cluster",
    unit: 'writes',
    bar: { maximum: 29 },
    others: 'Kamaji 104-241',
  },
  'five.writes.inside': {
    section: FIVE,
    title: "operator's writes inside each cluster, without the join",
    unit: 'writes',
  },
  'five.writes.all': { section: FIVE, title: 'all writes at the garden, per cluster', unit: 'writes' },
  'five.joined': { section: FIVE, title: 'Ready to Joined in the inventory, each', unit: 's', bar: { median: 2 } },
  'five.join.writes': { section: FIVE, title: "operator's writes for each join, to the garden", unit: 'writes' },
  'five.join.inside': { section: FIVE, title: "operator's writes for each join, inside the cluster", unit: 'writes' },
  'five.leave.writes': { section: FIVE, title: "operator's writes for each leave", unit: 'writes' },
  'five.delete': {
    section: FIVE,
    title: 'delete to all gone but an empty namespace',
    unit: 's',
    bar: { median: 4 },
    others: 'Kamaji 34-57',
  },
  'five.delete.object': { section: FIVE, title: 'delete to objects gone', unit: 's' },
  'five.delete.namespace': {
    section: FIVE,
    title: 'delete to the empty namespaces gone (Kubernetes waits 5 s)',
    unit: 's',
  },
  'five.delete.processes': { section: FIVE, title: 'delete to processes gone', unit: 's' },

  'nodes.usable': { section: NODES, title: 'apply to usable (dataPlaneNodes 1)', unit: 's' },
  'nodes.node': {
    section: NODES,
    title: 'apply to first node Ready',
    unit: 's',
    bar: { median: 8 },
    others: 'Gardener minutes',
  },
  'nodes.pod': { section: NODES, title: 'apply to first pod running', unit: 's', bar: { median: 9 } },
  'nodes.ready': { section: NODES, title: 'apply to Ready (with cluster DNS)', unit: 's' },
  'nodes.joined': { section: NODES, title: 'Ready to Joined in the inventory', unit: 's' },
  'nodes.cpu.ready': { section: NODES, title: 'CPU until Ready', unit: 'CPU-s' },
  'nodes.writes': { section: NODES, title: "operator's writes to garden and seed, without the join", unit: 'writes' },
  'nodes.writes.inside': {
    section: NODES,
    title: "operator's writes inside the cluster, without the join",
    unit: 'writes',
  },
  'grow.nodes': { section: NODES, title: 'scale 1 to 10: all 10 Ready', unit: 's' },
  'grow.cpu': { section: NODES, title: 'CPU of the nine new nodes', unit: 'CPU-s' },
  'grow.delete': { section: NODES, title: 'delete to all gone, 10 nodes', unit: 's' },
  'autoscale.node': { section: NODES, title: 'autoscale: a pod that does not fit, to its node Ready', unit: 's' },
  'autoscale.running': {
    section: NODES,
    title: 'autoscale: a pod that does not fit, to running',
    unit: 's',
    bar: { median: 5 },
  },
  'nodes.delete': { section: NODES, title: 'delete to all gone, 1 node', unit: 's' },

  'idle.empty': {
    section: IDLE,
    title: 'PSS of an empty garden with its seed',
    unit: 'MiB',
    bar: { median: 700 },
  },
  'idle.empty.anonymous': { section: IDLE, title: 'anonymous part of it', unit: 'MiB' },
  'idle.1.writes': {
    section: IDLE,
    title: "operator's writes, 1 cluster, without its Lease",
    unit: 'writes/min',
    bar: { maximum: 0 },
  },
  'idle.1.leases': { section: IDLE, title: "renewals of the operator's Lease, 1 cluster", unit: 'writes/min' },
  'idle.1.all': { section: IDLE, title: 'all writes at the garden, 1 cluster', unit: 'writes/min' },
  'idle.1.cpu': { section: IDLE, title: 'CPU of the whole garden, 1 cluster', unit: 'cores' },
  'idle.5.writes': {
    section: IDLE,
    title: "operator's writes, 5 clusters, without its Lease",
    unit: 'writes/min',
    bar: { maximum: 0 },
  },
  'idle.5.leases': { section: IDLE, title: "renewals of the operator's Lease, 5 clusters", unit: 'writes/min' },
  'idle.5.all': { section: IDLE, title: 'all writes at the garden, 5 clusters', unit: 'writes/min' },
  'idle.5.cpu': { section: IDLE, title: 'CPU of the whole garden, 5 clusters', unit: 'cores' },
  'idle.5.cpu.operator': { section: IDLE, title: 'CPU of the operator, 5 clusters', unit: 'cores' },
  'idle.memory': {
    section: IDLE,
    title: 'RSS of an idle control plane: API server, controller manager, scheduler, own etcd',
    unit: 'MiB',
    bar: { median: 300 },
    others: 'Kamaji 446 + shared etcd 70',
  },
  'idle.memory.share': {
    section: IDLE,
    title: 'PSS of it, one of five on the seed (pages that n processes share count 1/n)',
    unit: 'MiB',
    bar: { median: 220 },
  },
  'idle.memory.anonymous': { section: IDLE, title: 'anonymous part of it', unit: 'MiB' },
  'idle.memory.sandboxes': { section: IDLE, title: 'RSS of the shims and pauses of its four pods', unit: 'MiB' },
  'nodes.machine': { section: IDLE, title: 'RSS of a machine (its node agents and system pods)', unit: 'MiB' },
  'nodes.machine.anonymous': { section: IDLE, title: 'anonymous part of it', unit: 'MiB' },

  'reach.local.rest': { section: REACH, title: "local: PSS of its pod's shim and pauses", unit: 'KiB' },
  'reach.none.rest': { section: REACH, title: "simulated: PSS of its pod's shim and pause", unit: 'KiB' },
  'reach.local.server': { section: REACH, title: 'local: PSS of the API server', unit: 'MiB' },
  'reach.none.server': { section: REACH, title: 'simulated: PSS of the API server', unit: 'MiB' },
  'reach.local.start': { section: REACH, title: "local: from its pod's network to its process", unit: 'ms' },
  'reach.none.start': { section: REACH, title: "simulated: from its pod's network to its process", unit: 'ms' },
  'reach.local.usable': { section: REACH, title: 'local: apply to usable', unit: 's' },
  'reach.none.usable': { section: REACH, title: 'simulated: apply to usable', unit: 's' },
  'reach.own': { section: REACH, title: 'GET that the API server answers itself', unit: 'ms' },
  'reach.pod': { section: REACH, title: 'GET that it has a pod answer', unit: 'ms' },
} satisfies Record<string, Definition>;

export type FigureId = keyof typeof FIGURES | ScaleFigureId;

/** A figure as it is reported. */
export interface Figure extends Definition {
  id: FigureId;
  values: readonly number[];
  summary: Summary;
  met?: boolean;
}

/** Measured values by figure. */
export class Figures {
  readonly #values = new Map<FigureId, number[]>();
  readonly #definitions: ReadonlyMap<FigureId, Definition>;

  /** @param more definitions of figures that depend on what is asked for; they come last. */
  constructor(more: ReadonlyMap<FigureId, Definition> = new Map()) {
    this.#definitions = new Map([...(Object.entries(FIGURES) as [FigureId, Definition][]), ...more]);
  }

  /** A value that could not be measured (undefined) is left out. */
  add(id: FigureId, value: number | undefined): void {
    if (value === undefined || !Number.isFinite(value)) return;
    const values = this.#values.get(id) ?? [];
    values.push(value);
    this.#values.set(id, values);
  }

  /** Those with values, in the order of their definitions. */
  report(): Figure[] {
    return [...this.#definitions].flatMap(([id, definition]) => {
      const values = this.#values.get(id) ?? [];
      const summary = summarize(values);
      if (!summary) return [];
      const met = isMet(summary, definition.bar);
      return [{ id, ...definition, values, summary, ...(met !== undefined && { met }) }];
    });
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import { LABELS } from '../../operator/api/group.ts';
import { COMPONENTS } from '../../operator/api/names.ts';
import { BenchCluster, type Gone } from './cluster.ts';
import { type FigureId, Figures } from './figures.ts';
import { type BenchGarden, componentOf, secondsSince, type Writes } from './garden.ts';
import { Parts } from './parts.ts';
import { cpuBetween, memoryBy, memoryOf, type Process, partOfGarden } from './processes.ts';
import { asked, serverPod } from './reach.ts';
import type { PartsTable } from './report.ts';
import { measureScale } from './scale.ts';
import { type ScaleFigure, scaleFigures } from './scale-figures.ts';
import { type Marks, timeline } from './timeline.ts';

/** Late status writes and probes of a cluster that has just become Ready belong to its making. */
const SETTLE_MS = 1500;
const IDLE_SETTLE_MS = 6000;
const IDLE_SLICE_MS = 5000;
const FIVE = 5;

/** Runs what is measured on a garden, and keeps what came of it. */
export class Bench {
  readonly figures: Figures;
  readonly #newGarden = new Parts();
  readonly #cpu = new Parts();
  readonly #idleCpu = new Parts();
  readonly #gone = new Parts();
  readonly #memory = new Parts();
  readonly #emptyGarden = new Parts();
  readonly #gardenMemory = new Parts();
  readonly #scaleCpu = new Parts();
  readonly #scaleMemory = new Parts();
  readonly #marks: Marks[] = [];
  readonly #signal: AbortSignal;
  /** Made since the last failure; most are closed. */
  readonly #clusters: BenchCluster[] = [];
  #garden!: BenchGarden;

  /** @param scaleSizes sizes of the scale test. */
  constructor(signal: AbortSignal, scaleSizes: readonly number[] = []) {
    this.#signal = signal;
    this.figures = new Figures(new Map(scaleSizes.flatMap(scaleFigures)));
  }

  use(garden: BenchGarden): void {
    this.#garden = garden;
  }

  parts(): PartsTable[] {
    return [
      ...this.#newGarden.table('CPU of a new garden and its first cluster, by part', 'CPU-s'),
      ...this.#cpu.table('CPU of one cluster until Ready, by part', 'CPU-s'),
      ...this.#gone.table('Gone after the DELETE, by part', 's'),
      ...this.#idleCpu.table('CPU of an idle garden, by part', 'cores'),
      ...this.#scaleCpu.table('CPU of each of many clusters without control planes, by part', 'CPU-s'),
      ...this.#scaleMemory.table(
        'Memory of the garden with many clusters without control planes (PSS), by part',
        'MiB',
      ),
      ...this.#memory.table('Memory of an idle control plane and of a machine, by part', 'MiB'),
      ...this.#emptyGarden.table('Memory of an empty garden', 'MiB'),
      ...this.#gardenMemory.table('Memory of the garden itself, with five idle clusters', 'MiB'),
    ];
  }

  timeline() {
    return timeline(this.#marks);
  }

  /**
   * The cluster of a person who asks for it as soon as the operator is at work: the seed is still given its images then.
   * @param begun when the garden's command was started, a time of performance.now()
   */
  async firstCluster(begun: number): Promise<void> {
    const cluster = this.#cluster();
    const images = this.#garden.settle(this.#signal).then(() => secondsSince(begun));
    images.catch(() => {});
    await cluster.create(1);
    const ready = cluster.ready();
    ready.catch(() => {});
    await cluster.usable();
    await ready;
    this.figures.add('garden.first.usable', cluster.at('usable'));
    this.figures.add('garden.first.ready', cluster.at('ready'));
    this.figures.add('garden.images', await images);
    this.figures.add('garden.cpu', total(this.#keepNewGarden()));
    await cluster.delete();
  }

  /** Makes control planes, all at once, until they are Ready, and deletes them. */
  async controlPlanes(count: number): Promise<void> {
    const group = count === 1 ? 'one' : 'five';
    const figure = (name: string, value: number | undefined) => this.figures.add(`${group}.${name}` as FigureId, value);
    const clusters = Array.from({ length: count }, () => this.#cluster());
    const writes = await this.#garden.writes();
    const before = this.#garden.processes();

    const made = clusters.map((cluster) => cluster.create(0));
    const ready = Promise.all(clusters.map((cluster) => cluster.ready()));
    // A failure of its own is told when it is awaited; until then it is nobody's unhandled rejection.
    ready.catch(() => {});
    await Promise.all(made);
    await Promise.all(clusters.map((cluster) => cluster.usable()));
    const whenUsable = this.#garden.processes();
    await ready;
    const whenReady = this.#garden.processes();

    const posted = Math.min(...clusters.map((cluster) => cluster.time('posted')!));
    const seconds = (milestone: 'usable' | 'ready') =>
      clusters.map((cluster) => (cluster.time(milestone)! - posted) / 1000);
    figure('usable', Math.max(...seconds('usable')));
    figure('ready', Math.max(...seconds('ready')));
    if (count > 1) figure('first', Math.min(...seconds('usable')));
    for (const cluster of clusters) figure('lead', cluster.at('ready')! - cluster.at('usable')!);
    figure('cpu.usable', total(this.#cpuBetween(before, whenUsable)) / count);
    figure('cpu.ready', this.#keepCpu(count === 1 ? 'one' : 'each of five', before, whenReady, count));

    await Promise.all(clusters.map((cluster) => cluster.joined()));
    for (const cluster of clusters) figure('joined', cluster.at('joined')! - cluster.at('ready')!);
    await sleep(SETTLE_MS, undefined, { signal: this.#signal });
    const after = await this.#garden.writes();
    figure('writes', ownWrites(writes, after) / count);
    figure('writes.all', (after.all - writes.all) / count);
    figure('join.writes', (after.hubs - writes.hubs) / count);
    for (const cluster of clusters) {
      const { own, join } = await cluster.writesInside();
      figure('writes.inside', own);
      figure('join.inside', join);
    }

    const gone = await Promise.all(clusters.map((cluster) => cluster.delete()));
    await sleep(SETTLE_MS, undefined, { signal: this.#signal });
    figure('leave.writes', (this.#garden.hubs.writes - after.hubs) / count);
    this.#keepGone(count === 1 ? 'one' : 'five', gone);
    const last = (what: 'object' | 'namespace' | 'processes') => Math.max(...gone.map((times) => times[what]));
    figure('delete', Math.max(last('object'), last('processes')));
    for (const what of ['object', 'namespace', 'processes'] as const) figure(`delete.${what}`, last(what));
  }

  /** A cluster with a node and a pod on it, then with ten nodes. */
  async nodes({ scale, isFirst }: { scale: boolean; isFirst: boolean }): Promise<void> {
    const { figures } = this;
    const cluster = this.#cluster();
    const writes = await this.#garden.writes();
    const before = this.#garden.processes();
    const readyz = cluster.create(1).then(() => cluster.watchReadyz());
    readyz.catch(() => {});
    const ready = cluster.ready();
    ready.catch(() => {});
    await cluster.usable();
    await cluster.firstPod();
    await ready;
    await readyz;
    const whenReady = this.#garden.processes();
    await cluster.joined();
    const marks = cluster.marks();
    figures.add('nodes.joined', cluster.at('joined')! - cluster.at('ready')!);
    this.#marks.push(marks);
    figures.add('nodes.usable', marks.usable);
    figures.add('nodes.node', marks['node.ready']);
    figures.add('nodes.pod', marks['pod.running']);
    figures.add('nodes.ready', marks.ready);
    figures.add('nodes.cpu.ready', this.#keepCpu('with one node', before, whenReady, 1));

    await sleep(SETTLE_MS, undefined, { signal: this.#signal });
    const after = await this.#garden.writes();
    figures.add('nodes.writes', ownWrites(writes, after));
    figures.add('nodes.writes.inside', (await cluster.writesInside()).own);
    if (scale) {
      const start = this.#garden.processes();
      figures.add('grow.nodes', await cluster.scale(10));
      figures.add('grow.cpu', total(this.#cpuBetween(start, this.#garden.processes())));
    }
    if (isFirst) this.#keepMachines(cluster);
    const gone = await cluster.delete();
    this.#keepGone(scale ? 'with 10 nodes' : 'with one node', [gone]);
    figures.add(scale ? 'grow.delete' : 'nodes.delete', Math.max(gone.object, gone.processes));
  }

  /** A pod that waits, and the node that the autoscaler adds for it. */
  async autoscale(): Promise<void> {
    const cluster = this.#cluster();
    await cluster.create(undefined, { pools: [{ name: 'a', minimum: 1, maximum: 3, autoscale: 'Coppice' }] });
    await cluster.usable();
    await cluster.firstPod();
    await cluster.ready();
    await sleep(SETTLE_MS, undefined, { signal: this.#signal });
    const { node, running } = await cluster.podOnNewNode();
    this.figures.add('autoscale.node', node);
    this.figures.add('autoscale.running', running);
    await cluster.delete();
  }

  /** A control plane with a way to machines and pods, and one without, the one first and then the other; then how long a pod takes to answer. */
  async reach(run: number): Promise<void> {
    const kinds = [
      { kind: 'local', cloudProvider: 'local' },
      { kind: 'none', cloudProvider: 'aws' },
    ] as const;
    for (const { kind, cloudProvider } of run % 2 === 0 ? kinds.toReversed() : kinds) {
      const cluster = this.#cluster();
      await cluster.create(0, { cloudProvider });
      await Promise.all([cluster.usable(), cluster.ready()]);
      await sleep(IDLE_SETTLE_MS, undefined, { signal: this.#signal });
      const { server, rest, startMs } = serverPod(cluster.processes(COMPONENTS.apiServer));
      this.figures.add(`reach.${kind}.usable`, cluster.at('usable'));
      this.figures.add(`reach.${kind}.server`, server);
      this.figures.add(`reach.${kind}.rest`, rest);
      this.figures.add(`reach.${kind}.start`, startMs);
      await cluster.delete();
    }
    const cluster = this.#cluster();
    await cluster.create(1);
    await cluster.usable();
    const pod = await cluster.firstPod();
    await cluster.ready();
    await sleep(SETTLE_MS, undefined, { signal: this.#signal });
    const times = await asked(cluster.client, pod);
    this.figures.add('reach.own', times.own);
    this.figures.add('reach.pod', times.pod);
    await cluster.delete();
  }

  /** What a garden needs before anybody makes a cluster in it. */
  async emptyGarden(): Promise<void> {
    await this.#garden.networkTried(this.#signal);
    await sleep(IDLE_SETTLE_MS, undefined, { signal: this.#signal });
    const parts = memoryBy(this.#garden.processes(), partOfGarden);
    for (const [part, { share, anonymous }] of parts) {
      this.#emptyGarden.add(part, 'PSS', share);
      this.#emptyGarden.add(part, 'anonymous', anonymous);
    }
    this.figures.add('idle.empty', sum([...parts.values()].map(({ share }) => share)));
    this.figures.add('idle.empty.anonymous', sum([...parts.values()].map(({ anonymous }) => anonymous)));
  }

  /** What a garden does and needs with one and with five control planes of which nobody wants anything. */
  async idle(slices: number): Promise<void> {
    const clusters: BenchCluster[] = [];
    for (const count of [1, FIVE] as const) {
      const added = Array.from({ length: count - clusters.length }, () => this.#cluster());
      clusters.push(...added);
      await Promise.all(
        added.map(async (cluster) => {
          await cluster.create(0);
          await Promise.all([cluster.usable(), cluster.ready()]);
        }),
      );
      await this.#garden.networkTried(this.#signal);
      await sleep(IDLE_SETTLE_MS, undefined, { signal: this.#signal });
      await this.#watchIdle(count, slices);
      if (count === FIVE) for (const cluster of clusters) this.#keepControlPlane(cluster);
    }
    this.#keepGarden();
    await Promise.all(clusters.map((cluster) => cluster.delete()));
  }

  /** Clusters without control planes, all at once: made, left alone, taken over by a new operator, deleted. */
  async scale(count: number): Promise<void> {
    const figure = (name: ScaleFigure, value: number | undefined) => this.figures.add(`scale.${count}.${name}`, value);
    const keepParts = (what: string, parts: ReadonlyMap<string, number>) => {
      for (const [part, used] of parts) this.#scaleCpu.add(part, `${count} ${what}`, used / count);
    };
    const looked = await measureScale(this.#garden, count, this.#signal, (before, after) =>
      this.#cpuBetween(before, after),
    );
    for (const [name, value] of looked.figures) figure(name, value);
    keepParts('made', looked.cpu.create);
    keepParts('deleted', looked.cpu.delete);
    for (const [part, mebibytes] of looked.memory) this.#scaleMemory.add(part, `${count} clusters`, mebibytes);
  }

  async #watchIdle(count: 1 | 5, slices: number): Promise<void> {
    const figure = (name: string, value: number) => this.figures.add(`idle.${count}.${name}` as FigureId, value);
    const start = performance.now();
    const writes = await this.#garden.writes();
    const first = this.#garden.processes();
    let before = first;
    let at = performance.now();
    for (let i = 0; i < slices; i++) {
      await sleep(IDLE_SLICE_MS, undefined, { signal: this.#signal });
      const now = this.#garden.processes();
      const seconds = (performance.now() - at) / 1000;
      at = performance.now();
      const parts = this.#cpuBetween(before, now);
      figure('cpu', total(parts) / seconds);
      if (count === FIVE) figure('cpu.operator', (parts.get('garden: operator') ?? 0) / seconds);
      for (const [part, used] of parts)
        this.#idleCpu.add(part, `${count} clusters`.replace('1 clusters', '1 cluster'), used / seconds);
      before = now;
    }
    const after = await this.#garden.writes();
    const minutes = (performance.now() - start) / 60_000;
    const leases = after.leases - writes.leases;
    figure('writes', (after.operator - writes.operator - leases) / minutes);
    figure('leases', leases / minutes);
    figure('all', (after.all - writes.all) / minutes);
  }

  /** Stops following the clusters of a run that has failed. */
  async abandon(): Promise<void> {
    await Promise.all(this.#clusters.splice(0).map((cluster) => cluster.close().catch(() => {})));
  }

  #cluster(): BenchCluster {
    const cluster = new BenchCluster(this.#garden, this.#signal);
    this.#clusters.push(cluster);
    return cluster;
  }

  #cpuBetween(before: readonly Process[], after: readonly Process[]): Map<string, number> {
    const parts = this.#partOf();
    return cpuBetween(before, after, parts);
  }

  #keepCpu(column: string, before: readonly Process[], after: readonly Process[], count: number): number {
    const parts = this.#cpuBetween(before, after);
    for (const [part, used] of parts) this.#cpu.add(part, column, used / count);
    return total(parts) / count;
  }

  #keepNewGarden(): Map<string, number> {
    const parts = this.#cpuBetween([], this.#garden.processes());
    for (const [part, used] of parts) this.#newGarden.add(part, 'CPU-s', used);
    return parts;
  }

  /** Names the part of the garden or of a cluster that a process is of. */
  #partOf(): (process: Process) => string {
    const components = new Map(this.#garden.pods.list().map((pod) => [pod.metadata.uid, componentOf(pod)]));
    return (process) => {
      if (process.isSandbox) return "pods' sandboxes (shim and pause)";
      if (process.pod) return `pod: ${components.get(process.pod) ?? 'other'}`;
      return `garden: ${process.component ?? 'other'}`;
    };
  }

  /** When the last of each part of the deleted clusters was gone. */
  #keepGone(column: string, gone: readonly Gone[]): void {
    const latest = new Map<string, number>();
    for (const times of gone) {
      const { parts, object, namespace } = times;
      for (const [part, seconds] of [...parts, ['seed namespace', namespace], ['object', object]] as const) {
        latest.set(part, Math.max(latest.get(part) ?? 0, seconds));
      }
    }
    for (const [part, seconds] of latest) this.#gone.add(part, column, seconds);
  }

  #keepControlPlane(cluster: BenchCluster): void {
    const partOf = this.#partOf();
    const processes = cluster.processes();
    const parts = memoryBy(
      processes.filter(({ isSandbox }) => !isSandbox),
      partOf,
    );
    for (const [part, { rss, anonymous }] of parts) {
      this.#memory.add(part, 'RSS', rss);
      this.#memory.add(part, 'anonymous', anonymous);
    }
    const all = [...parts.values()];
    this.figures.add('idle.memory', sum(all.map(({ rss }) => rss)));
    this.figures.add('idle.memory.share', sum(all.map(({ share }) => share)));
    this.figures.add('idle.memory.anonymous', sum(all.map(({ anonymous }) => anonymous)));
    const sandboxes = processes.filter(({ isSandbox }) => isSandbox).map(({ pid }) => memoryOf(pid));
    this.figures.add('idle.memory.sandboxes', sum(sandboxes.map(({ rss }) => rss)));
    this.#memory.add('sandboxes of its pods (shim and pause)', 'RSS', sum(sandboxes.map(({ rss }) => rss)));
    this.#memory.add('sandboxes of its pods (shim and pause)', 'anonymous', sum(sandboxes.map((own) => own.anonymous)));
  }

  /** Each machine of a cluster; the parts are named by their processes. */
  #keepMachines(cluster: BenchCluster): void {
    const pods = this.#garden.pods.list().filter((pod) => pod.metadata.labels?.[LABELS.role] === 'machine');
    const processes = cluster.processes();
    for (const pod of pods) {
      const own = processes.filter((process) => process.pod === pod.metadata.uid && !process.isSandbox);
      if (own.length === 0) continue;
      const parts = memoryBy(own, (process) => `machine: ${process.name}`);
      for (const [part, { rss, anonymous }] of parts) {
        this.#memory.add(part, 'RSS', rss);
        this.#memory.add(part, 'anonymous', anonymous);
      }
      const all = [...parts.values()];
      this.figures.add('nodes.machine', sum(all.map(({ rss }) => rss)));
      this.figures.add('nodes.machine.anonymous', sum(all.map(({ anonymous }) => anonymous)));
    }
  }

  #keepGarden(): void {
    const own = this.#garden.processes().filter((process) => !process.pod);
    for (const [part, { rss, anonymous }] of memoryBy(own, ({ component }) => component ?? 'other')) {
      this.#gardenMemory.add(part, 'RSS', rss);
      this.#gardenMemory.add(part, 'anonymous', anonymous);
    }
  }
}

/** The operator's writes for clusters themselves: not its Lease, and not what they are for hubs. */
const ownWrites = (before: Writes, after: Writes): number => {
  const own = ({ operator, leases, hubs }: Writes) => operator - leases - hubs;
  return own(after) - own(before);
};

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);

const total = (parts: ReadonlyMap<string, number>): number => sum([...parts.values()]);

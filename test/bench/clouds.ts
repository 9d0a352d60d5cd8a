import type { CloudContext, ManagedClusters, WantedCluster } from '../../providers/cloud.ts';
import { CLOUDS, type CloudName } from '../kit/cloud/model.ts';
import { measureBuying } from './buying.ts';
import { CloudRig, wantedCluster } from './cloud-rig.ts';
import { measureDecisions } from './decisions.ts';
import { secondsSince } from './garden.ts';
import { measureKeptPods } from './kept-pods.ts';
import { measureLoads } from './module-load.ts';
import { measurePacking } from './packing.ts';
import { Parts } from './parts.ts';
import type { PartsTable } from './report.ts';
import { WORKER_PARTS, type WorkerUse, WorkerWatch } from './worker-watch.ts';

type Call = (clouds: ManagedClusters, ctx: CloudContext, cluster: (nodes: number) => WantedCluster) => Promise<unknown>;

/** A cluster's life, in the operator's calls. */
const LIFE: Readonly<Record<string, Call>> = {
  'first plan (preview)': (clouds, ctx, cluster) => clouds.preview(ctx, cluster(1)),
  'create (apply)': (clouds, ctx, cluster) => clouds.apply(ctx, cluster(1)),
  'nothing changed (apply)': (clouds, ctx, cluster) => clouds.apply(ctx, cluster(1)),
  'scale (preview, then apply)': async (clouds, ctx, cluster) => {
    await clouds.preview(ctx, cluster(2));
    await clouds.apply(ctx, cluster(2));
  },
  'look for drift': (clouds, ctx, cluster) => clouds.drift(ctx, cluster(2)),
  destroy: (clouds, ctx, cluster) => clouds.destroy(ctx, cluster(2)),
};
/** Which of them has the most in memory. */
const FULLEST = 'create (apply)';
const AT_ONCE = [1, 2, 4, 8];
/** A garden and the rest of the operator want some of a machine too; this is for workers, engines and plugins alone. */
const ROOMS_GIB = [4, 8];

/** Measures what stacks cost: the real engine and the real SDKs, on the test kit's clouds. */
export class CloudBench {
  readonly #engine: string;
  readonly #signal: AbortSignal;
  readonly #seconds = new Parts();
  readonly #cpu = new Parts();
  readonly #pluginCpu = new Parts();
  readonly #starts = new Parts();
  readonly #peak = new Parts();
  readonly #togetherSeconds = new Parts();
  readonly #togetherMemory = new Parts();
  readonly #fit = new Parts();
  readonly #loads = new Parts();
  readonly #loadMemory = new Parts();
  readonly #decisions = new Parts();
  readonly #decisionMemory = new Parts();
  readonly #kept = new Parts();

  /** @param engine path of the pulumi executable */
  constructor(engine: string, signal: AbortSignal) {
    this.#engine = engine;
    this.#signal = signal;
  }

  /** One cluster of each cloud, from the first plan to its end. */
  async lives(): Promise<void> {
    for (const cloud of CLOUDS) {
      await this.#withRig(1, async (rig) => {
        for (const [what, call] of Object.entries(LIFE)) {
          const { use, seconds } = await this.#watched(rig, () =>
            call(rig.provider(cloud), rig.context(cloud, 'one', this.#signal), (nodes) => wantedCluster(cloud, nodes)),
          );
          this.#seconds.add(what, cloud, seconds);
          this.#cpu.add(what, cloud, use.cpu.worker + use.cpu.engine);
          this.#pluginCpu.add(what, cloud, use.cpu.plugin);
          this.#starts.add(what, cloud, use.engines);
          if (what === FULLEST) this.#notePeak(cloud, use);
        }
      });
    }
  }

  /** Clusters of one cloud that are created at the same time. */
  async together(cloud: CloudName = 'aws'): Promise<void> {
    const perStack = { withoutPlugins: 0, all: 0 };
    for (const count of AT_ONCE) {
      await this.#withRig(count, async (rig) => {
        const { use, seconds } = await this.#watched(rig, () =>
          Promise.all(
            Array.from({ length: count }, (_, index) =>
              rig.provider(cloud).apply(rig.context(cloud, `c${index}`, this.#signal), wantedCluster(cloud, 1)),
            ),
          ),
        );
        const column = `${count} at once`;
        this.#togetherSeconds.add('until all are created', column, seconds);
        this.#togetherMemory.add('workers and engines, PSS', column, use.peakShare.withoutPlugins);
        this.#togetherMemory.add("with the kit's plugins, PSS", column, use.peakShare.all);
        // The worst of them: of many stacks on few cores, not all are at their peak at the same moment.
        for (const which of ['withoutPlugins', 'all'] as const)
          perStack[which] = Math.max(perStack[which], use.peakShare[which] / count);
      });
    }
    for (const room of ROOMS_GIB) {
      this.#fit.add('worker and engine', `${room} GiB`, Math.floor((room * 1024) / perStack.withoutPlugins));
      this.#fit.add("with the kit's plugin", `${room} GiB`, Math.floor((room * 1024) / perStack.all));
    }
  }

  async loads(): Promise<void> {
    await measureLoads((title, cache, { seconds, cpuSeconds, anonymous }) => {
      this.#loads.add(title, `s, compile cache ${cache}`, seconds);
      this.#loads.add(title, `CPU-s, ${cache}`, cpuSeconds);
      this.#loadMemory.add(title, `compile cache ${cache}`, anonymous);
    }, this.#signal);
  }

  decisions(): void {
    for (const [what, microseconds] of Object.entries(measureDecisions()))
      this.#decisions.add(what, 'CPU time', microseconds);
    for (const [what, milliseconds] of Object.entries(measurePacking()))
      this.#decisions.add(what, 'CPU time', milliseconds * 1000);
    for (const [what, { milliseconds, mebibytes }] of Object.entries(measureBuying())) {
      this.#decisions.add(what, 'CPU time', milliseconds * 1000);
      this.#decisionMemory.add(what, 'resident', mebibytes);
    }
    for (const [what, mebibytes] of Object.entries(measureKeptPods())) this.#kept.add(what, 'heap', mebibytes);
  }

  tables(): PartsTable[] {
    return [
      ...this.#seconds.inOrder('A managed cluster (two stacks): time of an operation', 's'),
      ...this.#cpu.inOrder('CPU of it: worker and engine', 'CPU-s'),
      ...this.#pluginCpu.inOrder("CPU of it: the kit's plugin", 'CPU-s'),
      ...this.#starts.inOrder('Starts of the engine for it', 'starts'),
      ...this.#peak.inOrder('Memory of one stack at its peak, while a cluster is created', 'MiB'),
      ...this.#togetherSeconds.inOrder('Clusters at the same time (aws): time', 's'),
      ...this.#togetherMemory.inOrder('Clusters at the same time (aws): memory at the peak', 'MiB'),
      ...this.#fit.inOrder('Stacks under way that fit, by these', 'stacks'),
      ...this.#loads.inOrder('Start of a worker until its modules are loaded', 's'),
      ...this.#loadMemory.inOrder('Anonymous memory of it then', 'MiB'),
      ...this.#decisions.inOrder('Pure decisions: CPU time of each', 'µs'),
      ...this.#decisionMemory.inOrder('Memory of a process that decides that, at its peak', 'MiB'),
      ...this.#kept.inOrder('What is kept of 10,000 nodes with 30 pods each', 'MiB'),
    ];
  }

  #notePeak(cloud: CloudName, { peak }: WorkerUse): void {
    for (const part of WORKER_PARTS) {
      const title = part === 'plugin' ? "the kit's plugin" : part;
      this.#peak.add(`${title}, PSS`, cloud, peak[part].share);
      this.#peak.add(`${title}, anonymous`, cloud, peak[part].anonymous);
    }
  }

  async #watched(rig: CloudRig, work: () => Promise<unknown>): Promise<{ use: WorkerUse; seconds: number }> {
    this.#signal.throwIfAborted();
    const watch = new WorkerWatch(() => rig.runner.workers);
    const from = performance.now();
    let use: WorkerUse;
    try {
      await work();
    } finally {
      use = watch.stop();
    }
    return { seconds: secondsSince(from), use };
  }

  async #withRig(atOnce: number, work: (rig: CloudRig) => Promise<void>): Promise<void> {
    const rig = await CloudRig.open(this.#engine, atOnce);
    try {
      await work(rig);
    } finally {
      await rig.close();
    }
  }
}

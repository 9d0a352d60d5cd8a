import { mkdir, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { whyNoNodes } from '../../operator/garden/host/capabilities.ts';
import { type ImageName, toolImage } from '../../operator/garden/images/catalog.ts';
import { buildControlPlaneMachineImage, buildMachineImage } from '../../operator/garden/images/machine-images.ts';
import { SEED_IMAGES } from '../../operator/garden/images/seed-images.ts';
import { NODE_TOOLS } from '../../operator/garden/seed/node.ts';
import { toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import { CloudBench } from './clouds.ts';
import { BenchGarden, secondsSince } from './garden.ts';
import { cpuTimes, describeMachine } from './machine.ts';
import { MembersBench } from './members.ts';
import { needsGarden, type Options, parseOptions, USAGE } from './options.ts';
import { type Report, renderMarkdown, renderText } from './report.ts';
import { Bench } from './scenarios.ts';

const RESULTS = fileURLToPath(new URL('../../test-results', import.meta.url));
const IMAGES: ImageName[] = [...SEED_IMAGES, 'pause', 'coredns', 'kwok', 'local-path-provisioner', 'echo'];

const began = performance.now();
const say = (text: string) => process.stderr.write(`bench: ${secondsSince(began).toFixed(0).padStart(4)} s: ${text}\n`);

/** Each of these runs takes minutes, and what it tells hardly varies. */
const MOST_CLOUD_RUNS = 3;

/** Makes what is needed and would have to be made first. Resolves to paths. */
async function fillCache(tools: string, options: Options): Promise<{ containerd?: string; pulumi?: string }> {
  const told = new Set<string>();
  const toolchain = new Toolchain({
    dir: tools,
    onProgress: ({ tool, phase, source }) => {
      const line = `${tool}: ${phase} (${source})`;
      if (phase !== 'ready' && source !== 'cache' && !told.has(line)) say(line);
      told.add(line);
    },
  });
  const paths: { containerd?: string; pulumi?: string } = {};
  if (needsGarden(options.scenarios)) {
    const made = await toolchain.ensure([...NODE_TOOLS, 'etcd', 'kube-apiserver', 'kubelet', 'kube-proxy']);
    paths.containerd = made.containerd;
    for (const name of IMAGES) await toolImage(name, toolchain);
    await buildMachineImage(toolchain);
    await buildControlPlaneMachineImage(toolchain);
  }
  if (options.scenarios.has('clouds')) paths.pulumi = (await toolchain.ensure(['pulumi'])).pulumi;
  return paths;
}

/** Runs everything that is asked for, and writes down what there is after each part: an interruption costs only the rest. */
async function measure(options: Options, signal: AbortSignal): Promise<Report> {
  const { runs, scenarios, clusters } = options;
  const tools = toolsDirectory();
  const { containerd, pulumi = '' } = await fillCache(tools, options);
  const machine = await describeMachine(containerd);
  if (machine.loadBefore > machine.cores / 4) {
    say(`the machine is busy (load ${machine.loadBefore.toFixed(2)}): the figures will say little`);
  }
  const bench = new Bench(signal, scenarios.has('scale') ? clusters : []);
  const clouds = new CloudBench(pulumi, signal);
  const members = new MembersBench(signal);
  const failures: string[] = [];
  const start = { at: performance.now(), time: new Date(), cpu: await cpuTimes() };
  const report = async (): Promise<Report> => {
    const cpu = await cpuTimes();
    const percent = (what: 'busy' | 'stolen') =>
      (100 * (cpu[what] - start.cpu[what])) / Math.max(1, cpu.total - start.cpu.total);
    return {
      began: start.time.toISOString(),
      seconds: secondsSince(start.at),
      runs,
      machine,
      busyPercent: percent('busy'),
      stolenPercent: percent('stolen'),
      figures: bench.figures.report(),
      parts: [...bench.parts(), ...members.tables(), ...clouds.tables()],
      timeline: bench.timeline(),
      failures,
    };
  };

  let garden: BenchGarden | undefined;
  const takeDown = async () => {
    const seconds = await garden?.down();
    garden = undefined;
    if (scenarios.has('garden')) bench.figures.add('garden.down', seconds);
  };
  /** One run; what it leaves behind when it fails must not burden the next. */
  const attempt = async (what: string, run: () => Promise<void>) => {
    signal.throwIfAborted();
    const from = performance.now();
    try {
      await run();
      say(`${what}: ${secondsSince(from).toFixed(1)} s`);
    } catch (error) {
      signal.throwIfAborted();
      failures.push(`${what}: ${(error as Error).message.slice(0, 500)}`);
      say(failures.at(-1)!);
      await bench.abandon();
      await garden?.sweep();
    }
  };
  const times = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

  const inGarden = async () => {
    const bringUp = async () => {
      signal.throwIfAborted();
      await takeDown();
      const made = await BenchGarden.up(tools, signal);
      garden = made.garden;
      await garden.follow(signal);
      bench.use(garden);
      return made;
    };
    for (const run of scenarios.has('garden') ? times(runs) : []) {
      const { begun, times: took } = await bringUp();
      say(`garden ${run}: up in ${took.up.toFixed(1)} s`);
      for (const name of ['api', 'node', 'operator', 'up'] as const) bench.figures.add(`garden.${name}`, took[name]);
      await attempt(`its first cluster, garden ${run}`, () => bench.firstCluster(begun));
    }
    if ([...scenarios].some((scenario) => scenario !== 'garden' && needsGarden(new Set([scenario])))) {
      await bringUp();
      await garden!.settle(signal);
      say('a garden is up, and the seed has all images');
    }
    if (scenarios.has('idle')) await attempt('an empty garden', () => bench.emptyGarden());
    for (const run of scenarios.has('one') ? times(runs) : []) {
      await attempt(`one control plane, run ${run}`, () => bench.controlPlanes(1));
    }
    await write(await report());
    for (const run of scenarios.has('nodes') || scenarios.has('grow') ? times(runs) : []) {
      const options = { scale: scenarios.has('grow'), isFirst: run === 1 };
      await attempt(`nodes, run ${run}`, () => bench.nodes(options));
    }
    for (const run of scenarios.has('autoscale') ? times(runs) : [])
      await attempt(`a node for a pod that waits, run ${run}`, () => bench.autoscale());
    await write(await report());
    for (const run of scenarios.has('five') ? times(runs) : []) {
      await attempt(`five control planes, run ${run}`, () => bench.controlPlanes(5));
    }
    await write(await report());
    for (const count of scenarios.has('scale') ? clusters : []) {
      await attempt(`${count} clusters without control planes`, () => bench.scale(count));
      await write(await report());
    }
    for (const run of scenarios.has('reach') ? times(runs) : [])
      await attempt(`API servers with a way to pods and without, run ${run}`, () => bench.reach(run));
    if (scenarios.has('idle')) await attempt('idle', () => bench.idle(Math.max(2, runs)));
  };

  try {
    for (const count of scenarios.has('members') ? clusters : []) {
      await attempt(`${count} members of one hub`, () => members.run(count));
      await write(await report());
    }
    if (scenarios.has('decisions')) await attempt('decisions', async () => clouds.decisions());
    for (const run of scenarios.has('clouds') ? times(Math.min(runs, MOST_CLOUD_RUNS)) : []) {
      await attempt(`start of workers, run ${run}`, () => clouds.loads());
      await attempt(`a managed cluster of each cloud, run ${run}`, () => clouds.lives());
      await write(await report());
      await attempt(`clusters at the same time, run ${run}`, () => clouds.together());
      await write(await report());
    }
    if (needsGarden(scenarios)) await inGarden();
  } finally {
    if (garden) say('taking the garden down');
    await bench.abandon();
    await takeDown().catch((error: Error) => failures.push(error.message));
    await write(await report());
  }
  return report();
}

async function write(report: Report): Promise<void> {
  await mkdir(RESULTS, { recursive: true });
  await writeFile(`${RESULTS}/bench.json`, `${JSON.stringify(report, undefined, 2)}\n`);
  await writeFile(`${RESULTS}/bench.md`, renderMarkdown(report));
}

async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2));
  if (options.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const why = needsGarden(options.scenarios) ? await whyNoNodes() : undefined;
  if (why !== undefined) throw new Error(`no garden with a local seed can be made here: ${why}`);
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => stopping.abort(new Error(`received ${name}`)));
  const report = await measure(options, stopping.signal);
  process.stdout.write(renderText(report));
  say(`written to test-results/bench.json and test-results/bench.md; load is ${loadavg()[0]!.toFixed(2)} now`);
  return report.failures.length > 0 ? 1 : 0;
}

process.exitCode = await main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  return 1;
});

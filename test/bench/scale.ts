import { setTimeout as sleep } from 'node:timers/promises';
import { isTrue } from '../../operator/api/conditions.ts';
import { API_VERSION } from '../../operator/api/group.ts';
import { technicalID } from '../../operator/api/names.ts';
import { waitFor } from '../../operator/kube/informer.ts';
import { keyOf, NAMESPACES, WORKERCLUSTERS } from '../../operator/kube/resources.ts';
import { type BenchGarden, LONG_PATIENCE_MS, secondsSince } from './garden.ts';
import { memoryBy, type Process, partOfGarden, residentOf } from './processes.ts';
import type { ScaleFigure } from './scale-figures.ts';

const PROJECT = 'bench-scale';
/** As many people may ask in the same moment; the rest of a thousand wait for their turn at the API server anyway. */
const REQUESTS_AT_ONCE = 64;
const SETTLE_MS = 1500;
const IDLE_SETTLE_MS = 10_000;
const IDLE_MS = 60_000;
const AFTER_KILL_MS = 5000;
const SAMPLE_MS = 500;

type CpuBetween = (before: readonly Process[], after: readonly Process[]) => Map<string, number>;

export interface ScaleMeasured {
  figures: [ScaleFigure, number | undefined][];
  /** CPU-seconds by part. */
  cpu: { create: Map<string, number>; delete: Map<string, number> };
  /** MiB (PSS) by part, when all are Ready. */
  memory: Map<string, number>;
}

/**
 * Makes so many clusters without control planes (1 control plane machine and 3 nodes each, as objects only) at once, leaves them alone,
 * kills the operator, and deletes them.
 */
export async function measureScale(
  garden: BenchGarden,
  count: number,
  signal: AbortSignal,
  cpuBetween: CpuBetween,
): Promise<ScaleMeasured> {
  const names = Array.from({ length: count }, (_, i) => `c${i}`);
  await ensureProject(garden);
  const memoryBefore = sumOf(shares(garden));
  const made = await create(garden, names, signal, cpuBetween);
  const memory = shares(garden);
  const idle = await watchIdle(garden, signal, cpuBetween);
  const killed = await kill(garden, count, signal);
  const deleted = await remove(garden, names, signal, cpuBetween);
  const perCluster = (parts: Map<string, number>) => sumOf(parts) / count;
  return {
    figures: [
      ...made.figures,
      ['cpu.create', perCluster(made.cpu)],
      ['memory.share', sumOf(memory)],
      ['memory.growth', (sumOf(memory) - memoryBefore) / count],
      ...idle,
      ...killed,
      ...deleted.figures,
      ['cpu.delete', perCluster(deleted.cpu)],
    ],
    cpu: { create: made.cpu, delete: deleted.cpu },
    memory,
  };
}

async function create(garden: BenchGarden, names: readonly string[], signal: AbortSignal, cpuBetween: CpuBetween) {
  const { clusters } = garden;
  const writes = await garden.writes();
  const before = garden.processes();
  const readyAt = new Map<string, number>();
  const end = clusters.onChange(({ type, object }) => {
    const key = keyOf(object);
    const { generation } = object.metadata;
    const isReady = object.status?.observedGeneration === generation && isTrue(object.status?.conditions, 'Ready');
    if (type !== 'deleted' && isReady && !readyAt.has(key)) readyAt.set(key, performance.now());
  });
  const peaks = watchMemory(garden);
  try {
    const start = performance.now();
    await inTurns(names, (name) =>
      garden.client.create({
        apiVersion: API_VERSION,
        kind: 'WorkerCluster',
        metadata: { name, namespace: PROJECT },
        spec: { cloudProvider: 'simulated', cloudProfile: 'simulated-scale', controlPlaneNodes: 1, dataPlaneNodes: 3 },
      }),
    );
    await waitFor([clusters], () => readyAt.size >= names.length, {
      timeoutMs: LONG_PATIENCE_MS,
      signal,
      what: () => `${names.length} clusters to be Ready (${readyAt.size} are)`,
    });
    const cpu = cpuBetween(before, garden.processes());
    await sleep(SETTLE_MS, undefined, { signal });
    const after = await garden.writes();
    const times = [...readyAt.values()].map((at) => (at - start) / 1000);
    const { rss, operator } = peaks.stop();
    const figures: [ScaleFigure, number][] = [
      ['ready', Math.max(...times)],
      ['first', Math.min(...times)],
      ['writes.create', (after.operator - after.leases - writes.operator + writes.leases) / names.length],
      ['writes.create.all', (after.all - writes.all) / names.length],
      ['memory.operator', operator],
      ['memory.rss', rss],
    ];
    return { cpu, figures };
  } finally {
    peaks.stop();
    end();
  }
}

async function watchIdle(
  garden: BenchGarden,
  signal: AbortSignal,
  cpuBetween: CpuBetween,
): Promise<[ScaleFigure, number][]> {
  await garden.networkTried(signal);
  await sleep(IDLE_SETTLE_MS, undefined, { signal });
  const writes = await garden.writes();
  const before = garden.processes();
  const start = performance.now();
  await sleep(IDLE_MS, undefined, { signal });
  const parts = cpuBetween(before, garden.processes());
  const after = await garden.writes();
  const seconds = secondsSince(start);
  const leases = after.leases - writes.leases;
  return [
    ['idle.writes', ((after.operator - writes.operator - leases) * 60) / seconds],
    ['idle.all', ((after.all - writes.all) * 60) / seconds],
    ['idle.cpu.operator', (parts.get('garden: operator') ?? 0) / seconds],
    ['idle.cpu', sumOf(parts) / seconds],
  ];
}

async function kill(garden: BenchGarden, count: number, signal: AbortSignal): Promise<[ScaleFigure, number][]> {
  const { leases } = await garden.writes();
  const settled = await garden.killOperator(count, signal);
  // It is a new process: all that it has used so far is the restart's.
  const cpu = garden.processes().find(({ component }) => component === 'operator')?.cpuSeconds ?? 0;
  await sleep(AFTER_KILL_MS, undefined, { signal });
  const after = await garden.writes();
  return [
    ['kill.settled', settled],
    ['kill.writes', after.operator - (after.leases - leases)],
    ['kill.cpu', cpu],
  ];
}

async function remove(garden: BenchGarden, names: readonly string[], signal: AbortSignal, cpuBetween: CpuBetween) {
  const { clusters, namespaces, client } = garden;
  const inSeed = names.map((name) => technicalID(PROJECT, name));
  const writes = await garden.writes();
  const before = garden.processes();
  const start = performance.now();
  const patience = { timeoutMs: LONG_PATIENCE_MS, signal };
  const gone = waitFor([clusters], () => clusters.size === 0, {
    ...patience,
    what: () => `${clusters.size} clusters to be gone`,
  }).then(() => secondsSince(start));
  const empty = waitFor([namespaces], () => !inSeed.some((name) => namespaces.get(name)), {
    ...patience,
    what: () => `${namespaces.size} namespaces to be gone`,
  }).then(() => secondsSince(start));
  for (const wait of [gone, empty]) wait.catch(() => {});
  await inTurns(names, (name) => client.delete(WORKERCLUSTERS, name, PROJECT));
  const [objects, spaces] = await Promise.all([gone, empty]);
  const cpu = cpuBetween(before, garden.processes());
  await sleep(SETTLE_MS, undefined, { signal });
  const after = await garden.writes();
  const figures: [ScaleFigure, number][] = [
    ['delete', objects],
    ['delete.namespaces', spaces],
    ['writes.delete', (after.operator - after.leases - writes.operator + writes.leases) / names.length],
    ['writes.delete.all', (after.all - writes.all) / names.length],
  ];
  return { cpu, figures };
}

async function ensureProject({ client }: BenchGarden): Promise<void> {
  if (await client.getOrUndefined(NAMESPACES, PROJECT)) return;
  await client.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: PROJECT } });
}

async function inTurns(names: readonly string[], request: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names].reverse();
  const work = async () => {
    for (let name = left.pop(); name !== undefined; name = left.pop()) await request(name);
  };
  await Promise.all(Array.from({ length: REQUESTS_AT_ONCE }, work));
}

/** Looks at resident memory twice a second until it is stopped; the peaks are in MiB. */
function watchMemory(garden: BenchGarden) {
  const peaks = { rss: 0, operator: 0 };
  const look = () => {
    let rss = 0;
    for (const { pid, component } of garden.processes()) {
      const own = residentOf(pid);
      rss += own;
      if (component === 'operator') peaks.operator = Math.max(peaks.operator, own);
    }
    peaks.rss = Math.max(peaks.rss, rss);
  };
  const timer = setInterval(look, SAMPLE_MS);
  return {
    stop() {
      clearInterval(timer);
      look();
      return peaks;
    },
  };
}

/** PSS in MiB by part of the garden. */
const shares = (garden: BenchGarden): Map<string, number> =>
  new Map([...memoryBy(garden.processes(), partOfGarden)].map(([part, { share }]) => [part, share]));

const sumOf = (parts: ReadonlyMap<string, number>): number =>
  [...parts.values()].reduce((sum, value) => sum + value, 0);

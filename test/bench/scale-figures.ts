import type { Definition } from './figures.ts';
import type { Bar } from './statistics.ts';

/** What is measured of each size. */
const TITLES = {
  ready: { title: 'first POST to all Ready', unit: 's' },
  first: { title: 'first POST to the first Ready', unit: 's' },
  'cpu.create': { title: 'CPU of all processes until all Ready, per cluster', unit: 'CPU-s' },
  'writes.create': { title: "operator's writes until all Ready, per cluster", unit: 'writes' },
  'writes.create.all': {
    title: "all writes until all Ready, Kubernetes' controllers too, per cluster",
    unit: 'writes',
  },
  'memory.operator': { title: 'peak RSS of the operator', unit: 'MiB' },
  'memory.share': { title: 'PSS of all processes of the garden, all Ready', unit: 'MiB' },
  'memory.rss': { title: 'peak of the sum of RSS of all processes (shared pages count in each)', unit: 'MiB' },
  'memory.growth': { title: 'growth of all processes (PSS), per cluster', unit: 'MiB' },
  'idle.writes': { title: "operator's writes when idle, without its Lease", unit: 'writes/min' },
  'idle.all': { title: 'all writes at the garden when idle', unit: 'writes/min' },
  'idle.cpu.operator': { title: 'CPU of the operator when idle', unit: 'cores' },
  'idle.cpu': { title: 'CPU of the whole garden when idle', unit: 'cores' },
  'kill.settled': { title: 'kill -9 of the operator to settled', unit: 's' },
  'kill.writes': { title: "the new operator's writes until 5 s after that, without its Lease", unit: 'writes' },
  'kill.cpu': { title: 'CPU of the new operator until then', unit: 'CPU-s' },
  delete: { title: 'first DELETE to all WorkerClusters gone', unit: 's' },
  'delete.namespaces': { title: 'first DELETE to the last namespace in the seed gone', unit: 's' },
  'cpu.delete': { title: 'CPU of all processes until the last namespace is gone, per cluster', unit: 'CPU-s' },
  'writes.delete': { title: "operator's writes of the deletion, per cluster", unit: 'writes' },
  'writes.delete.all': {
    title: "all writes of the deletion, Kubernetes' controllers too, per cluster",
    unit: 'writes',
  },
} as const satisfies Record<string, Pick<Definition, 'title' | 'unit'>>;

export type ScaleFigure = keyof typeof TITLES;
export type ScaleFigureId = `scale.${number}.${ScaleFigure}`;

/** What the design wants, and what others need, by size; measured for Cluster API's in-memory provider on a machine of this kind. */
const WANTED: Readonly<Record<number, Partial<Record<ScaleFigure, { bar?: Bar; others?: string }>>>> = {
  100: {
    ready: { bar: { maximum: 30 }, others: 'Cluster API in memory 536' },
    'cpu.create': { bar: { maximum: 0.6 }, others: 'Cluster API 10.5' },
    'writes.create': { bar: { maximum: 39 }, others: 'Cluster API 500' },
    'memory.share': { bar: { maximum: 1024 }, others: 'Cluster API: API server alone 2900' },
    'kill.settled': { bar: { maximum: 10 }, others: 'Cluster API 78' },
    'kill.writes': { bar: { maximum: 0 }, others: 'Cluster API 2677' },
    'idle.writes': { bar: { maximum: 0 } },
    delete: { bar: { maximum: 20 }, others: 'Cluster API 199' },
  },
  1000: {
    ready: { bar: { maximum: 300 }, others: 'Cluster API 15 min on a fast laptop' },
    'memory.operator': { bar: { maximum: 400 } },
    'kill.settled': { bar: { maximum: 30 } },
    'kill.writes': { bar: { maximum: 0 } },
    'idle.writes': { bar: { maximum: 0 } },
    'idle.cpu.operator': { bar: { maximum: 0.02 } },
  },
};

/** Definitions of all figures of one size. */
export const scaleFigures = (count: number): [ScaleFigureId, Definition][] =>
  (Object.entries(TITLES) as [ScaleFigure, Pick<Definition, 'title' | 'unit'>][]).map(([name, definition]) => [
    `scale.${count}.${name}`,
    { section: `${count} clusters without control planes, at once`, ...definition, ...WANTED[count]?.[name] },
  ]);

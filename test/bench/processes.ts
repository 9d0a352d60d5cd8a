import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** /proc counts in hundredths of a second on every architecture. */
const TICKS = 100;
/** On x86-64, and on arm64 as Debian has it. */
const PAGE_BYTES = 4096;
const POD = /\/pod([0-9a-f]{8}[-_0-9a-f]{28})(?:\/([0-9a-f]{64}))?/;

export interface Stat {
  pid: number;
  name: string;
  parent: number;
  /** Own time and that of children that have ended and were waited for, in seconds. */
  cpuSeconds: number;
  /** Seconds after the boot. */
  startedAt: number;
}

/** A line of /proc/<pid>/stat. */
export function parseStat(line: string): Stat {
  const open = line.indexOf('(');
  const close = line.lastIndexOf(')');
  const fields = line.slice(close + 2).split(' ');
  const sum = [11, 12, 13, 14].reduce((total, index) => total + Number(fields[index]), 0);
  return {
    pid: Number(line.slice(0, open)),
    name: line.slice(open + 1, close),
    parent: Number(fields[1]),
    cpuSeconds: sum / TICKS,
    startedAt: Number(fields[19]) / TICKS,
  };
}

/** The pod and the container of a cgroup path. A machine's own pods lie in the machine's pod. */
export function podOf(cgroup: string): { uid: string; container: string | undefined } | undefined {
  const match = POD.exec(cgroup);
  return match ? { uid: match[1]!.replaceAll('_', '-'), container: match[2] } : undefined;
}

export interface Process extends Stat {
  /** Of the seed's pod that it belongs to; a pod's shim, which lives outside of the pod, counts as the pod's. */
  pod?: string;
  /** What of a pod is there for the pod itself: its shim and pause. */
  isSandbox: boolean;
  /** Component of the garden (`etcd`, `operator`, ...) that it is or descends from. */
  component?: string;
}

export interface GardenProcesses {
  /** Folder of the garden's cgroup in the hierarchy that holds all its processes. */
  cgroup: string;
  /** pid -> name of the garden's own processes. */
  components: ReadonlyMap<number, string>;
}

/** All processes of a garden, its pods' included. Those that end while this looks are left out. */
export function readProcesses({ cgroup, components }: GardenProcesses): Process[] {
  const found = new Map<number, { stat: Stat; path: string }>();
  const look = (pid: number, path: string) => {
    const line = readOrUndefined(`/proc/${pid}/stat`);
    if (line) found.set(pid, { stat: parseStat(line), path });
  };
  walk(cgroup, '', look);
  for (const pid of components.keys()) if (!found.has(pid)) look(pid, '');

  const podOfSandbox = new Map<string, string>();
  for (const { path } of found.values()) {
    const pod = podOf(path);
    if (pod?.container) podOfSandbox.set(pod.container, pod.uid);
  }
  const componentOf = (pid: number, depth = 0): string | undefined => {
    const parent = found.get(pid)?.stat.parent;
    return components.get(pid) ?? (parent && depth < 10 ? componentOf(parent, depth + 1) : undefined);
  };
  return [...found.values()].map(({ stat, path }) => {
    const pod = podOf(path);
    if (pod) return { ...stat, pod: pod.uid, isSandbox: stat.name === 'pause' && !isNested(path) };
    if (stat.name.startsWith('containerd-shim')) {
      const id = /\0-id\0([0-9a-f]{64})\0/.exec(readOrUndefined(`/proc/${stat.pid}/cmdline`) ?? '')?.[1];
      const owner = id && podOfSandbox.get(id);
      return { ...stat, ...(owner && { pod: owner }), isSandbox: true, component: 'containerd' };
    }
    const component = componentOf(stat.pid);
    return { ...stat, isSandbox: false, ...(component && { component }) };
  });
}

/** Whether the path leads into a pod of a machine. */
const isNested = (path: string): boolean => path.split('/pod').length > 2;

function walk(folder: string, path: string, look: (pid: number, path: string) => void): void {
  let names: string[];
  try {
    names = readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return;
  }
  for (const pid of (readOrUndefined(join(folder, 'cgroup.procs')) ?? '').split('\n')) if (pid) look(Number(pid), path);
  for (const name of names) walk(join(folder, name), `${path}/${name}`, look);
}

function readOrUndefined(file: string): string | undefined {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return undefined;
  }
}

/**
 * CPU-seconds by part between two looks. A process that has ended in between is in its parent's time, if somebody waited
 * for it.
 */
export function cpuBetween(
  before: readonly Process[],
  after: readonly Process[],
  partOf: (process: Process) => string,
): Map<string, number> {
  const old = new Map(before.map((process) => [`${process.pid}/${process.startedAt}`, process.cpuSeconds]));
  const parts = new Map<string, number>();
  for (const process of after) {
    const used = process.cpuSeconds - (old.get(`${process.pid}/${process.startedAt}`) ?? 0);
    const part = partOf(process);
    parts.set(part, (parts.get(part) ?? 0) + used);
  }
  return parts;
}

/** In MiB. */
export interface Memory {
  rss: number;
  anonymous: number;
  /** Proportional: pages that n processes share count 1/n in each. */
  share: number;
}

/** The memory of a process; nothing when it has ended. */
export function memoryOf(pid: number): Memory {
  const text = readOrUndefined(`/proc/${pid}/smaps_rollup`) ?? '';
  const mebibytes = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024;
  return { rss: mebibytes('Rss'), anonymous: mebibytes('Anonymous'), share: mebibytes('Pss') };
}

/** Resident memory in MiB, without the walk over all pages that memoryOf is; 0 when it has ended. */
export function residentOf(pid: number): number {
  const pages = Number((readOrUndefined(`/proc/${pid}/statm`) ?? '').split(' ')[1] ?? 0);
  return (pages * PAGE_BYTES) / 2 ** 20;
}

/** Milliseconds to add to a process's start (in milliseconds after the boot) to get performance.now() of that moment. */
export function bootOffsetMs(): number {
  const uptime = Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000;
  return performance.now() - uptime;
}

/**
 * Whether a process of that number runs. One that has ended is kept by its number until its parent looks (a zombie), which says nothing
 * of it: some hosts' first process looks only each two seconds, and a pod's shim is its child.
 */
export function isRunning(pid: number): boolean {
  const line = readOrUndefined(`/proc/${pid}/stat`);
  return line !== undefined && !/\) [ZX] [^)]*$/.test(line);
}

/** Memory of processes together, by part. */
export function memoryBy(processes: readonly Process[], partOf: (process: Process) => string): Map<string, Memory> {
  const parts = new Map<string, Memory>();
  for (const process of processes) {
    const { rss, anonymous, share } = memoryOf(process.pid);
    const part = partOf(process);
    const before = parts.get(part) ?? { rss: 0, anonymous: 0, share: 0 };
    const after = { rss: before.rss + rss, anonymous: before.anonymous + anonymous, share: before.share + share };
    parts.set(part, after);
  }
  return parts;
}

/** The part of a garden that a process is of; pods are one. */
export const partOfGarden = ({ pod, component }: Process): string => (pod ? 'pods' : (component ?? 'other'));

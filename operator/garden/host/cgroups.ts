import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMissing } from './files.ts';

/** The machine's cgroup mounts. */
interface CgroupLayout {
  version: 1 | 2;
  /** Mount point of each hierarchy; one for version 2. */
  hierarchies: string[];
  /** Hierarchy by which processes are found and killed. */
  tracker: string;
}

const ROOT = '/sys/fs/cgroup';
/** In order of preference: hierarchies that account for no resource limited elsewhere come first. */
const TRACKERS = ['pids', 'freezer', 'devices', 'cpu'];
const V2_CONTROLLERS = ['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb'];

/** The layout from /proc/self/mountinfo. Undefined when no cgroups are usable by a kubelet. */
export function layoutFrom(mountinfo: string): CgroupLayout | undefined {
  const v1: string[] = [];
  let v2: string | undefined;
  for (const line of mountinfo.split('\n')) {
    const [before, after] = line.split(' - ');
    const point = before?.split(' ')[4];
    if (!point?.startsWith(ROOT)) continue;
    const type = after?.split(' ')[0];
    if (type === 'cgroup') v1.push(point);
    if (type === 'cgroup2' && point === ROOT) v2 = point;
    // Beside version 1 it controls nothing, but container runtimes create groups there too.
    else if (type === 'cgroup2') v1.push(point);
  }
  if (v2) return { version: 2, hierarchies: [v2], tracker: v2 };
  const tracker = TRACKERS.map((name) =>
    v1.find((point) =>
      point
        .slice(ROOT.length + 1)
        .split(',')
        .includes(name),
    ),
  ).find(Boolean);
  return tracker ? { version: 1, hierarchies: v1, tracker } : undefined;
}

export const readLayout = async (): Promise<CgroupLayout | undefined> =>
  layoutFrom(await readFile('/proc/self/mountinfo', 'utf8').catch(() => ''));

/** A garden's cgroup, below the root of each hierarchy. */
export const cgroupName = (id: string): string => `coppice-${id}`;

/** The cgroups of a garden: `<name>/system` holds its own processes; everything else in `<name>` is the kubelet's. */
export class Cgroups {
  readonly layout: CgroupLayout;
  readonly name: string;

  constructor(layout: CgroupLayout, name: string) {
    this.layout = layout;
    this.name = name;
  }

  /** A process that writes its PID here belongs to the garden, with its children. */
  get procsFile(): string {
    return join(this.layout.tracker, this.name, 'system', 'cgroup.procs');
  }

  async create(): Promise<void> {
    for (const hierarchy of this.layout.hierarchies) {
      const folder = join(hierarchy, this.name);
      if (this.layout.version === 2) await enableControllers(hierarchy);
      await mkdir(folder, { recursive: true });
      if (this.layout.version === 2) await enableControllers(folder);
      else await inheritCpuset(hierarchy, folder);
    }
    await mkdir(join(this.layout.tracker, this.name, 'system'), { recursive: true });
    if (this.layout.version === 2) await requireControllers(join(this.layout.tracker, this.name));
  }

  /** Processes of the garden, including pods. */
  async processes(): Promise<number[]> {
    const found: number[] = [];
    for (const folder of await tree(join(this.layout.tracker, this.name))) {
      const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
      found.push(...text.split('\n').filter(Boolean).map(Number));
    }
    return found;
  }

  /** Kills every process of the garden except `except`, until none is left. Throws when some survive. */
  async killAll(except: readonly number[] = [], timeoutMs = 15_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (let pauseMs = 5; ; pauseMs = Math.min(pauseMs * 2, 200)) {
      const left = (await this.processes()).filter((pid) => pid > 0 && !except.includes(pid));
      if (left.length === 0) return;
      for (const pid of left) {
        try {
          process.kill(pid, 'SIGKILL');
        } catch {}
      }
      if (performance.now() > deadline)
        throw new Error(`processes ${left.join(', ')} of cgroup ${this.name} survive SIGKILL`);
      await sleep(pauseMs);
    }
  }

  /** Removes the garden's cgroups. Its processes must be gone. */
  async remove(): Promise<void> {
    for (const hierarchy of this.layout.hierarchies) {
      for (const folder of (await tree(join(hierarchy, this.name))).reverse()) await removeFolder(folder);
    }
  }
}

/** A folder and its subfolders, parents first. */
async function tree(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (!entries) return [];
  const below = await Promise.all(entries.filter((e) => e.isDirectory()).map((e) => tree(join(folder, e.name))));
  return [folder, ...below.flat()];
}

/** Retries: the kernel reports busy for a moment after a process ended. */
async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await rmdir(folder);
    } catch (error) {
      if (isMissing(error)) return;
      if (attempt === 50) throw error;
      await sleep(20);
    }
  }
}

/** Unavailable controllers are ignored here; the kubelet reports them. */
async function enableControllers(folder: string): Promise<void> {
  const file = join(folder, 'cgroup.subtree_control');
  for (const controller of V2_CONTROLLERS) await writeFile(file, `+${controller}`).catch(() => {});
}

async function requireControllers(folder: string): Promise<void> {
  const given = (await readFile(join(folder, 'cgroup.controllers'), 'utf8')).trim().split(' ');
  const missing = ['cpu', 'memory', 'pids'].filter((name) => !given.includes(name));
  if (missing.length > 0) throw new Error(`the cgroup controllers ${missing.join(', ')} cannot be used here`);
}

/** A new cpuset is empty in version 1 and accepts no process. */
async function inheritCpuset(hierarchy: string, folder: string): Promise<void> {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    const text = await readFile(join(hierarchy, file), 'utf8').catch(() => undefined);
    if (text !== undefined) await writeFile(join(folder, file), text);
  }
}

import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isMissing } from './files.ts';

/** How this machine's cgroups are mounted. */
export interface CgroupLayout {
  version: 1 | 2;
  /** Where each hierarchy is mounted; one for version 2. */
  hierarchies: string[];
  /** The hierarchy by which processes are found and ended. */
  tracker: string;
}

const ROOT = '/sys/fs/cgroup';
/** The one that accounts for nothing that a limit elsewhere may depend on comes first. */
const TRACKERS = ['pids', 'freezer', 'devices', 'cpu'];
const V2_CONTROLLERS = ['cpu', 'cpuset', 'io', 'memory', 'pids', 'hugetlb'];

/** The layout as /proc/self/mountinfo tells it. Undefined when there are no cgroups that a kubelet could use. */
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
    // Beside version 1 it controls nothing, but container runtimes make their groups there as well.
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

/** A garden's cgroup, under the root of each hierarchy. */
export const cgroupName = (id: string): string => `coppice-${id}`;

/** The cgroups of one garden: `<name>/system` holds its own processes, everything else in `<name>` is the kubelet's. */
export class Cgroups {
  readonly layout: CgroupLayout;
  readonly name: string;

  constructor(layout: CgroupLayout, name: string) {
    this.layout = layout;
    this.name = name;
  }

  /** A process that writes its number here belongs to the garden, and all its children do. */
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

  /** The processes of the garden, its pods' included. */
  async processes(): Promise<number[]> {
    const found: number[] = [];
    for (const folder of await tree(join(this.layout.tracker, this.name))) {
      const text = await readFile(join(folder, 'cgroup.procs'), 'utf8').catch(() => '');
      found.push(...text.split('\n').filter(Boolean).map(Number));
    }
    return found;
  }

  /** Kills every process of the garden but those of `except`, until none is left. Throws when some will not go. */
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

/** A folder and all below it, parents first. */
async function tree(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error) => {
    if (isMissing(error)) return undefined;
    throw error;
  });
  if (!entries) return [];
  const below = await Promise.all(entries.filter((e) => e.isDirectory()).map((e) => tree(join(folder, e.name))));
  return [folder, ...below.flat()];
}

/** The kernel takes a moment to forget a process that ended, and says busy until then. */
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

/** One that the machine does not have, or will not give, is the kubelet's to complain about. */
async function enableControllers(folder: string): Promise<void> {
  const file = join(folder, 'cgroup.subtree_control');
  for (const controller of V2_CONTROLLERS) await writeFile(file, `+${controller}`).catch(() => {});
}

async function requireControllers(folder: string): Promise<void> {
  const given = (await readFile(join(folder, 'cgroup.controllers'), 'utf8')).trim().split(' ');
  const missing = ['cpu', 'memory', 'pids'].filter((name) => !given.includes(name));
  if (missing.length > 0) throw new Error(`the cgroup controllers ${missing.join(', ')} cannot be used here`);
}

/** A new cpuset is empty in version 1, and no process can enter it. */
async function inheritCpuset(hierarchy: string, folder: string): Promise<void> {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    const text = await readFile(join(hierarchy, file), 'utf8').catch(() => undefined);
    if (text !== undefined) await writeFile(join(folder, file), text);
  }
}

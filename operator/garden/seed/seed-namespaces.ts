import { mkdir } from 'node:fs/promises';
import { Cgroups, cgroupName, readLayout } from '../host/cgroups.ts';
import { raiseHostLimits } from '../host/host-limits.ts';
import { FIXED_FOLDERS, makeFolders, mountNamespaceFile, SEED_PATHS, setUpMounts } from '../host/mounts.ts';
import { enterNetwork, loadModules, networkExists, networkNames, setUpNetwork } from '../host/network.ts';
import type { StateDirectory } from '../state/state.ts';
import { takeDownSeed } from './cleanup.ts';
import type { GardenOfSeed } from './garden-of-seed.ts';

/** Namespaces and cgroups of the seed's processes. */
export interface SeedNamespaces {
  /** Command prefix that enters all of the seed's namespaces. */
  readonly enter: readonly string[];
  /** Command prefix that enters its network only, with the host's files. */
  readonly enterNetwork: readonly string[];
  /** Parent of the pods' cgroups; undefined: none. */
  readonly cgroup: string | undefined;
  /** Ends pods and their shims; the garden's own processes (PIDs `own`) stop in their order. */
  endPods(own: readonly number[]): Promise<void>;
}

/** Folders of the state directory by their path in the seed; missing ones are created. */
export async function seedFolders(directory: StateDirectory): Promise<Record<string, string>> {
  const sources: Record<string, string> = {
    [SEED_PATHS.containerd]: directory.path('seed', 'containerd'),
    [SEED_PATHS.kubelet]: directory.path('seed', 'kubelet'),
    [SEED_PATHS.config]: directory.path('seed', 'config'),
    '/var/log': directory.path('seed', 'log'),
    '/var/lib/cni': directory.path('seed', 'cni'),
  };
  for (const source of Object.values(sources)) await mkdir(source, { recursive: true, mode: 0o700 });
  return sources;
}

/** Namespaces, cgroups and limits created by root. */
export async function rootNamespaces({ directory, supervisor, state, log }: GardenOfSeed): Promise<SeedNamespaces> {
  const names = networkNames(directory.id);
  const cgroup = cgroupName(directory.id);
  const cgroups = new Cgroups((await readLayout())!, cgroup);
  // Remains of a seed cannot join a new network, and are removed.
  if (!(await networkExists(names))) await takeDownSeed(directory, { except: [process.pid] });
  await cgroups.create();
  supervisor.procsFile = cgroups.procsFile;
  await loadModules();
  await Promise.all([setUpNetwork(names, state.ranges), makeFolders(FIXED_FOLDERS), raiseHostLimits()]);
  await setUpMounts({ folder: directory.path('ns'), binds: await seedFolders(directory) });
  const network = enterNetwork(names);
  return {
    enter: [...network, `--mount=${mountNamespaceFile(directory.path('ns'))}`, '--wd=/'],
    enterNetwork: network,
    cgroup,
    endPods: (own) => cgroups.killAll([process.pid, ...own]).catch((error) => log.error(String(error))),
  };
}

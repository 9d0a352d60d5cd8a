import { readLayout } from './cgroups.ts';
import { CommandError, run } from './command.ts';
import { readText } from './files.ts';

/** Common names of systems that Node names differently. */
const SYSTEMS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'macOS', win32: 'Windows' };

/** Why no real node can run on this machine; undefined when one can. */
export async function whyNoNodes(): Promise<string | undefined> {
  if (process.platform !== 'linux')
    return `this machine runs ${SYSTEMS[process.platform] ?? process.platform}, and clusters run on Linux`;
  if (process.getuid?.() !== 0) return 'nodes need root, and coppice runs as an ordinary user';
  if (!(await readLayout())) return 'there are no cgroups mounted at /sys/fs/cgroup';
  try {
    await run(['unshare', '--mount', '--net', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'coppice', '/mnt']);
  } catch (error) {
    // The daemon installs the command first, where it can.
    if (error instanceof CommandError && error.isNotInstalled) return undefined;
    return `this process may not mount file systems or create namespaces (${(error as Error).message})`;
  }
  return undefined;
}

/** Command that creates the namespaces of a rootless seed. `--pid`: all processes inside end with the first one. */
export const UNSHARE = [
  'unshare',
  ...['--user', '--map-root-user', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
];
/** Why an ordinary user cannot create a rootless seed's namespaces here; undefined: possible. */
export async function whyNoNamespaces(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `user namespaces need Linux`;
  try {
    await run([...UNSHARE, 'mount', '-t', 'tmpfs', 'coppice', '/mnt']);
    return undefined;
  } catch (error) {
    for (const { name, off, on, orElse = '' } of SWITCHES) {
      if ((await readText(`/proc/sys/${name.replace('.', '/')}`).catch(() => ''))?.trim() === off)
        return `ordinary users may not create user namespaces until root runs "sysctl -w ${name}=${on}"${orElse}`;
    }
    return `no user namespace can be created (${(error as Error).message})`;
  }
}

/**
 * Kernel settings that forbid user namespaces: the forbidding value, a permitting one, and an alternative where there
 * is one.
 */
const SWITCHES: readonly { name: string; off: string; on: string; orElse?: string }[] = [
  {
    name: 'kernel.apparmor_restrict_unprivileged_userns',
    off: '1',
    on: '0',
    orElse: ', or loads an AppArmor profile that grants "userns" to unshare',
  },
  { name: 'kernel.unprivileged_userns_clone', off: '0', on: '1' },
  { name: 'user.max_user_namespaces', off: '0', on: '15000' },
];

/** Advice for a reason from `whyNoNodes`. `command`: the command to repeat with another seed. */
export const wayToSeed = (command: string): string =>
  `run it as root on Linux, or use another Kubernetes cluster as the seed: ${command} --seed-kubeconfig FILE`;

/** `why`: reason for no local seed, or for a `rootless` one; neither: a seed with nodes. */
export interface SeedPossible {
  why?: string;
  rootless?: string;
}

/** The kind of seed that this process can create on this machine. */
export async function seedPossible(): Promise<SeedPossible> {
  const noNodes = await whyNoNodes();
  if (noNodes === undefined) return {};
  if (process.platform !== 'linux') return { why: noNodes };
  const noNamespaces = await whyNoNamespaces();
  return noNamespaces === undefined ? { rootless: noNodes } : { why: `${noNodes}; ${noNamespaces}` };
}

/** Message on the limits of a rootless seed. */
export const simulatedOnly = (why: string): string =>
  `Control planes are real here, but nodes are simulated: ${why}. Pods get no limits, and local machines are not possible.`;

/** Message on the missing local seed, with advice. */
export const noNodesMessage = (why: string): string =>
  `This garden has no local seed for control planes: ${why}; ${wayToSeed('coppice up')}`;

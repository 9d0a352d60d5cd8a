import { readLayout } from './cgroups.ts';
import { CommandError, run } from './command.ts';
import { readText } from './files.ts';

/** What people call systems that Node has other names for. */
const SYSTEMS: Partial<Record<NodeJS.Platform, string>> = { darwin: 'macOS', win32: 'Windows' };

/** Why no real node can be made on this machine. Undefined when one can. */
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

/** Makes the namespaces of a rootless seed. `--pid`: whatever is in there ends with the first process. */
export const UNSHARE = [
  'unshare',
  ...['--user', '--map-root-user', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc'],
];
/** Why no ordinary user can make the namespaces of a rootless seed here, or undefined. */
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

/** Settings of kernels that forbid user namespaces: the value that does, one that does not, and another way where there is one. */
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

/** What a person does where `whyNoNodes` has a reason. `command` is what is called again, with another seed. */
export const wayToSeed = (command: string): string =>
  `run it as root on Linux, or use another Kubernetes cluster as the seed: ${command} --seed-kubeconfig FILE`;

/** `why` there can be no local seed at all, or why there can only be a `rootless` one; neither: one with nodes. */
export interface SeedPossible {
  why?: string;
  rootless?: string;
}

/** What kind of seed this process can make on this machine. */
export async function seedPossible(): Promise<SeedPossible> {
  const noNodes = await whyNoNodes();
  if (noNodes === undefined) return {};
  if (process.platform !== 'linux') return { why: noNodes };
  const noNamespaces = await whyNoNamespaces();
  return noNamespaces === undefined ? { rootless: noNodes } : { why: `${noNodes}; ${noNamespaces}` };
}

/** The one line that says what a rootless seed lacks. */
export const simulatedOnly = (why: string): string =>
  `Control planes are real here, but nodes are simulated: ${why}. Pods get no limits, and local machines are not possible.`;

/** The one line that says what is wrong and the way on. */
export const noNodesMessage = (why: string): string =>
  `This garden has no local seed for control planes: ${why}; ${wayToSeed('coppice up')}`;

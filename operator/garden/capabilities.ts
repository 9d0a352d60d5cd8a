import { readLayout } from './cgroups.ts';
import { CommandError, run } from './command.ts';

/** Why no real node can be made on this machine. Undefined when one can. */
export async function whyNoNodes(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `this is ${process.platform}, and nodes need Linux`;
  if (process.getuid?.() !== 0) return 'nodes need root, and this is an ordinary user';
  if (!(await readLayout())) return 'there are no cgroups mounted at /sys/fs/cgroup';
  try {
    await run(['unshare', '--mount', '--net', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'coppice', '/mnt']);
  } catch (error) {
    // The daemon installs the command first, where it can.
    if (error instanceof CommandError && error.isNotInstalled) return undefined;
    return `this process may not mount or make namespaces (${(error as Error).message})`;
  }
  return undefined;
}

/** What a person does where `whyNoNodes` has a reason. `command` is what is called again, with another seed. */
export const wayToSeed = (command: string): string =>
  `run it as root on Linux, or name another Kubernetes as the seed: ${command} --seed-kubeconfig FILE`;

/** The one line that says what is wrong and the way on. */
export const noNodesMessage = (why: string): string =>
  `No local seed hosts control planes: ${why}; ${wayToSeed('coppice up')}`;

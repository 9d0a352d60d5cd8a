import { readLayout } from './cgroups.ts';
import { run } from './command.ts';

/** Why no real node can be made on this machine. Undefined when one can. */
export async function whyNoNodes(): Promise<string | undefined> {
  if (process.platform !== 'linux') return `this is ${process.platform}, and nodes need Linux`;
  if (process.getuid?.() !== 0) return 'nodes need root, and this is an ordinary user';
  if (!(await readLayout())) return 'there are no cgroups mounted at /sys/fs/cgroup';
  try {
    await run(['unshare', '--mount', '--net', '--propagation', 'private', 'mount', '-t', 'tmpfs', 'coppice', '/mnt']);
  } catch (error) {
    return `this process may not mount or make namespaces (${(error as Error).message})`;
  }
  return undefined;
}

/** The one line that says what is wrong and the way on. */
export const noNodesMessage = (why: string): string =>
  `No local seed: ${why}. Use another Kubernetes as the seed: coppice up --seed-kubeconfig FILE`;

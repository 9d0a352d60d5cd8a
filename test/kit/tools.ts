import { toolImage } from '../../operator/garden/images/catalog.ts';
import { ToolCache, toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import type { ToolName } from '../../operator/garden/toolchain/tools.ts';

const NARRATION_MS = 10_000;
/** What tests need and is built where it cannot be had otherwise, in the order in which it is needed. */
const ALL = [
  'etcd',
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'pause',
  'kubelet',
  'kube-proxy',
  'containerd',
  'containerd-shim-runc-v2',
  'ctr',
  'coredns',
  'kubectl',
  'kwok',
  'pulumi',
  'echo',
  'etcdctl',
  'etcdutl',
  'kubeadm',
  'proxy-server',
  'proxy-agent',
  'registry',
] as const;

/** A toolchain that says what it does when that takes long. */
async function withToolchain<T>(work: (toolchain: Toolchain) => Promise<T>): Promise<T> {
  let last = Date.now();
  const toolchain = new Toolchain({
    onProgress: ({ tool, phase, source, remainingSeconds }) => {
      if (phase !== 'working' || Date.now() - last < NARRATION_MS) return;
      last = Date.now();
      const left = remainingSeconds === undefined ? '' : `, about ${Math.ceil(remainingSeconds)} s left`;
      process.stderr.write(`tests: making ${tool} (${source}${left})\n`);
    },
  });
  try {
    return await work(toolchain);
  } finally {
    await toolchain.close();
  }
}

/** Paths of real tools, made first where they are missing. */
export const testTools = <N extends ToolName>(...names: N[]): Promise<Record<N, string>> =>
  withToolchain(async (toolchain) => (await toolchain.ensure(names)) as Record<N, string>);

/** Whether all of these were made before. */
export async function areMade(names: readonly ToolName[]): Promise<boolean> {
  const cache = new ToolCache(toolsDirectory());
  const found = await Promise.all(names.map((name) => cache.find(name)));
  return found.every((file) => file !== undefined);
}

/** All that tests need, but for a few end-to-end files. */
export const allTools = async (): Promise<void> => {
  await testTools(...ALL);
  // A garden goes without it, and the tests that need it say so.
  await testTools('slirp4netns').catch(() => {});
};

/** Has the garden's registry serve images that it makes only for those who need them. */
export const testImages = (...names: Parameters<typeof toolImage>[0][]): Promise<void> =>
  withToolchain(async (toolchain) => {
    for (const name of names) await toolImage(name, toolchain);
  });

/** vitest's globalSetup of the project `integration`: before any test's time runs. */
export default async function setUp(): Promise<void> {
  await testTools('etcd', 'kube-apiserver', 'kubectl', 'registry', 'pulumi');
}

import { toolImage } from '../../operator/garden/images/catalog.ts';
import { ToolCache, toolsDirectory } from '../../operator/garden/toolchain/cache.ts';
import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import type { ToolName } from '../../operator/garden/toolchain/tools.ts';

const NARRATION_MS = 10_000;
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

/** Has the garden's registry serve images that it makes only for those who need them. */
export const testImages = (...names: Parameters<typeof toolImage>[0][]): Promise<void> =>
  withToolchain(async (toolchain) => {
    for (const name of names) await toolImage(name, toolchain);
  });

/** vitest's globalSetup of the projects `integration` and `hubs`: what nearly all files need, before any test's time runs. */
export default async function setUp(): Promise<void> {
  await testTools('etcd', 'kube-apiserver', 'kubectl');
}

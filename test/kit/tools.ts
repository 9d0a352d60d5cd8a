import { Toolchain } from '../../operator/garden/toolchain/toolchain.ts';
import type { ToolName } from '../../operator/garden/toolchain/tools.ts';

const NARRATION_MS = 10_000;

/** Paths of real tools, made first where they are missing; says what it does when that takes long. */
export async function testTools<N extends ToolName>(...names: N[]): Promise<Record<N, string>> {
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
    return (await toolchain.ensure(names)) as Record<N, string>;
  } finally {
    await toolchain.close();
  }
}

/** vitest's globalSetup of the project `integration`: before any test's time runs. */
export default async function setUp(): Promise<void> {
  await testTools('etcd', 'kube-apiserver', 'kubectl', 'pulumi');
}

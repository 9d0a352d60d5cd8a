import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { API_VERSION } from '../../operator/api/group.ts';
import type { SharedGarden } from '../kit/garden-setup.ts';
import { type RunOptions, runCoppice } from '../kit/run.ts';

const NAME = 'conformance';
const PATIENCE_MS = 15 * 60_000;

/**
 * Makes a local cluster in a garden as anybody would, and gives the garden the images that its pods will ask for.
 * @param archives of images, each as `coppice load` takes it
 * @param folder for its kubeconfig
 * @returns the file of that. Throws what coppice says where something fails.
 */
export async function makeCluster(
  garden: SharedGarden,
  { nodes, archives, folder }: { nodes: number; archives: Iterable<string>; folder: string },
): Promise<string> {
  const coppice = async (args: readonly string[], options: RunOptions = {}): Promise<string> => {
    const { code, stdout, stderr } = await runCoppice(args, { ...garden, timeoutMs: PATIENCE_MS, ...options });
    if (code !== 0) throw new Error(`coppice ${args[0]} failed: ${`${stderr}${stdout}`.trim().slice(-2000)}`);
    return stdout;
  };
  const cluster = {
    apiVersion: API_VERSION,
    kind: 'WorkerCluster',
    metadata: { name: NAME },
    spec: { cloudProvider: 'local', dataPlaneNodes: nodes },
  };
  await coppice(['apply', '-f', '-'], { input: JSON.stringify(cluster) });
  for (const archive of archives) await coppice(['load', archive]);
  await coppice(['wait', NAME, '--for', 'Ready']);
  const file = join(folder, 'kubeconfig');
  // Without --secret it ends after ten minutes.
  await writeFile(file, await coppice(['kubeconfig', NAME, '--secret']));
  await chmod(file, 0o600);
  return file;
}

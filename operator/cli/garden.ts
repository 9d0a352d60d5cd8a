import type { Garden } from '../garden/garden.ts';
import { StateDirectory } from '../garden/state.ts';
import { coppiceHome } from '../garden/toolchain/cache.ts';

type Env = Record<string, string | undefined>;

/** The kubeconfig of the embedded garden's administrator; known without loading the garden, which takes long. */
export function gardenKubeconfigFile(env: Env): string {
  return new StateDirectory(coppiceHome(env)).kubeconfigFile('admin');
}

/** Opens the garden of this machine. */
export async function openGarden(env: Env, seedKubeconfig?: string): Promise<Garden> {
  const { Garden } = await import('../garden/garden.ts');
  return Garden.open({ home: coppiceHome(env), ...(seedKubeconfig === undefined ? {} : { seedKubeconfig }) });
}

import type { Garden } from '../garden/garden.ts';
import { StateDirectory } from '../garden/state.ts';
import { coppiceHome } from '../garden/toolchain/cache.ts';
import type { Options } from './context.ts';

type Env = Record<string, string | undefined>;

/** The kubeconfig of the embedded garden's administrator; known without loading the garden, which takes long. */
export function gardenKubeconfigFile(env: Env): string {
  return gardenDirectory(env).kubeconfigFile('admin');
}

/** Where the embedded garden of this machine lies, or would lie. */
export const gardenDirectory = (env: Env): StateDirectory => new StateDirectory(coppiceHome(env));

/** Opens the garden of this machine. With the options of a command that brings it up, what they say of it. */
export async function openGarden(env: Env, options?: Options): Promise<Garden> {
  const { Garden } = await import('../garden/garden.ts');
  const seedKubeconfig = options?.text('seed-kubeconfig');
  const cache = options?.text('image-cache');
  const given = (name: string) => {
    const words = options?.list(name) ?? [];
    return words.length > 0 ? words : undefined;
  };
  const trusted = given('registry');
  const logins = given('registry-login');
  return Garden.open({
    home: coppiceHome(env),
    ...(seedKubeconfig !== undefined && { seedKubeconfig }),
    registries: { ...(trusted && { trusted }), ...(logins && { logins }), ...(cache !== undefined && { cache }) },
  });
}
